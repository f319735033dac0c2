import filecmp

import pytest
from allennlp.common import Params

from elmo_tasks.__main__ import main
from tests.paths import SHIPPED_BILM


class TestMain:
    @pytest.mark.parametrize("name", ["none.txt", "broken.txt"])
    def test_an_error_is_one_line_that_names_the_file(self, tmp_path, capsys, name):
        (tmp_path / "broken.txt").write_bytes(b"\xff\n")
        assert main(["embed", str(tmp_path / name), str(tmp_path / "out.h5")]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert name in line

    @pytest.mark.parametrize("variable", ["ELMO_TASKS_DEBUG", "ALLENNLP_DEBUG"])
    def test_a_variable_shows_the_traceback(self, tmp_path, monkeypatch, variable):
        monkeypatch.setenv(variable, "1")
        with pytest.raises(FileNotFoundError):
            main(["embed", str(tmp_path / "none.txt"), str(tmp_path / "out.h5")])


class TestDownload:
    def test_it_prints_the_folder(self, capsys):
        assert main(["download", "small-open"]) == 0
        assert capsys.readouterr().out == f"small-open: {SHIPPED_BILM}\n"


class TestConfigs:
    def test_the_copies_are_whole_and_can_be_evaluated(
        self, environment, training_configs, tmp_path
    ):
        folder = tmp_path / "new" / "configs"
        assert main(["configs", str(folder)]) == 0
        shipped_files = [path for path in training_configs.rglob("*") if path.is_file()]
        names = {path.relative_to(training_configs) for path in shipped_files}
        copies = [path for path in folder.rglob("*") if path.is_file()]
        assert {path.relative_to(folder) for path in copies} == names
        _, different, missing = filecmp.cmpfiles(training_configs, folder, names, shallow=False)
        assert not different and not missing
        copied = Params.from_file(folder / "ner_elmo.jsonnet")
        shipped = Params.from_file(training_configs / "ner_elmo.jsonnet")
        assert copied.as_dict(quiet=True) == shipped.as_dict(quiet=True)

    def test_an_existing_folder_is_not_changed(self, tmp_path):
        config = tmp_path / "ner.jsonnet"
        config.write_text("changed")
        assert main(["configs", str(tmp_path)]) == 1
        assert list(tmp_path.iterdir()) == [config]
        assert config.read_text() == "changed"
