import inspect
import io
import os
import tarfile
import zipfile

import pytest

from allennlp_today.trust import unpacking
from elmo_tasks.files import archives


@pytest.mark.parametrize("name", archives.__all__)
def test_the_copies_in_both_packages_are_equal(name):
    """A repair of one of them, which read untrusted files, is a repair of both."""
    assert inspect.getsource(getattr(archives, name)) == inspect.getsource(getattr(unpacking, name))


@pytest.mark.parametrize("has_filters", [True, False])
@pytest.mark.parametrize("name", ["../evil.txt", "a/../../evil.txt", "{folder}/evil.txt"])
def test_nothing_is_written_outside_the_folder(tmp_path, monkeypatch, name, has_filters):
    """Python 3.11.2, Debian 12's, has no filters."""
    if not has_filters:
        monkeypatch.delattr(tarfile, "data_filter")
    archive = tmp_path / "archive.tar"
    with tarfile.open(archive, "w") as tar:
        for member_name in ("good.txt", name.format(folder=tmp_path)):
            tar.addfile(tarfile.TarInfo(member_name), io.BytesIO())
    with pytest.raises(ValueError, match=r"expected files in its own folder, got '.*evil"):
        archives.unpack(archive, tmp_path / "folder")
    assert [path.name for path in tmp_path.rglob("*.txt")] == ["good.txt"]


def tar_of(path, *members, **options):
    """A tar file of members, each a name, a content, and fields of its header."""
    with tarfile.open(path, "w", **options) as tar:
        for name, content, fields in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            for field, value in fields.items():
                setattr(member, field, value)
            tar.addfile(member, io.BytesIO(content))
    return path


def with_negative_size(path):
    """A header of GNU's tar, of which the size is in binary, and minus two blocks."""
    header = bytearray(tarfile.TarInfo("a").tobuf(tarfile.GNU_FORMAT))
    header[124:136] = (-1024).to_bytes(12, "big", signed=True)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    path.write_bytes(bytes(header) + b"\0" * 4096)
    return path


# Each is written to a path.
FILES = {
    "negative size": with_negative_size,
    "negative size of a long header": lambda path: tar_of(
        path, ("a", b"x" * 600, {"pax_headers": {"size": "-1024"}})
    ),
    "sparse": lambda path: tar_of(
        path,
        ("a", b"1\n0\n512\n", {"pax_headers": {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}}),
    ),
    "long header": lambda path: tar_of(path, ("a", b"", {"pax_headers": {"comment": "x" * 2**21}})),
    "pipe": lambda path: tar_of(path, ("a", b"", {"type": tarfile.FIFOTYPE})),
    "device": lambda path: tar_of(path, ("a", b"", {"type": tarfile.CHRTYPE})),
    "file in a file": lambda path: tar_of(path, ("a", b"x", {}), ("a/b", b"x", {})),
    "zip with a password": lambda path: path.write_bytes(ENCRYPTED) and path,
    "text": lambda path: path.write_text("text") and path,
    "nothing": lambda path: path.touch() or path,
    "folder": lambda path: path.mkdir() or path,
    "pipe as archive": lambda path: os.mkfifo(path) or path,
    "device as archive": lambda path: path.symlink_to("/dev/zero") or path,
}


def encrypted() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as members:
        members.writestr("a", "x")
    data = bytearray(content.getvalue())
    # The flag in the header of the file and in the list of files.
    data[6] |= 1
    data[data.index(b"PK\1\2") + 8] |= 1
    return bytes(data)


ENCRYPTED = encrypted()


@pytest.mark.parametrize("name", FILES)
def test_damaged_and_unusual_archives_are_an_error_that_names_the_file(tmp_path, name):
    """tarfile would read some of them for ever."""
    path = FILES[name](tmp_path / "archive.tar")
    with pytest.raises(ValueError, match="archive") as error:
        archives.unpack(path, tmp_path / "folder")
    assert "\n" not in str(error.value)


def test_a_file_of_weights_with_damage_is_an_error(tmp_path):
    path = tmp_path / "weights.th"
    with zipfile.ZipFile(path, "w") as members:
        members.writestr("data", b"x" * 1000)
    content = bytearray(path.read_bytes())
    content[500] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"weights\.th"):
        archives.compare_checksums(path)
