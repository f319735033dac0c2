import re
import shutil

import pytest

from elmo_tasks.files.sealed_json import read_sealed, write_sealed
from elmo_tasks.replication import Results, read_sources
from elmo_tasks.replication.report.layer_weights import LayerWeight
from tests.replication.overview.folders import copied_results, write_run_file, write_run_folder


class TestReadSources:
    def test_tables_are_those_of_the_result_files(self, tmp_path):
        """Oracle: the files: their titles, and a score of table 1 with what its file says of it."""
        sources = read_sources(copied_results(tmp_path))
        assert [table.title.partition(":")[0] for table in sources.tables] == [f"Table {n}" for n in (1, 2, 3, 5, 6, 7)]
        assert sources.problems == []
        of_seed = {(run.table, run.task, run.variant, run.seed): run for run in sources.runs}
        run = of_seed["Table 1: baseline and ELMo", "snli", "both", 1]
        assert (run.dev, run.test, run.facts["commit"]) == (70.29, 69.39, "bc2ccc6")
        assert run.facts["command"] == (
            "allennlp elmo-tables --table 1 --tasks snli --seeds 3 --arguments '{\"hidden\": 150}' "
            "--overrides '{\"trainer.num_epochs\": 4}'"
        )
        ner = next(run for run in sources.runs if (run.task, run.variant) == ("ner", "input"))
        assert (ner.seed, ner.dev, ner.test) == (None, "47.16 ± 0.74 (3 seeds)", "38.02 ± 1.60 (3 seeds)")

    def test_runs_with_files_of_their_own_make_tables(self, tmp_path):
        """Oracle: by hand: the cells of two seeds and one, the facts and the weights of a run."""
        for seed, dev in ((1, 80.0), (2, 82.0)):
            write_run_file(tmp_path, "ner", "input", seed, dev, weights=(0.5, 0.3, 0.2))
        write_run_folder(tmp_path, "ner", "baseline", 1, 70.0)
        sources = read_sources(tmp_path)
        (table,) = sources.tables
        assert table.title.startswith("Table 1") and table.rows[0][2:4] == ["70.00 (1)", "80.00 ± 1.41 (2)"]
        baseline, first, _ = sources.runs
        assert baseline.finished.epochs == (70.0, 70.0) and '"type": "</pre><b>"' in baseline.config
        assert first.finished.epochs == (78.0, 80.0) and first.finished.layer_weights[0] == LayerWeight(
            "input", 0, 0.5, 1.5
        )
        expected = {
            "run file": "runs/ner/input/1.json",
            "commits": "abc1234",
            "digest of the config": "c0ffee",
            "digest of data/train.txt": "d00d",
            "arguments of the template": '{"hidden": 150}',
            "machines": "a machine",
        }
        assert expected.items() <= first.facts.items()

    def test_tasks_and_columns_that_the_paper_does_not_have_are_in_its_tables(self, tmp_path):
        """Oracle: by hand: Table 2 of SST-5, a second biLM in Table 1, and no column of the last layer there."""
        for variant in ("baseline", "both", "both-tuned", "both-top"):
            write_run_file(tmp_path, "sst", variant, 1, 40.0)
        first, second, _ = read_sources(tmp_path).tables
        assert first.columns[2:5] == ["baseline", "ELMo", "tuned"] and first.rows[0][4] == "39.00 (1)"
        assert [second.title[:7], second.rows[0][0]] == ["Table 2", "SST-5"]

    def test_what_cannot_be_read_is_named_and_the_rest_is_read(self, tmp_path):
        """Oracle: the sentences: a changed file, a failed run, one of another format, a score of 101, no JSON."""
        write_run_file(tmp_path, "ner", "input", 1, 80.0)
        changed = write_run_file(tmp_path, "ner", "input", 2, 81.0)
        changed.write_text(changed.read_text().replace("81.0", "91.0"))
        write_run_file(tmp_path, "ner", "input", 3, 80.0, status="failed", reason="out of memory")
        write_run_file(tmp_path, "ner", "input", 4, 80.0, format=2)
        write_run_file(tmp_path, "ner", "input", 5, 101.0)
        (tmp_path / "table1.json").write_text("[")
        folder = write_run_folder(tmp_path, "ner", "baseline", 1, 70.0)
        write_sealed(folder / "record.json", {**read_sealed(folder / "record.json"), "finished": None})
        sources = read_sources(tmp_path)
        assert [run.seed for run in sources.runs] == [1]
        wanted = ("table1.json must be JSON", "2.json is damaged or was changed", "has failed: out of memory")
        wanted += ("must have a format up to 1", "from 0 to 100, but has 101.0", "baseline/1 must be a finished run")
        assert len(sources.problems) == len(wanted)
        for problem, words in zip(sources.problems, wanted, strict=True):
            assert words in problem

    @pytest.mark.parametrize(
        ("other", "named"),
        [
            (
                {"config": "c1"},
                r"ner/input/1 and ner/input/2 must have the same digest of the config, .* c0ffee and c1;",
            ),
            ({"computation": "b1"}, r"digest of what the code computes, but have ba5e and b1; move those of one kind"),
            ({"inputs": {"data/train.txt": "d1"}}, r"ner/baseline/1 and ner/input/2 must have .* data/train.txt"),
            ({"inputs": {"/mine/train.txt": "d1"}}, r"ner/baseline/1 and ner/input/2 must have .* /mine/train.txt"),
            ({"inputs": {"mine.txt": "d1"}}, r"ner/baseline/1 and ner/input/2 must have .* digest of mine.txt"),
        ],
    )
    def test_runs_of_other_data_settings_or_code_make_no_table(self, tmp_path, other, named):
        """Oracle: the sentence; the runs are there, and the table of another task."""
        inputs = {"data/train.txt": "d00d", "/mine/train.txt": "d00d", "mine.txt": "d00d"}
        digests = {"config": "c0ffee", "computation": "ba5e", "inputs": inputs}
        write_run_file(tmp_path, "ner", "baseline", 1, 70.0, digests={**digests, "computation": "of the baseline"})
        write_run_file(tmp_path, "ner", "input", 1, 80.0, digests=digests)
        write_run_file(tmp_path, "ner", "input", 2, 82.0, digests={**digests, **other})
        write_run_file(tmp_path, "sst", "baseline", 1, 40.0, digests={**digests, "inputs": {"data/sst/train.txt": "e"}})
        sources = read_sources(tmp_path)
        assert sources.tables and all(row[0] == "SST-5" for table in sources.tables for row in table.rows)
        assert len(sources.runs) == 4
        (problem,) = sources.problems
        assert problem.startswith("NER is in no table of runs: ") and re.search(named, problem)

    @pytest.mark.parametrize(
        ("digests", "about", "named"),
        [
            ({"computation": "b1"}, {}, "both/1 and snli/input/1 must have the same digest of what the code computes"),
            ({"inputs": {"biLM/weights.hdf5": "w1"}}, {}, "the same digest of biLM/weights.hdf5, but have w0 and w1"),
            ({}, {"overrides": {"a": 1}}, "the same overrides of the config, but have none and "),
            ({}, {"arguments": {"hidden": 300}}, "the same arguments of the template, but have none and "),
        ],
    )
    def test_variants_of_another_kind_make_no_table(self, tmp_path, digests, about, named):
        """Oracle: the sentence, where the two runs are in two columns."""
        common = {"config": "c0ffee", "computation": "ba5e", "inputs": {"biLM/weights.hdf5": "w0"}}
        write_run_file(tmp_path, "snli", "both", 1, 70.0, digests=common, about={})
        write_run_file(tmp_path, "snli", "input", 1, 80.0, digests={**common, **digests}, about=about)
        sources = read_sources(tmp_path)
        assert not sources.tables and len(sources.runs) == 2
        assert named in sources.problems[0]

    def test_one_run_with_two_scores_is_in_no_table(self, tmp_path):
        """
        Oracle: the sentences, and the seeds of the table: of a file and a folder, and of two files, as after the files
        of two machines were copied together. A copy with the same scores is the same run.
        """
        for seed in (1, 2, 3):
            write_run_file(tmp_path, "ner", "input", seed, 80.0)
        write_run_folder(tmp_path, "ner", "input", 1, 70.0)
        runs = tmp_path / "runs" / "ner" / "input"
        write_sealed(runs / "2-of-another.json", {**read_sealed(runs / "2.json"), "dev": 60.0})
        shutil.copy(runs / "3.json", runs / "3-copy.json")
        sources = read_sources(tmp_path)
        (table,) = sources.tables
        assert table.rows[0][3] == "79.00 (1)" and [run.seed for run in sources.runs] == [3]
        of_folder, of_files = sorted(sources.problems)
        assert re.search(r"ner/input/1 is in no table, .*/1\.json and .*record\.json have it with other", of_folder)
        assert re.search(r"ner/input/2 is in no table, .*/2-of-another\.json and .*/2\.json have it", of_files)

    def test_overrides_in_another_order_are_the_same(self, tmp_path):
        """Oracle: a table of the two runs, and no problem."""
        write_run_file(tmp_path, "snli", "both", 1, 70.0, about={"overrides": {"a": 1, "b": 2}})
        write_run_file(tmp_path, "snli", "input", 1, 80.0, about={"overrides": {"b": 2, "a": 1}})
        sources = read_sources(tmp_path)
        assert sources.tables and not sources.problems

    def test_a_link_that_leads_nowhere_is_named(self, tmp_path):
        """Oracle: the sentence has the file."""
        path = write_run_file(tmp_path, "ner", "input", 1, 80.0)
        path.with_name("2.json").symlink_to(tmp_path / "nothing.json")
        (problem,) = read_sources(tmp_path).problems
        assert "ner/input/2.json" in problem

    def test_the_bilms_of_table_7_are_no_runs_of_tasks(self, tmp_path):
        """Oracle: no problem."""
        write_run_folder(tmp_path, "ner", "baseline", 1, 70.0)
        write_sealed(write_run_folder(tmp_path, "bilm", "ner", 1, 70.0, "ner") / "record.json", {"identity": {}})
        assert read_sources(tmp_path).problems == []

    def test_a_table_that_cannot_be_made_is_named(self, tmp_path):
        """Oracle: the sentence, for two runs with other numbers of sentences; the runs are there."""
        for variant, sentences, score in (("baseline", "1;0", 50.0), ("both", "1;1;1", 100.0)):
            write_run_file(tmp_path, "snli", variant, 1, score, test=score, sentences=sentences)
        sources = read_sources(tmp_path)
        assert not any(table.title.startswith("Table 1") for table in sources.tables) and len(sources.runs) == 2
        assert any("must be compared on the same sentences" in problem for problem in sources.problems)

    def test_a_table_that_a_result_file_has_too_is_there_once(self, tmp_path):
        """Oracle: the titles: the same rows are one table, of the runs; other rows are a second one."""
        for seed, dev in ((1, 80.0), (2, 82.0)):
            write_run_file(tmp_path, "ner", "input", seed, dev)
        runs = [
            {"task": "ner", "variant": "input", "seed": seed, "dev": dev, "test": dev - 1}
            for seed, dev in ((1, 80.0), (2, 82.0))
        ]
        results = Results("table 1", [{**run, "metric": "f1-measure-overall"} for run in runs])
        (tmp_path / "table1.json").write_text(results.to_json({}))
        same = read_sources(tmp_path)
        assert [table.title for table in same.tables] == ["Table 1: baseline and ELMo"]
        assert [run.table for run in same.runs] == [None, None]
        write_run_file(tmp_path, "ner", "input", 3, 70.0)
        other = read_sources(tmp_path)
        assert [table.title for table in other.tables] == [
            "Table 1: baseline and ELMo",
            "Table 1: baseline and ELMo (of the runs that have files of their own)",
        ]
        assert len(other.runs) == 5

    def test_a_folder_without_results_is_an_error(self, tmp_path):
        """Oracle: the messages."""
        with pytest.raises(FileNotFoundError, match=r"a folder of results '.*none', but there is none"):
            read_sources(tmp_path / "none")
        with pytest.raises(ValueError, match=r"must have results \(table\*.json, runs/, or folders of runs\), but"):
            read_sources(tmp_path)
        (tmp_path / "table1.json").write_text("{}")
        with pytest.raises(ValueError, match=r"but has none: .*table1.json must be a result file"):
            read_sources(tmp_path)
