import json

import pytest

from tests.training_configs.configs import data_of, train_and_clear


@pytest.mark.slow
class TestTraining:
    @pytest.mark.parametrize("name", ["snli.jsonnet", "snli_elmo.jsonnet"])
    def test_a_published_config_trains_and_its_archive_stands_alone(
        self, environment, command, tmp_path, fixtures_root, name
    ):
        """
        Oracle: AllenNLP's commands, on the config as it is but for one epoch: the archive predicts though data, word
        vectors and biLM are deleted; a table and the JSON lines of the same pairs have the same predictions.
        """
        data = data_of("snli", tmp_path / "fixtures", fixtures_root, n_train_lines=24)
        trained = train_and_clear(command, environment, tmp_path, data, name)
        assert 0.0 <= trained.metrics()["validation_accuracy"] <= 1.0
        source = trained.data / "dev.jsonl"
        pairs = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()]
        lines = tmp_path / "lines.jsonl"
        sentences = ({key: pair[key] for key in ("sentence1", "sentence2")} for pair in pairs)
        lines.write_text("".join(f"{json.dumps(pair)}\n" for pair in sentences), encoding="utf-8")
        from_lines = trained.predictions(lines, "--batch-size", "7")
        assert len(from_lines) == len(pairs)
        # Those that the annotators did not agree on can be predicted, but are not read.
        from_lines = [line for line, pair in zip(from_lines, pairs, strict=True) if pair["gold_label"] != "-"]
        from_table = trained.predictions(trained.data / "dev.txt", "--use-dataset-reader")
        assert len(from_table) == 24
        for one, other in zip(from_lines, from_table, strict=True):
            assert one.pop("probabilities") == pytest.approx(other.pop("probabilities"), abs=1e-4)
            assert one["premise_tokens"] == other["premise_tokens"]
            assert one["hypothesis_tokens"] == other["hypothesis_tokens"]
            assert "attention" not in one
