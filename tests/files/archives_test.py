import inspect
import io
import tarfile

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
        for each in ("good.txt", name.format(folder=tmp_path)):
            tar.addfile(tarfile.TarInfo(each), io.BytesIO())
    with pytest.raises(ValueError, match=r"expected files in its own folder, got '.*evil"):
        archives.unpack(archive, tmp_path / "folder")
    assert [path.name for path in tmp_path.rglob("*.txt")] == ["good.txt"]
