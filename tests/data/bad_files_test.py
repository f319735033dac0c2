"""Each kind of mistake in a data file is an error that names the file and the line or question."""

import re
from functools import partial

import pytest
from allennlp.data import DatasetReader

from elmo_tasks.data import (
    CorefReader,
    LmReader,
    NerReader,
    PosReader,
    SnliReader,
    SquadReader,
    SrlReader,
    SstReader,
)

POS = "1\tDogs\t_\tNOUN\tNNS" + "\t_" * 5 + "\n"
SRL = "d 0 0 a XX * - - - - * (V*) -\n"
COREF = "#begin document (x); part 000\nx 0 0 a (0)\nx 0 1 b {}\n\n#end document\n"
WORD = "{0}\t{1}\t_\tNOUN\tNN" + "\t_" * 5 + "\n"
SKELETON = SRL.replace(" a ", " [WORD] ").replace("(V*)", "{}")
SQUAD = '{"data": [{"paragraphs": [{"context": "a", "qas": [{"id": "q", "question": "b"%s}]}]}]}'
ANSWER = ', "answers": [{"text": "a", "answer_start": 0}]'
SNLI = '{"gold_label": "neutral", "sentence1": "a", "sentence2": "b"}\n'


@pytest.mark.parametrize(
    ("reader", "content", "place"),
    [
        (NerReader, "a X O\nb X O\n\nc O\n", "line 4"),
        (NerReader, "a O\nb PER\n", "line 2"),
        (NerReader, b"a O\ncaf\xe9 O\n", "line 2"),
        (NerReader, "Anna\nsang\n", "line 1"),
        (NerReader, "Anna\tB-PER\n \tO\n", "line 2"),
        (NerReader, "".join(f"nl:{word}\tO\n" for word in "abcde"), ""),
        (NerReader, "<S> O\na O\n", "line 1"),
        (NerReader, "\n-DOCSTART- O\n", ""),
        (NerReader, "1-1\t0-3\tAnn\tB-PER\n1-2\t4-8\tsang\tO\n", ""),
        (NerReader, "#FORMAT=WebAnno TSV 3.3\n\n#Text=Ann\n1-1\t0-3\tAnn\tPER\n", ""),
        (NerReader, "1 EU O\n2 said B-PER\n", "line 1"),
        (NerReader, "_ O\n_ B-PER\n", "line 1"),
        (PosReader, WORD.format(1, "_") + WORD.format(2, "_"), "line 1"),
        (PosReader, POS + "2\tbark\n", "line 1"),
        (PosReader, POS + "\n" + POS + POS.replace("NOUN", "_").replace("1", "2"), "line 3"),
        (SrlReader, SRL + SRL.replace("(V*)", "ARG0"), "line 2"),
        (SrlReader, SRL.replace("(V*)", "(V*") + SRL.replace("(V*)", "(ARG1*)"), "line 2"),
        (SrlReader, SRL + SRL.replace("(V*)", "*)"), "line 2"),
        (SrlReader, SRL.replace("(V*)", "(V*"), "line 1"),
        (SrlReader, SRL + SRL.replace("(V*) ", ""), "line 2"),
        (SrlReader, SRL.replace(" -\n", "\n"), "line 1"),
        (SrlReader, SKELETON.format("(V*)") + SKELETON.format("(ARG1*)"), "line 1"),
        (SrlReader, SRL.replace("(V*)", "*"), ""),
        (CorefReader, "#begin document (x); part 000\nx 0 a\n\n#end document\n", "line 2"),
        (CorefReader, COREF.replace(" a ", " [WORD] ").replace(" b ", " [WORD] ").format("-"), "x"),
        (CorefReader, "\n", ""),
        (CorefReader, COREF.format("(1"), "line 3"),
        (CorefReader, COREF.format("1)"), "line 3"),
        (CorefReader, COREF.format("[1]"), "line 3"),
        (CorefReader, COREF.format("-").removesuffix("#end document\n"), ""),
        (SnliReader, SNLI + "{'sentence1': 1}\n", "line 2"),
        (SnliReader, SNLI + SNLI.replace("sentence2", "text"), "line 2"),
        (SnliReader, SNLI + "[1]\n", "line 2"),
        (SnliReader, f"[{SNLI}]".replace("\n", ""), "line 1"),
        (SnliReader, SNLI + SNLI.replace("gold_label", "label"), "line 2"),
        (SnliReader, SNLI.replace("neutral", "entails"), "line 1"),
        (SnliReader, SNLI + SNLI.replace(': "b"', ': ""'), "line 2"),
        (SnliReader, SNLI.replace(': "a"', ': " "'), "line 1"),
        (SquadReader, SQUAD % "", "question q"),
        (SquadReader, SQUAD.replace('"b"', '" "') % ANSWER, "question q"),
        (SquadReader, SQUAD.replace('"a"', '""') % ANSWER.replace('"a"', '""'), "question q"),
        (SquadReader, SQUAD % ANSWER.replace('"a"', '""'), "question q"),
        (SquadReader, SQUAD % ', "answers": [{"text": "c", "answer_start": 0}]', "question q"),
        (SstReader, "(3 (2 It) (4 works))\n(3 (2 It) (4 works)\n", "line 2"),
        (SstReader, "(5 (2 It) (3 works))\n", "line 1"),
        (LmReader, b"a\nb \xff\n", "line 2"),
        (LmReader, "a\nb <S> c\n", "line 2"),
        (LmReader, "\n \n", ""),
    ],
)
def test_an_error_names_the_place_of_a_mistake(
    tmp_path, reader: type[DatasetReader], content: str | bytes, place: str
):
    path = tmp_path / "file.gold_conll"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=f"{re.escape(str(path))}.*{place}"):
        list(reader().read(str(path)))


