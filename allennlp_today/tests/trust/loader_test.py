import io
import json
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.common.testing import model_test_case
from allennlp.common.util import import_module_and_submodules
from allennlp.data import Vocabulary
from allennlp.data.dataset_readers import DatasetReader
from allennlp.models import Model
from allennlp.training.util import create_serialization_dir

from allennlp_today import load_archive
from allennlp_today.trust import read_config
from allennlp_today.trust.unpacking import unpack

CONFIG = {
    "dataset_reader": {"type": "archives_test_reader"},
    "model": {"type": "archives_test_model"},
}


@DatasetReader.register("archives_test_reader", exist_ok=True)
class Reader(DatasetReader):
    pass


@Model.register("archives_test_model", exist_ok=True)
class TinyModel(Model):
    def __init__(self, vocab: Vocabulary, text: str = "", size: int = 1) -> None:
        super().__init__(vocab)
        if size < 0:
            raise ValueError("expected a size from 0")
        self.text = text
        self.weight = torch.nn.Parameter(torch.zeros(4000))


@pytest.fixture
def archive(tmp_path: Path) -> Callable[..., Path]:
    """Writes an archive: `archive(config)`."""
    state = {"weight": torch.rand(4000, generator=torch.Generator().manual_seed(0))}

    def write(config: dict | str = CONFIG) -> Path:
        weights = io.BytesIO()
        torch.save(state, weights)
        text = config if isinstance(config, str) else json.dumps(config)
        path = tmp_path / "model.tar.gz"
        with tarfile.open(path, "w:gz") as tar:
            for name, content in (
                ("config.json", text.encode()),
                ("weights.th", weights.getvalue()),
                ("vocabulary/non_padded_namespaces.txt", b"*tags\n*labels\n"),
            ):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        return path

    return write


