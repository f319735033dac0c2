from pathlib import Path
from typing import Any

from allennlp.common import Params
from allennlp.data import DatasetReader, Instance, Token, Vocabulary

from elmo_tasks.data import SrlReader


def rows(words: str, *columns: str) -> str:
    """A sentence in CoNLL-2012 columns, with each predicate's column given as one string."""
    cells = zip(words.split(), *(column.split() for column in columns), strict=True)
    return "".join(
        f"d   0   {n}   {word}   XX   *   -   -   -   -   *   {'   '.join([*more, '-'])}\n"
        for n, (word, *more) in enumerate(cells)
    )


def content_of(instance: Instance) -> tuple[list[str], list[int], list[str] | None]:
    tags = list(instance["tags"].labels) if "tags" in instance.fields else None
    return (
        [token.text for token in instance["tokens"].tokens],
        list(instance["verb_indicator"].labels),
        tags,
    )


def read(path: Path, content: str) -> list[Any]:
    path.write_text(content)
    return [content_of(instance) for instance in SrlReader().read(str(path))]


class TestSrlReader:
    def test_there_is_an_instance_for_each_predicate(self, path):
        content = "#begin document (d); part 000\n"
        content += rows("Ann said Tom slept", "(ARG0*) (V*) (ARG1* *)", "* * (ARG0*) (V*)") + "\n"
        content += rows("Oh my") + "\n" + rows("Go", "(V*)") + "#end document\n"
        words = ["Ann", "said", "Tom", "slept"]
        assert read(path, content) == [
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
        words, mark = ["his", "hand", "shake"], [0, 0, 1]
        assert read(path, content) == [
            (words, mark, ["B-ARG0", "O", "B-V"]),
            (words, mark, ["O", "B-ARG1", "B-V"]),
        ]

    def test_the_instances_match_allennlps(self, fixtures_root):
        """AllenNLP's reader marks `C-V`, and reads columns without a predicate."""
        import allennlp_models.structured_prediction  # noqa: F401

        folder = fixtures_root / "srl"
        expected = []
        for instance in DatasetReader.from_params(Params({"type": "srl"})).read(str(folder)):
            words, indicator, tags = content_of(instance)
            if any(indicator):
                indicator = [
                    mark * (tag != "B-C-V") for mark, tag in zip(indicator, tags, strict=True)
                ]
                expected.append((words, indicator, tags))
        assert len(expected) > 100
        assert [content_of(instance) for instance in SrlReader().read(str(folder))] == expected

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
        found = [instance["tokens"].tokens[0].text for instance in SrlReader().read(str(tmp_path))]
        assert found == ["a/c/x.gold_conll", "b/a.v4_gold_conll", "b/z.gold_conll"]

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
        ((words, *_),) = read(path, rows("Go /. /? /-", "(V*) * * *"))
        assert words == ["Go", ".", "?", "/-"]
