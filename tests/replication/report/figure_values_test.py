"""Tests of the values of figures."""

import io
import json

import pytest
import torch

from elmo_tasks.replication import FinishedRun, by_epochs, by_sizes, mixes


class TestBySizes:
    def test_means_over_seeds_by_size(self, make_run, finish):
        """Oracle: by hand; all of the training set is 100."""
        runs = [finish(make_run(seed=seed, size=size), dev) for seed, size, dev in ((1, 10, 0.5), (2, 10, 0.7))]
        runs.append(finish(make_run(), 0.75))
        small, full = by_sizes(map(FinishedRun.of, runs), lambda task: 100)
        assert (small["size"], small["n"]) == (10, 2)
        assert (small["mean"], small["sd"]) == (pytest.approx(60.0), pytest.approx(20 / 2**0.5))
        assert full == {"task": "snli", "variant": "both", "size": 100, "mean": 75.0, "sd": "", "n": 1}


class TestByEpochs:
    def test_runs_that_ended_earlier_are_left_out_of_later_epochs(self, make_run, finish):
        """Oracle: by hand; a run on a part of the data is not there."""
        runs = [finish(make_run(seed=seed, size=size)) for seed, size in ((1, None), (2, None), (3, 10))]
        for run, scores in zip(runs, ([0.5, 0.6], [0.7], [0.1]), strict=True):
            for epoch, score in enumerate(scores):
                path = run.serialization_dir / f"metrics_epoch_{epoch}.json"
                path.write_text(json.dumps({"validation_accuracy": score}))
        rows = by_epochs(map(FinishedRun.of, runs))
        assert [(row["epoch"], row["n"], row["mean"]) for row in rows] == [
            (1, 2, pytest.approx(60.0)),
            (2, 1, pytest.approx(60.0)),
        ]

    @pytest.mark.parametrize("content", ["{", "[]", "{}", '{"validation_accuracy": "x"}'])
    def test_a_damaged_file_is_named(self, make_run, finish, content):
        """Oracle: the message."""
        run = finish(make_run())
        (run.serialization_dir / "metrics_epoch_0.json").write_text(content)
        with pytest.raises(ValueError, match=r"metrics_epoch_0\.json must (be JSON|have a number as 'validation_acc)"):
            by_epochs(map(FinishedRun.of, [run]))

    def test_scores_that_were_changed_after_the_end_are_refused(self, make_run, finish):
        """Oracle: the message."""
        run = finish(make_run())
        file = run.serialization_dir / "metrics.json"
        file.write_text(file.read_text().replace("0.5", "0.6"))
        with pytest.raises(ValueError, match=r"metrics\.json is damaged or was replaced"):
            by_sizes(map(FinishedRun.of, [run]), lambda task: 100)


class TestMixes:
    def test_a_row_for_each_layer(self, make_run, finish, write_archive):
        """Oracle: by hand."""
        name = "text_field_embedder.token_embedder_elmo.mix"
        content = io.BytesIO()
        torch.save({f"{name}.layer_weights": torch.zeros(2), f"{name}.gamma": torch.ones(())}, content)
        run = finish(make_run(seed=4))
        write_archive(run.serialization_dir / "model.tar.gz", content.getvalue())
        assert mixes([FinishedRun.of(run, with_layers=True)]) == [
            {"task": "snli", "place": "input", "seed": 4, "layer": layer, "weight": 0.5, "gamma": 1.0}
            for layer in (0, 1)
        ]