class TestLoadArchivesSafely:
    def test_a_good_archive_loads(self, archive, tmp_path):
        model = load_archive(archive()).model
        assert torch.equal(
            model.weight, torch.rand(4000, generator=torch.Generator().manual_seed(0))
        )
        with tarfile.open(archive()) as tar:
            tar.extractall(tmp_path / "folder", filter="data")
        assert isinstance(load_archive(tmp_path / "folder").model, TinyModel)

    def test_the_config_may_have_comments_and_trailing_commas(self, archive):
        """In an archive that somebody packed themselves; AllenNLP's own tests have one."""
        text = json.dumps(
            {**CONFIG, "model": {"type": "archives_test_model", "text": "a // b, }"}}, indent=1
        )
        text = "# By hand.\n" + text.replace("\n}", ", // The end.\n} /* of it */")
        assert load_archive(archive(text), trusted=True).model.text == "a // b, }"

    @pytest.mark.parametrize(
        "text",
        [
            "{model: {type: importstr '/etc/hostname'}}",
            "{model: std.extVar('HOME')}",
            "",
            "[" * 100_000,
        ],
    )
    def test_the_config_is_json_and_nothing_else(self, archive, text):
        """Jsonnet could read files and the environment."""
        with pytest.raises(ConfigurationError, match=r"config\.json"):
            load_archive(archive(text))

    def test_overrides_of_the_user_may_be_jsonnet(self, archive):
        assert load_archive(archive(), overrides="{'model.text': 'a' + 'b'}").model.text == "ab"
        assert load_archive(archive(), overrides={"model.text": "c"}).model.text == "c"

    def test_a_byte_after_the_end_is_ignored(self, archive):
        """Archives in the tests of allennlp-semparse have one."""
        path = archive()
        path.write_bytes(path.read_bytes() + b"\n")
        assert isinstance(load_archive(path).model, TinyModel)

    def test_damage_is_found(self, archive, tmp_path):
        """Without the checksums, other weights would be loaded."""
        unpack(str(archive()), tmp_path / "folder")
        for path, damaged in (
            (archive(), archive()),
            (tmp_path / "folder", tmp_path / "folder" / "weights.th"),
        ):
            content = bytearray(damaged.read_bytes())
            content[len(content) // 2] ^= 1
            damaged.write_bytes(content)
            with pytest.raises(ValueError, match=damaged.name):
                load_archive(path)


class TestTheMachine:
    def test_it_is_described_by_the_user(self, archive):
        loader = {"batch_size": 2, "num_workers": 40, "cuda_device": 7, "start_method": "spawn"}
        path = archive({**CONFIG, "data_loader": loader})
        assert load_archive(path).config["data_loader"].as_dict() == {"batch_size": 2}
        overrides = {"data_loader.num_workers": 1}
        loaded = load_archive(path, overrides=overrides).config["data_loader"]
        assert loaded.as_dict() == {"batch_size": 2, "num_workers": 1}
        assert load_archive(path, trusted=True).config["data_loader"].as_dict() == loader


def replace_in(path: Path, name: str, content: bytes) -> None:
    """Replaces a file in an archive, or adds one."""
    with tarfile.open(path) as tar:
        files = {member.name: tar.extractfile(member).read() for member in tar}
    with tarfile.open(path, "w:gz") as tar:
        for file, data in {**files, name: content}.items():
            member = tarfile.TarInfo(file)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


def saved(value: object, **options: bool) -> bytes:
    content = io.BytesIO()
    torch.save(value, content, **options)
    return content.getvalue()


WORDS, WEIGHTS, CONFIG_FILE = "vocabulary/labels.txt", "weights.th", "config.json"
# A file in an archive with what it has instead.
DAMAGED: dict[str, tuple[str, bytes]] = {
    "no version": ("meta.json", b"{}"),
    "a number as version": ("meta.json", b'{"version": 2}'),
    "words as version": ("meta.json", b'{"version": "two"}'),
    "a list as version": ("meta.json", b"[]"),
    "zeros as version": ("meta.json", b"\0\0"),
    "more than a version": ("meta.json", b'{"version": "2.10.1", "x": 1}'),
    "no weights": (WEIGHTS, b""),
    "zeros as weights": (WEIGHTS, b"\0" * 1000),
    "text as weights": (WEIGHTS, b"weights"),
    "half of the weights": (WEIGHTS, saved({"weight": torch.zeros(4000)})[:9000]),
    "old weights, half": (
        WEIGHTS,
        saved({"weight": torch.zeros(4000)}, _use_new_zipfile_serialization=False)[:300],
    ),
    "a list of weights": (WEIGHTS, saved([torch.zeros(4000)])),
    "weights of a different size": (WEIGHTS, saved({"weight": torch.zeros(4001)})),
    "other weights": (WEIGHTS, saved({"other": torch.zeros(4000)})),
    "a class as weights": (WEIGHTS, saved({"weight": Params({})})),
    "zeros as config": (CONFIG_FILE, b"\0" * 10),
    "half of a config": (CONFIG_FILE, b'{"model": '),
    "no reader": (CONFIG_FILE, b'{"model": {"type": "archives_test_model"}}'),
    "no model": (CONFIG_FILE, b'{"dataset_reader": {"type": "archives_test_reader"}}'),
    "a list as model": (
        CONFIG_FILE,
        b'{"dataset_reader": {"type": "archives_test_reader"}, "model": []}',
    ),
    "a number as text": (
        CONFIG_FILE,
        json.dumps({**CONFIG, "model": {**CONFIG["model"], "text": 3}}).encode(),
    ),
    "a text as size": (
        CONFIG_FILE,
        json.dumps({**CONFIG, "model": {**CONFIG["model"], "size": "x"}}).encode(),
    ),
    "a negative size": (
        CONFIG_FILE,
        json.dumps({**CONFIG, "model": {**CONFIG["model"], "size": -1}}).encode(),
    ),
    "zeros as words": (WORDS, b"\0\0\xff"),
    "bytes as namespaces": ("vocabulary/non_padded_namespaces.txt", b"\xff\xfe"),
}


class TestErrors:
    """
    Whatever a reader of a file raises gets the file's name, in one sentence, and no advice to run
    what is in it.
    """

    @pytest.mark.parametrize(("name", "content"), DAMAGED.values(), ids=list(DAMAGED))
    def test_they_name_the_file(self, archive, name, content):
        path = archive()
        replace_in(path, name, content)
        with pytest.raises((ValueError, OSError)) as error:
            load_archive(path)
        message = str(error.value)
        assert str(path) in message or Path(name).name in message
        assert "\n" not in message and "weights_only" not in message and len(message) < 800

    @pytest.mark.parametrize(
        "content",
        [b"", b"\0" * 2000, b"x" * 2000, b"\x1f\x8b" + b"x" * 100, b"\xfd7zXZ\0" * 9, b"PK\3\4"],
    )
    def test_so_do_those_of_archives(self, tmp_path, content):
        path = tmp_path / "model.tar.gz"
        path.write_bytes(content)
        for read in (load_archive, read_config):
            with pytest.raises(ValueError, match=r"model\.tar\.gz") as error:
                read(path)
            assert "\n" not in str(error.value)

    def test_those_of_a_trusted_class_are_its_own(self, archive):
        path = archive({**CONFIG, "model": {"type": "archives_test_model", "size": -1}})
        with pytest.raises(ValueError, match="expected a size") as error:
            load_archive(path, trusted=True)
        assert type(error.value) is ValueError


class TestReadConfigsAsJson:
    def test_a_recovered_config_is_not_evaluated(self, tmp_path):
        config = Params({"a": 1, "b": [{"c": 2.5}]})
        (tmp_path / "log.txt").touch()
        config.to_file(str(tmp_path / "config.json"))
        create_serialization_dir(config, str(tmp_path), recover=True, force=False)
        with pytest.raises(ConfigurationError, match="does not match"):
            create_serialization_dir(Params({"a": 2}), str(tmp_path), recover=True, force=False)
        (tmp_path / "config.json").write_text(
            "local f(n) = if n == 0 then 1 else f(n - 1) + f(n - 1); {a: f(60)}"
        )
        with pytest.raises(ConfigurationError, match=r"config\.json"):
            create_serialization_dir(config, str(tmp_path), recover=True, force=False)


class TestTrust:
    def test_it_is_an_argument_of_one_load(self, archive, tmp_path, monkeypatch):
        (tmp_path / "archives_test_package").mkdir()
        (tmp_path / "archives_test_package" / "__init__.py").write_text(
            "from allennlp.data.dataset_readers import DatasetReader\n"
            "class Mine(DatasetReader):\n    pass\n"
        )
        monkeypatch.syspath_prepend(str(tmp_path))
        path = archive({**CONFIG, "dataset_reader": {"type": "archives_test_package.Mine"}})
        assert type(load_archive(path, trusted=True).dataset_reader).__name__ == "Mine"
        import_module_and_submodules("archives_test_package")
        with pytest.raises(ConfigurationError, match="archives_test_package"):
            load_archive(path)

    def test_an_archive_in_a_trusted_one_is_trusted(self, archive, tmp_path):
        inner = archive({**CONFIG, "model": {"type": f"{__name__}.TinyModel"}}).rename(
            tmp_path / "inner.tar.gz"
        )
        config = {**CONFIG, "model": {"type": "from_archive", "archive_file": str(inner)}}
        assert isinstance(load_archive(archive(config), trusted=True).model, TinyModel)
        for path in (inner, archive(config)):
            with pytest.raises(
                ConfigurationError, match=r"expected a (listed|registered) Model.*--trust"
            ):
                load_archive(path)

    def test_the_archive_of_a_test_is_trusted(self, archive):
        config = {**CONFIG, "dataset_reader": {"type": f"{__name__}.Reader"}}
        assert isinstance(
            model_test_case.load_archive(archive(config), cuda_device=-1).dataset_reader, Reader
        )

    def test_the_time_for_a_config_grows_with_its_length(self, archive):
        def seconds(n: int) -> float:
            text = '{"a": "' + '\\"' * n + "/*," * n
            start = time.process_time()
            with pytest.raises(ConfigurationError, match="expected JSON"):
                load_archive(archive(text))
            return time.process_time() - start

        assert min(seconds(100_000) for _ in range(3)) < 5
