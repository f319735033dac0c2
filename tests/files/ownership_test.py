"""Tests of the ownership of files."""

import grp
import os
import pwd
from pathlib import Path
from types import SimpleNamespace

import pytest

from elmo_tasks.files import ownership
from elmo_tasks.files.ownership import check_ownership


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "folder"
    path.mkdir(mode=0o700)
    return path


class TestCheckOwnership:
    @pytest.mark.parametrize("mode", [0o700, 0o755, 0o555])
    def test_what_only_this_user_may_write_passes(self, folder, mode):
        """Oracle: by hand."""
        folder.chmod(mode)
        check_ownership(folder)

    def test_what_root_owns_passes(self):
        """Oracle: a file that root owns on every system."""
        check_ownership(Path("/etc/passwd"))

    @pytest.mark.parametrize(("mode", "who"), [(0o777, "all users"), (0o702, "all users"), (0o1777, "all users")])
    def test_what_all_may_write_is_refused(self, folder, mode, who):
        """Oracle: path, reason and both remedies in the message."""
        folder.chmod(mode)
        message = f"'{folder}' may be written by {who}, .*chmod go-w '{folder}'; or set ELMO_TASKS_ALLOW_SHARED=1"
        with pytest.raises(PermissionError, match=message):
            check_ownership(folder)

    @pytest.mark.parametrize(
        ("name", "members", "gid", "is_private"),
        [
            ("me", [], 7, True),
            ("me", ["me"], 7, True),
            ("me", ["me", "you"], 7, False),
            ("users", [], 7, False),
            ("me", [], 8, False),
            (None, [], 7, False),
        ],
    )
    def test_a_group_may_write_if_it_is_the_users_own(self, folder, monkeypatch, name, members, gid, is_private):
        """Oracle: by hand: pam_umask's rule: the user's first group, with the user's name, without other members."""

        def group(number: int) -> SimpleNamespace:
            if name is None:
                raise KeyError(number)
            return SimpleNamespace(gr_name=name, gr_mem=members)

        monkeypatch.setattr(pwd, "getpwuid", lambda uid: SimpleNamespace(pw_name="me", pw_gid=gid))
        monkeypatch.setattr(grp, "getgrgid", group)
        monkeypatch.setattr(ownership.Path, "stat", lambda path: SimpleNamespace(st_uid=0, st_mode=0o40770, st_gid=7))
        if is_private:
            check_ownership(folder)
        else:
            with pytest.raises(PermissionError, match=r"may be written by its group, .*chmod g-w"):
                check_ownership(folder)

    def test_what_another_user_owns_is_refused(self, folder, monkeypatch):
        """Oracle: the owner in the message."""
        if os.geteuid() == 0:
            os.chown(folder, 54321, 54321)
        else:
            monkeypatch.setattr(os, "geteuid", lambda: 54321)
        with pytest.raises(PermissionError, match=r"belongs to another user \(.+\), .*use a folder of your own"):
            check_ownership(folder)

    @pytest.mark.parametrize(("value", "is_allowed"), [("1", True), ("", False), ("0", False), ("yes", False)])
    def test_it_may_be_allowed(self, folder, monkeypatch, value, is_allowed):
        """Oracle: by hand."""
        folder.chmod(0o777)
        monkeypatch.setenv("ELMO_TASKS_ALLOW_SHARED", value)
        if is_allowed:
            check_ownership(folder)
        else:
            with pytest.raises(PermissionError):
                check_ownership(folder)
