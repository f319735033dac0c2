"""Tests of parts of training sets."""

import json
from pathlib import Path

import pytest

from elmo_tasks.replication.plan.subset import size_of, total_of, write_subset

PAIRS = [{"gold_label": "-" if n % 10 == 0 else "neutral", "n": n} for n in range(100)]


@pytest.fixture
def snli(tmp_path):
    path = tmp_path / "train.jsonl"
    path.write_text("".join(json.dumps(pair) + "\n" for pair in PAIRS))
    return path


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class TestWriteSubset:
    def test_larger_parts_hold_the_smaller_ones_in_the_order_of_the_file(self, snli, tmp_path):
        """Oracle: sets and sorting; the same part twice."""
        parts = []
        for index, size in enumerate((10, 10, 40)):
            write_subset("snli", snli, size, tmp_path / "new" / f"{index}.jsonl")
            parts.append([pair["n"] for pair in read(tmp_path / "new" / f"{index}.jsonl")])
        assert [len(part) for part in parts] == [10, 10, 40]
        assert parts[0] == parts[1] == sorted(parts[0]) != list(range(1, 11))
        assert set(parts[0]) < set(parts[2])

    def test_pairs_without_a_label_are_not_counted(self, snli, tmp_path):
        """Oracle: 90 of the 100 pairs have one."""
        assert total_of("snli", snli) == 90
        write_subset("snli", snli, 90, tmp_path / "all.jsonl")
        assert read(tmp_path / "all.jsonl") == [p for p in PAIRS if p["n"] % 10]

    def test_of_srl_whole_sentences_with_a_predicate_are_taken(self, fixtures_root, tmp_path):
        """Oracle: our reader; every proposition of the part is one of the whole."""
        from elmo_tasks.data.dataset_readers.srl_reader import read_propositions

        source, target = fixtures_root / "srl" / "train", tmp_path / "part.gold_conll"
        propositions = list(read_propositions(str(source)))
        assert total_of("srl", source) == len({tuple(words) for words, *_ in propositions})
        write_subset("srl", source, 3, target)
        part = list(read_propositions(str(target)))
        assert len({tuple(words) for words, *_ in part}) == 3
        assert {(*words, *tags) for words, tags, _ in part} <= {(*words, *tags) for words, tags, _ in propositions}

    def test_a_no_break_space_is_a_part_of_its_word(self, fixtures_root, tmp_path):
        """Oracle: our reader: a sentence without a predicate has no proposition, whatever its words are."""
        lines = next((fixtures_root / "srl" / "train").rglob("*gold_conll")).read_text().splitlines()
        columns = next(line for line in lines if line and not line.startswith("#")).split()[:12]
        (tmp_path / "a.gold_conll").write_text("\t".join([*columns[:3], "10\xa0000", *columns[4:]]) + "\n\n")
        assert total_of("srl", tmp_path / "a.gold_conll") == 0

    def test_a_table_with_tabs_is_refused(self, tmp_path):
        """Oracle: the message with file and line."""
        (tmp_path / "train.jsonl").write_text("gold_label\tsentence1\n")
        with pytest.raises(ValueError, match=r"train.jsonl, line 1: .*JSON lines"):
            total_of("snli", tmp_path / "train.jsonl")


class TestSizeOf:
    def test_numbers_and_percentages(self, snli):
        """Oracle: 90 pairs, by hand."""
        assert [size_of(size, "snli", snli) for size in ("9", "10%", "90", "100%")] == [9, 9, None, None]

    @pytest.mark.parametrize(
        ("size", "message"),
        [("ten", "10%, but is 'ten'"), ("0.1%", "is 0"), ("inf%", "but is 'inf%'"), ("91", "is 91")],
    )
    def test_other_sizes_are_refused(self, snli, size, message):
        """Oracle: the messages."""
        with pytest.raises(ValueError, match=message):
            size_of(size, "snli", snli)
