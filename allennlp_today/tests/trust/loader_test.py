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
from allennlp_today.trust.unpacking import unpack

CONFIG = {
    "dataset_reader": {"type": "archives_test_reader"},
    "model": {"type": "archives_test_model"},
}
HARMLESS = {
    "arguments": {"text": "text"},
    "DatasetReader": {"archives_test_reader": "reads nothing"},
    "Model": {"archives_test_model": "tensors"},
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
        assert torch.equal(model.weight, torch.rand(4000, generator=torch.Generator().manual_seed(0)))
        with tarfile.open(archive()) as tar:
            tar.extractall(tmp_path / "folder", filter="data")
        assert isinstance(load_archive(tmp_path / "folder").model, TinyModel)

    def test_the_config_may_have_comments_and_trailing_commas(self, archive):
        """In an archive that somebody packed themselves; AllenNLP's own tests have one."""
        text = json.dumps({**CONFIG, "model": {"type": "archives_test_model", "text": "a // b, }"}}, indent=1)
        text = "# By hand.\n" + text.replace("\n}", ", // The end.\n} /* of it */")
        assert load_archive(archive(text)).model.text == "a // b, }"

    @pytest.mark.parametrize(
        "text", ["{model: {type: importstr '/etc/hostname'}}", "{model: std.extVar('HOME')}", "", "[" * 100_000]
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
        for path, damaged in ((archive(), archive()), (tmp_path / "folder", tmp_path / "folder" / "weights.th")):
            content = bytearray(damaged.read_bytes())
            content[len(content) // 2] ^= 1
            damaged.write_bytes(content)
            with pytest.raises(ValueError, match=damaged.name):
                load_archive(path)


class TestReadConfigsAsJson:
    def test_a_recovered_config_is_not_evaluated(self, tmp_path):
        config = Params({"a": 1, "b": [{"c": 2.5}]})
        (tmp_path / "log.txt").touch()
        config.to_file(str(tmp_path / "config.json"))
        create_serialization_dir(config, str(tmp_path), recover=True, force=False)
        with pytest.raises(ConfigurationError, match="does not match"):
            create_serialization_dir(Params({"a": 2}), str(tmp_path), recover=True, force=False)
        (tmp_path / "config.json").write_text("local f(n) = if n == 0 then 1 else f(n - 1) + f(n - 1); {a: f(60)}")
        with pytest.raises(ConfigurationError, match=r"config\.json"):
            create_serialization_dir(config, str(tmp_path), recover=True, force=False)


class TestTrust:
    def test_it_is_an_argument_of_one_load(self, archive, tmp_path, monkeypatch):
        (tmp_path / "archives_test_package").mkdir()
        (tmp_path / "archives_test_package" / "__init__.py").write_text(
            "from allennlp.data.dataset_readers import DatasetReader\nclass Mine(DatasetReader):\n    pass\n"
        )
        monkeypatch.syspath_prepend(str(tmp_path))
        path = archive({**CONFIG, "dataset_reader": {"type": "archives_test_package.Mine"}})
        assert type(load_archive(path, trusted=True).dataset_reader).__name__ == "Mine"
        import_module_and_submodules("archives_test_package")
        with pytest.raises(ConfigurationError, match="archives_test_package"):
            load_archive(path)

    def test_an_archive_in_a_trusted_one_is_trusted(self, archive, tmp_path):
        inner = archive({**CONFIG, "model": {"type": f"{__name__}.TinyModel"}}).rename(tmp_path / "inner.tar.gz")
        config = {**CONFIG, "model": {"type": "from_archive", "archive_file": str(inner)}}
        assert isinstance(load_archive(archive(config), trusted=True).model, TinyModel)
        for path in (inner, archive(config)):
            with pytest.raises(ConfigurationError, match=r"expected a (listed|registered) Model.*--trust"):
                load_archive(path)

    def test_the_archive_of_a_test_is_trusted(self, archive):
        config = {**CONFIG, "dataset_reader": {"type": f"{__name__}.Reader"}}
        assert isinstance(model_test_case.load_archive(archive(config), cuda_device=-1).dataset_reader, Reader)

    def test_the_time_for_a_config_grows_with_its_length(self, archive):
        def seconds(n: int) -> float:
            text = '{"a": "' + '\\"' * n + "/*," * n
            start = time.process_time()
            with pytest.raises(ConfigurationError, match="expected JSON"):
                load_archive(archive(text))
            return time.process_time() - start

        assert min(seconds(100_000) for _ in range(3)) < 5
