"""Tests of the measurement of Table 5."""

import json
import xml.etree.ElementTree as ElementTree

import pytest

from elmo_tasks.analysis.wsd_measurement import WsdMeasurement
from tests.paths import FIXTURES, TINY_BILM

WSD = FIXTURES / "wsd"


@pytest.fixture(scope="module")
def measured():
    return WsdMeasurement.of(str(TINY_BILM), WSD, wordnet=WSD / "wordnet", max_sentences=2)


class TestWsdMeasurement:
    def test_it_learns_from_as_many_sentences_as_it_may(self, measured):
        """Oracle: the instances of the first two sentences, counted in the XML."""
        sentences = list(ElementTree.parse(WSD / "train" / "semcor-mini.data.xml").iter("sentence"))
        assert measured.senses.n_instances == sum(len(sentence.findall("instance")) for sentence in sentences[:2])
        assert len(sentences) > 2

    def test_the_file_says_how_it_was_measured_and_not_where(self, measured, tmp_path):
        """Oracle: by hand; the scores of the object; no path of this machine."""
        measured.write_scores(tmp_path / "new" / "scores.json")
        text = (tmp_path / "new" / "scores.json").read_text()
        found = json.loads(text)
        expected = {"table": "table 5", "bilm": TINY_BILM.name, "wordnet": True, "first_senses": "WordNet"}
        expected |= {"distance": "cosine", "max_sentences": 2, "training": "semcor-mini"}
        assert expected.items() <= found.items()
        assert str(WSD) not in text
        assert set(found["sets"]) == {"mini-1", "mini-2"}
        assert found["scores"]["layer 1"]["mini-1"]["f1"] == measured.scores["layer 1"]["mini-1"].f1

    def test_answers_go_to_a_new_folder(self, measured, tmp_path):
        """Oracle: a file for each set and representation; a folder that is there is an error."""
        measured.write_answers(tmp_path / "answers")
        names = {path.name for path in (tmp_path / "answers").iterdir()}
        expected = {f"{each.name}.{name.replace(' ', '-')}.key.txt" for each in measured.sets for name in each.answers}
        assert names == expected and "mini-2.layer-2.key.txt" in names
        with pytest.raises(FileExistsError):
            measured.write_answers(tmp_path / "answers")