@pytest.mark.parametrize(
    ("reader", "content", "hint"),
    [
        (SstReader, "3\tIt 's good\n", "(3 It works)"),
        (SstReader, "sentence\tlabel\nIt 's good\t1\nNo\t0\n", "(3 It works)"),
        (SstReader, '{"text": "It is good", "label": 4}\n', "(3 It works)"),
        (SstReader, "(3 (2 It) (4 works)\n", "(3 It works)"),
        (
            CorefReader,
            "# begin document GUM_x\n1\tAnn\t(0)\n2\tsang\t_\n# end document\n",
            "docs/tasks/coref.md",
        ),
        (CorefReader, "# newdoc id = GUM_x\n" + WORD.format(1, "Ann"), "docs/tasks/coref.md"),
        (SrlReader, WORD.format(1, "Ann") + WORD.format(2, "sang"), "docs/tasks/srl.md"),
        (NerReader, "1-1\t0-3\tAnn\tB-PER\n1-2\t4-8\tsang\tO\n", "CoNLL 2002"),
        (partial(PosReader, tags="xpos"), WORD.format(1, "Ann").replace("NN", "_"), "tags='upos'"),
    ],
)
def test_a_different_format_has_the_remedy_of_its_reader(path, reader, content, hint):
    path.write_text(content)
    with pytest.raises(ValueError, match=re.escape(hint)) as error:
        list(reader().read(str(path)))
    assert "\n" not in str(error.value) and "GermEval" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("1 EU\n2 said\n", "numbers: 1 2"),
        ("B-LOC London\nO calls\n", "tags: B-LOC O"),
        ("Tim/B-PER\nsang/O\n", "joined to their tags"),
        ("".join(f"bc/x 0 {n} w XX * - - - - * -\n" for n in range(3)), "CoNLL-2012"),
    ],
)
def test_a_prediction_reads_words_only(path, content, found):
    path.write_text(content)
    reader = NerReader()
    reader.reads_gold = False
    with pytest.raises(ValueError, match=f"{found}.*, line 1"):
        list(reader.read(str(path)))
