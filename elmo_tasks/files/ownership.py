"""Ownership of files that are believed without a check of their content: who could have written them."""

import grp
import os
import pwd
import stat
from pathlib import Path

__all__ = ["check_ownership"]


def check_ownership(path: Path) -> None:
    """
    Checks that only this user and root can have written a file or folder, unless `ELMO_TASKS_ALLOW_SHARED` is `1`. The
    group counts as this user if it is the user's private group, which many systems make for each user.

    # Raises

    `PermissionError`
        If it belongs to another user, or its group or all users may write to it.
    `OSError`
        If it does not exist or cannot be looked at.
    """
    if os.environ.get("ELMO_TASKS_ALLOW_SHARED") == "1":
        return
    state = path.stat()
    # Access control lists show here too: their mask takes the place of the group's permissions.
    if state.st_uid not in (os.geteuid(), 0):
        reason, remedy = f"belongs to another user ({_user_name(state.st_uid)})", "use a folder of your own"
    elif state.st_mode & stat.S_IWOTH:
        reason, remedy = "may be written by all users", f"chmod go-w '{path}'"
    elif state.st_mode & stat.S_IWGRP and not _is_private_group(state.st_gid):
        reason, remedy = "may be written by its group", f"chmod g-w '{path}'"
    else:
        return
    raise PermissionError(
        f"'{path}' {reason}, who could change what is read from it. Remedy: {remedy}; or set ELMO_TASKS_ALLOW_SHARED=1 "
        "if you trust all who can write there"
    )


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"number {uid}"


def _is_private_group(gid: int) -> bool:
    """Whether a group is this user's alone, by the rule of pam_umask: it has the user's name, and no other members."""
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    return user.pw_gid == gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
