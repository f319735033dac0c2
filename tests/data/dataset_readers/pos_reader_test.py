from pathlib import Path

from allennlp.data import Instance

from elmo_tasks.data import PosReader


def line(number: object, word: str, upos: str = "NOUN", xpos: str = "NN") -> str:
    return "\t".join([str(number), word, "_", upos, xpos, *["_"] * 5]) + "\n"


SENTENCE = line(1, "Dogs", "NOUN", "NNS") + line(2, "bark", "VERB", "VBP")


def content_of(instance: Instance) -> tuple[list[str], list[str] | None]:
    words = [token.text for token in instance["tokens"]]
    assert instance["metadata"].metadata["words"] == words
    return words, instance["tags"].labels if "tags" in instance.fields else None


def read(
    path: Path, content: str | bytes, **kwargs: object
) -> list[tuple[list[str], list[str] | None]]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return [content_of(instance) for instance in PosReader(**kwargs).read(str(path))]


class TestPosReader:
    def test_words_and_tags_are_read(self, path):
        content = f"# text = Dogs bark\n{SENTENCE}\n\n# newdoc\n{line(1, 'Yes', 'INTJ', 'UH')}"
        assert read(path, content) == [(["Dogs", "bark"], ["NOUN", "VERB"]), (["Yes"], ["INTJ"])]
        assert read(path, content, tags="xpos") == [
            (["Dogs", "bark"], ["NNS", "VBP"]),
            (["Yes"], ["UH"]),
        ]
        assert read(path, content, tags="both")[1] == (["Yes"], ["INTJ|UH"])

    def test_multiword_tokens_and_empty_nodes_are_skipped(self, path):
        content = (
            line("0.1", "They", "PRON", "PRP")
            + line("1-2", "don't", "_", "_")
            + line(1, "do", "AUX", "VBP")
            + line(2, "n't", "PART", "RB")
            + line("2.1", "go", "VERB", "VB")
        )
        assert read(path, content) == [(["do", "n't"], ["AUX", "PART"])]

    def test_a_word_may_have_spaces_or_be_an_underscore(self, path):
        assert read(path, line(1, "20 000", "NUM") + line(2, "_", "SYM")) == [
            (["20 000", "_"], ["NUM", "SYM"])
        ]

    def test_a_prediction_reads_no_tags(self, path):
        path.write_text(line(1, "Dogs", "N") + line(2, "bark", "_"))
        reader = PosReader()
        reader.reads_gold = False
        assert [content_of(instance) for instance in reader.read(str(path))] == [
            (["Dogs", "bark"], None)
        ]
