"""Tests of elmo_tasks.compat.allennlp_fixes.archives: archives from a stranger."""

import errno
import gzip
import io
import json
import os
import random
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.data.dataset_readers import DatasetReader
from allennlp.models import Model, load_archive
from allennlp.models.archival import extracted_archive
from allennlp.training.util import create_serialization_dir

from elmo_tasks.compat.allennlp_fixes import archives

CONFIG = {
    "dataset_reader": {"type": "archives_test_reader"},
    "model": {"type": "archives_test_model"},
}


@DatasetReader.register("archives_test_reader", exist_ok=True)
class Reader(DatasetReader):
    pass


@Model.register("archives_test_model", exist_ok=True)
class TinyModel(Model):
    def __init__(self, vocab: Vocabulary, text: str = "") -> None:
        super().__init__(vocab)
        self.text = text
        self.weight = torch.nn.Parameter(torch.zeros(4000))


@pytest.fixture
def archive(tmp_path: Path) -> Callable[..., Path]:
    """Writes an archive: `archive(config, **more)`, where `more` are functions that add members to the tar file."""

    def write(config: dict | str = CONFIG, *more: Callable[[tarfile.TarFile], None]) -> Path:
        weights = io.BytesIO()
        torch.save({"weight": torch.rand(4000, generator=torch.Generator().manual_seed(0))}, weights)
        text = config if isinstance(config, str) else json.dumps(config)
        path = tmp_path / "model.tar.gz"
        with tarfile.open(path, "w:gz") as tar:
            for function in more:
                function(tar)
            for name, content in (
                ("config.json", text.encode()),
                ("weights.th", weights.getvalue()),
                ("vocabulary/non_padded_namespaces.txt", b"*tags\n*labels\n"),
            ):
                add(tar, name, content)
        return path

    return write


def add(tar: tarfile.TarFile, name: str, content: bytes = b"", **fields: object) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    for field, value in fields.items():
        setattr(member, field, value)
    tar.addfile(member, io.BytesIO(content))


