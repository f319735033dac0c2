"""Tests of the list of corpora."""

from elmo_tasks.environment import config_variables, evaluate_file
from elmo_tasks.files.checksums import write_checksum
from elmo_tasks.public_data import CORPORA
from tests.paths import TRAINING_CONFIGS

VARIABLES = {
    "ELMO_TASKS_DATA": "DATA",
    "ELMO_TASKS_GLOVE": "glove.6B.100d.txt",
    "ELMO_TASKS_BILM": "small-open",
    "ELMO_TASKS_LAYER": "mix",
}


class TestCorpora:
    def test_they_are_where_the_configs_look_for_them(self):
        """Oracle: the evaluated templates of the tasks; word vectors are those of `ELMO_TASKS_GLOVE`."""
        for name in ("snli", "squad", "sst", "ner"):
            config = evaluate_file(str(TRAINING_CONFIGS / f"{name}.jsonnet"), VARIABLES)
            for file in (*CORPORA[name].files, *CORPORA["glove"].files):
                assert all(f"DATA/{place}" in config for place in file.places), name

    def test_downloaded_vectors_are_found_without_a_name(self, tmp_path):
        """Oracle: the only file of vectors that a download leaves, next to its checksum."""
        (file,) = CORPORA["glove"].files
        (place,) = file.places
        (tmp_path / "glove").mkdir()
        (tmp_path / place).write_text("the 1\n")
        write_checksum(tmp_path / place)
        assert config_variables({"ELMO_TASKS_DATA": str(tmp_path)})["ELMO_TASKS_GLOVE"] == (tmp_path / place).name

    def test_each_place_is_that_of_one_corpus(self):
        """Oracle: the list itself; only `https` is used."""
        files = [file for corpus in CORPORA.values() for file in corpus.files]
        places = [place for file in files for place in file.places]
        assert len(set(places)) == len(places)
        assert all(file.url.startswith("https://") for file in files)
        assert all((file.place is None) == bool(file.members) for file in files)
