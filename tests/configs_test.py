"""Tests of `python -m elmo_tasks configs`."""

import filecmp

from allennlp.common import Params

from elmo_tasks.__main__ import main


class TestWriteConfigs:
    def test_the_copies_are_whole_and_can_be_evaluated(self, environment, training_configs, tmp_path, capsys):
        """Oracle: the files that ship, and the config that one of them evaluates to."""
        folder = tmp_path / "new" / "configs"
        assert main(["configs", str(folder)]) == 0
        names = {path.relative_to(training_configs) for path in training_configs.rglob("*.*sonnet")}
        assert {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()} == names
        assert filecmp.cmpfiles(training_configs, folder, names, shallow=False)[1:] == ([], [])
        copied, shipped = (Params.from_file(root / "ner_elmo.jsonnet") for root in (folder, training_configs))
        assert copied.as_dict(quiet=True) == shipped.as_dict(quiet=True)
        printed = capsys.readouterr().out
        assert f"wrote {len(names)} files to {folder}" in printed and "Next: allennlp train" in printed

    def test_files_that_are_there_are_overwritten_only_by_force(self, tmp_path, capsys):
        """Oracle: the content of a config that was changed, the exit status and the line."""
        config = tmp_path / "ner.jsonnet"
        config.write_text("changed")
        assert main(["configs", str(tmp_path)]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert str(config) in line and "--force" in line
        assert [path.name for path in tmp_path.iterdir()] == ["ner.jsonnet"] and config.read_text() == "changed"
        assert main(["configs", str(tmp_path), "--force"]) == 0
        assert config.read_text() != "changed"
