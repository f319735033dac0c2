from pathlib import Path

from allennlp.common import Params
from allennlp.data import DatasetReader, Instance, Token, Vocabulary

from elmo_tasks.data import SrlReader
from tests.data.dataset_readers.instances import tags_of, words_in, write

SrlContent = tuple[list[str], list[int], list[str] | None]


def rows(words: str, *columns: str) -> str:
    """A sentence in CoNLL-2012 columns, with each predicate's column given as one string."""
    cells_of_columns = [column.split() for column in columns]
    lines = []
    for number, word in enumerate(words.split()):
        cells = [cells[number] for cells in cells_of_columns]
        first_cells = ["d", "0", str(number), word, "XX", "*", "-", "-", "-", "-", "*"]
        lines.append("   ".join([*first_cells, *cells, "-"]))
    return "\n".join(lines) + "\n"


def content_of(instance: Instance) -> SrlContent:
    indicator = list(instance["verb_indicator"].labels)
    return words_in(instance["tokens"]), indicator, tags_of(instance)


def read(path: Path, content: str) -> list[SrlContent]:
    return list(map(content_of, SrlReader().read(write(path, content))))


class TestSrlReader:
    def test_there_is_an_instance_for_each_predicate(self, path):
        sentences = [
            rows("Ann said Tom slept", "(ARG0*) (V*) (ARG1* *)", "* * (ARG0*) (V*)"),
            rows("Oh my"),
            rows("Go", "(V*)"),
        ]
        content = "\n".join(sentences)
        words = ["Ann", "said", "Tom", "slept"]
        assert read(path, f"#begin document (d); part 000\n{content}#end document\n") == [
            (words, [0, 1, 0, 0], ["B-ARG0", "B-V", "B-ARG1", "I-ARG1"]),
            (words, [0, 0, 0, 1], ["O", "O", "B-ARG0", "B-V"]),
            (["Go"], [1], ["B-V"]),
        ]

    def test_continuations_and_long_predicates_are_kept(self, path):
        content = rows("It , he went on , did up", "(ARG1*) * (ARG0*) (V* *) * (C-ARG1*) (C-V*)")
        tags = ["B-ARG1", "O", "B-ARG0", "B-V", "I-V", "O", "B-C-ARG1", "B-C-V"]
        words = ["It", ",", "he", "went", "on", ",", "did", "up"]
        assert read(path, content) == [(words, [0, 0, 0, 1, 1, 0, 0, 0], tags)]

    def test_two_predicates_may_share_a_word(self, path):
        content = rows("his hand shake", "(ARG0*) * (V*)", "* (ARG1*) (V*)")
        words = ["his", "hand", "shake"]
        assert read(path, content) == [
            (words, [0, 0, 1], ["B-ARG0", "O", "B-V"]),
            (words, [0, 0, 1], ["O", "B-ARG1", "B-V"]),
        ]

    def test_the_instances_match_allennlps(self, fixtures_root):
        """AllenNLP's reader marks `C-V`, and reads columns without a predicate."""
        import allennlp_models.structured_prediction  # noqa: F401

        folder = str(fixtures_root / "srl")
        allennlp_reader = DatasetReader.from_params(Params({"type": "srl"}))
        expected = []
        for instance in allennlp_reader.read(folder):
            words, indicator, tags = content_of(instance)
            if any(indicator):
                for index, tag in enumerate(tags):
                    if tag == "B-C-V":
                        indicator[index] = 0
                expected.append((words, indicator, tags))
        assert len(expected) > 100
        assert list(map(content_of, SrlReader().read(folder))) == expected

    def test_a_folder_is_read_in_the_order_of_names(self, tmp_path):
        for name in (
            "b/z.gold_conll",
            "b/a.v4_gold_conll",
            "a/c/x.gold_conll",
            "a/x.gold_skel",
            "x.txt",
        ):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(rows(name, "(V*)"))
        sentences = [words_in(instance["tokens"]) for instance in SrlReader().read(str(tmp_path))]
        assert sentences == [["a/c/x.gold_conll"], ["b/a.v4_gold_conll"], ["b/z.gold_conll"]]

    def test_text_to_instance_takes_words_and_tokens_and_may_have_no_tags(self):
        for words in (["Ann", "slept"], [Token("Ann"), Token("slept")]):
            instance = SrlReader().text_to_instance(words, [0, 1])
            assert content_of(instance) == (["Ann", "slept"], [0, 1], None)
            assert instance["metadata"].metadata == {
                "words": ["Ann", "slept"],
                "verb": "slept",
                "verb_index": 1,
            }

    def test_a_label_has_both_its_tags_in_the_vocabulary(self, path):
        path.write_text(rows("a b", "(ARG0*) (V*)"))
        vocabulary = Vocabulary.from_instances(SrlReader().read(str(path)))
        tags = {"B-ARG0", "I-ARG0", "B-V", "I-V"}
        assert set(vocabulary.get_token_to_index_vocabulary("labels")) == tags

    def test_punctuation_in_conversations_loses_its_slash(self, path):
        ((words, _, _),) = read(path, rows("Go /. /? /-", "(V*) * * *"))
        assert words == ["Go", ".", "?", "/-"]