class TestExtractSafely:
    def test_a_good_archive_loads(self, archive):
        """Oracle: the weights that were saved."""
        model = load_archive(archive()).model
        assert torch.equal(model.weight, torch.rand(4000, generator=torch.Generator().manual_seed(0)))

    def test_its_folder_loads_too(self, archive, tmp_path):
        """Oracle: the same archive; this is the remedy that the messages name."""
        with tarfile.open(archive()) as tar:
            tar.extractall(tmp_path / "folder", filter="data")
        assert isinstance(load_archive(tmp_path / "folder").model, TinyModel)

    @pytest.mark.parametrize("name", ["../outside.txt", "vocabulary/../../outside.txt"])
    def test_nothing_is_written_outside(self, archive, tmp_path, monkeypatch, name):
        """Oracle: the file system around the folder that it is unpacked to."""
        (tmp_path / "unpacked").mkdir()
        monkeypatch.setattr(archives.tempfile, "mkdtemp", lambda **_: str(tmp_path / "unpacked"))
        with pytest.raises(ConfigurationError, match="ordinary files only"):
            load_archive(archive(CONFIG, lambda tar: add(tar, name, b"x")))
        assert not (tmp_path / "outside.txt").exists()
        assert not (tmp_path / "unpacked").exists()

    def test_an_absolute_path_stays_inside(self, archive, tmp_path):
        """Oracle: the file system: Python's filter for data strips the slash."""
        target = tmp_path / "absolute.txt"
        with extracted_archive(archive(CONFIG, lambda tar: add(tar, str(target), b"x"))) as folder:
            assert Path(folder, *target.parts[1:]).read_bytes() == b"x"
        assert not target.exists()

    @pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
    def test_links_to_files_of_this_machine_are_refused(self, archive, tmp_path, kind):
        """Oracle: the message; the file stays unread."""
        secret = tmp_path / "secret.txt"
        secret.write_text("secret")
        with pytest.raises(ConfigurationError, match=r"model\.tar\.gz"):
            load_archive(
                archive(CONFIG, lambda tar: add(tar, "vocabulary/labels.txt", type=kind, linkname=str(secret)))
            )

    @pytest.mark.parametrize("kind", [tarfile.FIFOTYPE, tarfile.CHRTYPE])
    def test_a_pipe_or_a_device_is_refused(self, archive, kind):
        """Oracle: the message; without the fix a pipe in place of config.json hangs for ever."""
        with pytest.raises(ConfigurationError, match="ordinary files only"):
            load_archive(archive(CONFIG, lambda tar: add(tar, "config.json", type=kind)))

    def test_setuid_and_writing_by_others_are_dropped(self, archive):
        """Oracle: the mode of the file."""
        with extracted_archive(archive(CONFIG, lambda tar: add(tar, "tool", b"x", mode=0o4777))) as folder:
            assert not os.stat(Path(folder, "tool")).st_mode & (stat.S_ISUID | stat.S_IWGRP | stat.S_IWOTH)

    def test_a_bomb_is_refused(self, archive):
        """Oracle: 300 MB of zeros, in about 1 MB."""
        path = archive(CONFIG, lambda tar: add(tar, "zeros", bytes(300 * 2**20)))
        assert path.stat().st_size < 2**21
        with pytest.raises(ConfigurationError, match="100 times its size"):
            load_archive(path)

    def test_too_many_files_are_refused(self, archive, monkeypatch):
        """Oracle: the limit, made small."""
        monkeypatch.setattr(archives, "_MAX_MEMBERS", 4)
        load_archive(archive(CONFIG, lambda tar: add(tar, "one")))
        with pytest.raises(ConfigurationError, match="more than 4 files"):
            load_archive(archive(CONFIG, lambda tar: add(tar, "one"), lambda tar: add(tar, "two")))

    def test_every_flipped_bit_is_noticed_or_harmless(self, archive, tmp_path):
        """Oracle: the weights that were saved, after each of 60 random bits was flipped."""
        path = archive()
        content, expected = path.read_bytes(), load_archive(path).model.weight
        draw, refused = random.Random(0), 0
        for _ in range(60):
            damaged = bytearray(content)
            damaged[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
            path.write_bytes(damaged)
            try:
                assert torch.equal(load_archive(path).model.weight, expected)
            except ConfigurationError as error:
                assert str(path) in str(error)
                refused += 1
        assert refused > 50

    @pytest.mark.parametrize("keep", [0, 1, 100, -1])
    def test_an_archive_that_was_cut_off_is_refused(self, archive, keep):
        """Oracle: the message, with the file."""
        path = archive()
        path.write_bytes(path.read_bytes()[:keep])
        with pytest.raises(ConfigurationError, match=r"model.tar.gz must be a whole archive"):
            load_archive(path)

    def test_a_full_disk_is_no_damage(self, archive, monkeypatch):
        """Oracle: the error, with its number, and the remedy."""
        full = Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))
        monkeypatch.setattr(archives.tarfile.TarFile, "extract", full)
        with pytest.raises(
            OSError, match=r"no space to unpack .*model\.tar\.gz into .*: make some there .*TMPDIR"
        ) as raised:
            load_archive(archive())
        assert raised.value.errno == errno.ENOSPC

    def test_what_is_no_gzip_is_refused(self, tmp_path):
        """Oracle: the message, with the file."""
        path = tmp_path / "model.tar.gz"
        for content in (b"no archive", gzip.compress(b"no tar file" * 100)):
            path.write_bytes(content)
            with pytest.raises(ConfigurationError, match=r"model.tar.gz must be a whole archive"):
                load_archive(path)

    @pytest.mark.parametrize("name", ["config.json", "vocabulary/labels.txt"])
    def test_a_sparse_file_is_refused(self, archive, name):
        """Oracle: the message; it would claim any size of zeros."""

        def sparse(tar: tarfile.TarFile) -> None:
            add(tar, name, pax_headers={"GNU.sparse.major": "1", "GNU.sparse.minor": "0"})
            add(tar, name, b"", type=tarfile.GNUTYPE_SPARSE)

        with pytest.raises(ConfigurationError, match=r"model\.tar\.gz must be a whole archive"):
            load_archive(archive(CONFIG, sparse))

    @pytest.mark.parametrize("time", ["1e300", "inf", "nan", "-1e30", "soon"])
    def test_a_time_that_no_file_can_have_is_refused(self, archive, time):
        """Oracle: the message, or that `tarfile` itself takes what is no number for the year 1970."""
        path = archive(CONFIG, lambda tar: add(tar, "late.txt", pax_headers={"mtime": time}))
        if time == "soon":
            load_archive(path)
        else:
            with pytest.raises(ConfigurationError, match=r"model\.tar\.gz must be a whole archive"):
                load_archive(path)

    def test_damaged_files_in_it_are_named_with_it(self, archive):
        """Oracle: the message: a vocabulary that is not UTF-8, a name that is too long, broken meta.json files."""
        metas = [("meta.json", content) for content in (b"{", b"[]", b"[" * 100_000)]
        for name, content in (("vocabulary/labels.txt", b"\xff\xfe"), ("x" * 300, b""), *metas):
            path = archive(CONFIG, lambda tar, name=name, content=content: add(tar, name, content))
            with pytest.raises(ConfigurationError, match=r"model\.tar\.gz must be (a|the) whole archive"):
                load_archive(path)

    def test_the_archive_that_a_model_began_with_is_named_if_it_is_not_there(self, archive, tmp_path):
        """Oracle: the message; with the override of the message it is found."""
        base = archive().rename(tmp_path / "base.tar.gz")
        tuned = archive({**CONFIG, "model": {"type": "from_archive", "archive_file": str(base)}})
        assert isinstance(load_archive(tuned).model, TinyModel)
        moved = base.rename(tmp_path / "moved.tar.gz")
        with pytest.raises(
            ConfigurationError, match=r"model\.tar\.gz has a model .* that it began with, .*base\.tar\.gz"
        ):
            load_archive(tuned)
        assert isinstance(load_archive(tuned, overrides={"model.archive_file": str(moved)}).model, TinyModel)
        with pytest.raises(FileNotFoundError):
            load_archive(base)

    def test_a_file_that_is_not_there_is_said_to_be_missing(self, tmp_path):
        """Oracle: AllenNLP's error."""
        with pytest.raises(FileNotFoundError):
            load_archive(tmp_path / "model.tar.gz")


