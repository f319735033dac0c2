"""Tests of a run."""


class TestRun:
    def test_its_folder_says_what_it_is(self, make_run, tmp_path):
        """Oracle: by hand."""
        assert make_run().folder == tmp_path / "results" / "snli" / "both" / "1"
        assert make_run(size=1000, seed=3).name == "snli/both-of-1000/3"
        assert make_run().serialization_dir == make_run().folder / "run"

    def test_its_digest_is_that_of_its_identity(self, make_run):
        """Oracle: equal and unequal runs."""
        assert make_run().digest == make_run().digest != make_run(value=2).digest
