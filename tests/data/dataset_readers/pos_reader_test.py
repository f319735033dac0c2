from pathlib import Path
from typing import Any

from elmo_tasks.data import PosReader
from tests.data.dataset_readers.instances import TaggedWords, read_tagged


def line(number: object, word: str, upos: str = "NOUN", xpos: str = "NN") -> str:
    return "\t".join([str(number), word, "_", upos, xpos, *["_"] * 5]) + "\n"


SENTENCE = line(1, "Dogs", "NOUN", "NNS") + line(2, "bark", "VERB", "VBP")


def read(path: Path, content: str, **arguments: Any) -> list[TaggedWords]:
    return read_tagged(PosReader(**arguments), path, content)


class TestPosReader:
    def test_words_and_tags_are_read(self, path):
        content = f"# text = Dogs bark\n{SENTENCE}\n\n# newdoc\n{line(1, 'Yes', 'INTJ', 'UH')}"
        dogs = ["Dogs", "bark"]
        yes = ["Yes"]
        assert read(path, content) == [(dogs, ["NOUN", "VERB"]), (yes, ["INTJ"])]
        assert read(path, content, tags="xpos") == [(dogs, ["NNS", "VBP"]), (yes, ["UH"])]
        expected = [(dogs, ["NOUN|NNS", "VERB|VBP"]), (yes, ["INTJ|UH"])]
        assert read(path, content, tags="both") == expected

    def test_multiword_tokens_and_empty_nodes_are_skipped(self, path):
        lines = [
            line("0.1", "They", "PRON", "PRP"),
            line("1-2", "don't", "_", "_"),
            line(1, "do", "AUX", "VBP"),
            line(2, "n't", "PART", "RB"),
            line("2.1", "go", "VERB", "VB"),
        ]
        assert read(path, "".join(lines)) == [(["do", "n't"], ["AUX", "PART"])]

    def test_a_word_may_have_spaces_or_be_an_underscore(self, path):
        content = line(1, "20 000", "NUM") + line(2, "_", "SYM")
        assert read(path, content) == [(["20 000", "_"], ["NUM", "SYM"])]

    def test_a_prediction_reads_no_tags(self, path):
        content = line(1, "Dogs", "N") + line(2, "bark", "_")
        reader = PosReader()
        reader.reads_gold = False
        assert read_tagged(reader, path, content) == [(["Dogs", "bark"], None)]