class TestReadConfigAsJson:
    def test_a_recovered_config_is_not_evaluated(self, tmp_path):
        """Oracle: the message for Jsonnet; the same config and another one as AllenNLP treats them."""
        config = Params({"a": 1, "b": [{"c": 2.5}]})
        (tmp_path / "log.txt").touch()
        config.to_file(str(tmp_path / "config.json"))
        create_serialization_dir(config, str(tmp_path), recover=True, force=False)
        with pytest.raises(ConfigurationError, match="does not match"):
            create_serialization_dir(Params({"a": 2}), str(tmp_path), recover=True, force=False)
        with pytest.raises(ConfigurationError, match=r"no 'd': resume it with that config\.json"):
            create_serialization_dir(Params({**config.as_dict(), "d": 1}), str(tmp_path), recover=True, force=False)
        (tmp_path / "config.json").write_text("local f(n) = if n == 0 then 1 else f(n - 1) + f(n - 1); {a: f(60)}")
        with pytest.raises(ConfigurationError, match=r"config\.json must be JSON"):
            create_serialization_dir(config, str(tmp_path), recover=True, force=False)


class TestConfigOfAnArchive:
    @pytest.mark.parametrize(
        "text", ["{model: {type: importstr '/etc/hostname'}}", "{model: std.extVar('HOME')}", "[]", "[" * 100_000, ""]
    )
    def test_it_is_json_and_nothing_else(self, archive, text):
        """Oracle: the message; Jsonnet would read files and the environment."""
        with pytest.raises(ConfigurationError, match=r"config\.json of .*model\.tar\.gz must be JSON"):
            load_archive(archive(text))

    @pytest.mark.parametrize("config", [{}, {"dataset_reader": {}}, {"model": [], "dataset_reader": {}}])
    def test_without_its_parts_it_is_refused(self, archive, config):
        """Oracle: the message, with the archive."""
        with pytest.raises(ConfigurationError, match=r"config\.json of .*model\.tar\.gz must have an object 'model'"):
            load_archive(archive(config))

    def test_overrides_of_the_user_may_be_jsonnet(self, archive):
        """Oracle: the value of the override."""
        archived = load_archive(archive(), overrides="{'model.text': 'a' + 'b'}")
        assert archived.model.text == "ab"
        assert load_archive(archive(), overrides={"model.text": "c"}).model.text == "c"

    @pytest.mark.parametrize("key", ["options", "special_pieces"])
    def test_the_folder_of_its_layer_cache_is_ignored(self, archive, key):
        """Oracle: the config that is used; an override of the user stays. Of a biLM, and of a transformer."""
        bilm = {key: {}, "cache_folder": "/somewhere"}
        config = {**CONFIG, "validation_dataset_reader": {"type": "archives_test_reader"}, "unused": [{"bilm": bilm}]}
        assert load_archive(archive(config)).config["unused"][0]["bilm"].as_dict() == {key: {}}
        overrides = {"unused": [{"bilm": {key: {}, "cache_folder": "mine"}}]}
        found = load_archive(archive(config), overrides=overrides).config["unused"]
        assert found[0]["bilm"]["cache_folder"] == "mine"


