import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from elmo_tasks.text.tags import spans_to_bioul, tags_to_spans
from tests import conlleval

TYPES = st.sampled_from(["PER", "ORG", "C-LOC"])


def tags_with(prefixes: str) -> st.SearchStrategy[list[str]]:
    """Sequences of these prefixes and of three types, most of them malformed in every scheme."""
    tag = st.just("O") | st.builds("{}-{}".format, st.sampled_from(prefixes), TYPES)
    return st.lists(tag, max_size=8)


@st.composite
def spans_and_length(draw: st.DrawFn) -> tuple[list[tuple[str, int, int]], int]:
    """Spans that do not overlap, with and without words between them."""
    spans, end = [], 0
    for _ in range(draw(st.integers(0, 4))):
        start = end + draw(st.integers(0, 2))
        end = start + draw(st.integers(1, 4))
        spans.append((draw(TYPES), start, end - 1))
    return spans, end + draw(st.integers(0, 2))


def in_scheme(spans: list[tuple[str, int, int]], length: int, scheme: str) -> list[str]:
    """The definitions of the four schemes, word by word."""
    tags = ["O"] * length
    for number, (label, start, end) in enumerate(spans):
        touches = number > 0 and spans[number - 1][0] == label and spans[number - 1][2] == start - 1
        for word in range(start, end + 1):
            first, last = word == start, word == end
            prefix = "I"
            if scheme == "BIO":
                prefix = "B" if first else "I"
            elif scheme == "IOB1":
                prefix = "B" if first and touches else "I"
            elif first and last:
                prefix = {"BIOUL": "U", "BIOES": "S"}[scheme]
            elif first:
                prefix = "B"
            elif last:
                prefix = {"BIOUL": "L", "BIOES": "E"}[scheme]
            tags[word] = f"{prefix}-{label}"
    return tags


class TestTagsToSpans:
    @given(tags_with("BI"))
    @example(["I-PER", "B-PER", "I-ORG", "I-ORG", "O", "I-PER"])
    def test_any_sequence_has_the_chunks_of_conlleval(self, tags):
        """Covers IOB1, BIO and malformed sequences."""
        assert tags_to_spans(tags) == list(conlleval.chunks(tags))

    @given(spans_and_length(), st.sampled_from(["IOB1", "BIO", "BIOES", "BIOUL"]))
    def test_every_scheme_is_read(self, drawn, scheme):
        spans, length = drawn
        assert tags_to_spans(in_scheme(spans, length, scheme)) == spans

    @pytest.mark.parametrize(
        ("tags", "spans"),
        [
            ([], []),
            (["O", "O"], []),
            # An end tag ends a span, regardless of the next tag.
            (["B-PER", "E-PER", "I-PER"], [("PER", 0, 1), ("PER", 2, 2)]),
            (["B-PER", "L-PER", "L-PER"], [("PER", 0, 1), ("PER", 2, 2)]),
            (
                ["U-PER", "I-PER", "S-PER", "L-PER"],
                [("PER", 0, 0), ("PER", 1, 1), ("PER", 2, 2), ("PER", 3, 3)],
            ),
            # A begin tag begins a span, regardless of the previous tag.
            (
                ["B-PER", "U-PER", "B-PER", "S-PER"],
                [("PER", 0, 0), ("PER", 1, 1), ("PER", 2, 2), ("PER", 3, 3)],
            ),
            # A different type starts a new span.
            (["B-PER", "L-ORG"], [("PER", 0, 0), ("ORG", 1, 1)]),
            # A type may have a hyphen.
            (["B-C-LOC", "I-C-LOC"], [("C-LOC", 0, 1)]),
        ],
    )
    def test_the_ends_of_bioes_and_bioul_count_in_malformed_sequences_too(self, tags, spans):
        assert tags_to_spans(tags) == spans

    @given(tags_with("BIELSU"))
    def test_each_tagged_word_is_in_exactly_one_span(self, tags):
        words = [
            (word, label)
            for label, start, end in tags_to_spans(tags)
            for word in range(start, end + 1)
        ]
        assert words == [(word, tag[2:]) for word, tag in enumerate(tags) if tag != "O"]


class TestSpansToBioul:
    @given(spans_and_length())
    def test_the_tags_match_the_scheme(self, drawn):
        assert spans_to_bioul(*drawn) == in_scheme(*drawn, "BIOUL")

    @given(spans_and_length())
    def test_allennlp_accepts_the_tags_and_reads_the_same_spans(self, drawn):
        from allennlp.data.dataset_readers.dataset_utils import bioul_tags_to_spans

        spans, length = drawn
        read = bioul_tags_to_spans(spans_to_bioul(spans, length))
        assert [(label, start, end) for label, (start, end) in read] == spans
