import json
import shutil

import pytest

from elmo_tasks.data.formats.coref_conll import read_documents
from tests.training_configs.configs import train_and_clear


@pytest.mark.slow
class TestTraining:
    @pytest.mark.parametrize("name", ["coref.jsonnet", "coref_elmo.jsonnet"])
    def test_a_published_config_trains_and_its_archive_stands_alone(
        self, environment, command, tmp_path, fixtures_root, name
    ):
        """
        Oracle: AllenNLP's commands, on the config as it is but for one epoch: the archive predicts though data, word
        vectors and biLM are deleted; a file in columns and its words in JSON lines have the same predictions; the file
        for the reference scorer has them too.
        """
        for part in ("coref", "glove"):
            shutil.copytree(fixtures_root / part, tmp_path / "small" / part)
        trained = train_and_clear(command, environment, tmp_path, tmp_path / "small", name)
        assert 0.0 <= trained.metrics()["validation_coref_f1"] <= 1.0
        assert trained.metrics()["training_mention_recall"] > 0.0
        columns = trained.data / "test.conll"
        documents = list(read_documents(str(columns)))
        lines = tmp_path / "test.jsonl"
        lines.write_text(
            "".join(
                json.dumps(
                    {
                        "sentences": document.sentences,
                        "speakers": [speakers[0] for speakers in document.speakers],
                        "genre": document.name[:2],
                    }
                )
                + "\n"
                for document in documents
            )
        )
        from_lines = trained.predictions(lines, "--batch-size", "3")
        from_columns = trained.predictions(columns, "--use-dataset-reader")
        assert [prediction["sentences"] for prediction in from_columns] == [d.sentences for d in documents]
        assert [prediction["clusters"] for prediction in from_columns] == [p["clusters"] for p in from_lines]
        output = tmp_path / "output.conll"
        command("elmo-coref-conll", trained.run / "predictions.jsonl", output)
        written = list(read_documents(str(output)))
        assert [(d.name, d.part, d.sentences) for d in written] == [(d.name, d.part, d.sentences) for d in documents]
        for document, prediction in zip(written, from_columns, strict=True):
            assert document.clusters == sorted([sorted(map(tuple, cluster)) for cluster in prediction["clusters"]])