class TestRefuseUnregisteredTypes:
    @pytest.mark.parametrize("part", ["dataset_reader", "validation_dataset_reader", "model"])
    def test_a_class_that_is_not_registered_is_not_imported(self, archive, tmp_path, part):
        """Oracle: the message, and that the command has not run."""
        ran = tmp_path / "ran"
        config = {**CONFIG, part: {"type": "subprocess.Popen", "args": ["touch", str(ran)]}}
        with pytest.raises(ConfigurationError, match="add --include-package subprocess"):
            load_archive(archive(config))
        assert not ran.exists()

    def test_a_package_that_was_named_may_be_used(self, archive, tmp_path, monkeypatch):
        """Oracle: the class by its full name, after what `--include-package` calls."""
        from allennlp.common.util import import_module_and_submodules

        (tmp_path / "archives_test_package").mkdir()
        (tmp_path / "archives_test_package" / "__init__.py").write_text(
            "from allennlp.data.dataset_readers import DatasetReader\nclass Mine(DatasetReader):\n    pass\n"
        )
        monkeypatch.syspath_prepend(str(tmp_path))
        config = {**CONFIG, "dataset_reader": {"type": "archives_test_package.Mine"}}
        with pytest.raises(ConfigurationError, match="add --include-package archives_test_package"):
            load_archive(archive(config))
        monkeypatch.setattr(archives, "_INCLUDED_PACKAGES", set(archives._INCLUDED_PACKAGES))
        import_module_and_submodules("archives_test_package")
        assert type(load_archive(archive(config)).dataset_reader).__name__ == "Mine"

    def test_in_a_config_of_ones_own_a_full_name_works_as_before(self):
        """Oracle: AllenNLP's documentation."""
        assert DatasetReader.by_name(f"{__name__}.Reader") is Reader

    def test_what_is_found_must_be_of_the_right_class(self):
        """Oracle: the message, with name and class."""
        with pytest.raises(ConfigurationError, match=r"'collections\.OrderedDict' must be a subclass of DatasetReader"):
            DatasetReader.by_name("collections.OrderedDict")
