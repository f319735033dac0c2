from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary

from elmo_tasks.data import LmReader, LmVocabulary, LmWindowDataLoader, NerReader
from elmo_tasks.data.data_loaders.lm_data_loader import LmDataLoader

TEXT = ["a b c", "d", "e f g h i j", "k l", "m n o p", "q r s", "t u", "v w x y z"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{line}\n" for line in TEXT))
    return path


@pytest.fixture
def make(path):
    """A function that makes a loader, and one that gives back the words of its batches."""
    vocabulary = LmVocabulary.from_counts(LmReader().text_to_instance(line.split()) for line in TEXT)
    words = vocabulary.get_index_to_token_vocabulary("lm")

    def make(**options):
        loader = LmWindowDataLoader(LmReader(), path, **{"n_streams": 2, "window": 3, **options})
        loader.index_with(vocabulary)
        return lambda: [[[words[int(i)] for i in row] for row in batch["word_ids"].flatten(0, 1)] for batch in loader]

    return make


def streams(batches, n_rows: int) -> list[list[str]]:
    """The windows of each row one after the other, without the word that two of them share."""
    return [[word for batch in batches for word in batch[row][:-1]] for row in range(n_rows)]


class TestLmWindowDataLoader:
    def test_a_row_continues_where_it_ended(self, make):
        """Oracle: the last word of a window is the first of the next in its row."""
        batches = make(shuffle=False)()
        assert len(batches) > 3
        for before, after in pairwise(batches):
            assert [row[-1] for row in before] == [row[0] for row in after]
            assert all(len(row) == 4 for row in after)

    def test_rows_are_sentences_and_the_same_from_their_ends(self, make):
        """Oracle: the sentences in turn, between their boundaries; reversed for the second half of the rows."""
        rows = streams(make(shuffle=False, n_streams=1)(), 2)
        bounded = [["<S>", *line.split(), "</S>"] for line in TEXT]
        forward, backward = (
            [word for part in parts for word in part] for parts in (bounded, [b[::-1] for b in bounded])
        )
        # Words at the end of the text that do not fill a window are dropped.
        assert len(forward) - 4 < len(rows[0]) <= len(forward)
        assert rows == [forward[: len(rows[0])], backward[: len(rows[1])]]

    def test_two_streams_share_the_sentences(self, make):
        """Oracle: words that occur once occur in one stream of a direction."""
        rows = streams(make(shuffle=False)(), 4)
        for first, second in (rows[:2], rows[2:]):
            assert not (set(first) - {"<S>", "</S>"}) & set(second)
            assert "a" in first + second

    def test_epochs_differ_and_can_be_repeated(self, make):
        """Oracle: another loader with the same seed."""
        one, other = make(), make()
        epochs = [one(), one()]
        assert epochs == [other(), other()]
        assert epochs[0] != epochs[1]
        assert make(seed=1)() != epochs[0]

    def test_words_have_their_characters(self, path):
        """Oracle: the rows of the two boundaries and of a word."""
        from elmo_tasks.bilm.characters import word_to_character_ids

        loader = LmWindowDataLoader(LmReader(), path, n_streams=1, window=5, shuffle=False)
        loader.index_with(LmVocabulary.from_counts(LmReader().text_to_instance(line.split()) for line in TEXT))
        batch = next(iter(loader))
        ids = batch["character_ids"]
        assert ids.shape == (2, 1, 6, 50) and batch["word_ids"].shape == (2, 1, 6)
        for column, word in enumerate(["<S>", "a", "b", "c", "</S>", "<S>"]):
            assert ids[0, 0, column].tolist() == word_to_character_ids(word).tolist()

    def test_too_little_text_for_the_streams_is_an_error(self, make):
        """Oracle: the message with the remedy; without it a training would have no batch, and a perplexity of 0."""
        with pytest.raises(ValueError, match=r"3 words for each of 128 streams, .*text.txt has fewer: use more text"):
            make(n_streams=128)()

    def test_a_vocabulary_without_the_unknown_word_is_refused(self, path):
        """Oracle: the message."""
        with pytest.raises(ConfigurationError, match="must have the word <UNK> in its namespace 'lm'"):
            LmWindowDataLoader(LmReader(), path).index_with(Vocabulary())

    def test_several_processes_are_refused(self, path, monkeypatch):
        """Oracle: the message."""
        monkeypatch.setattr("elmo_tasks.data.data_loaders.lm_window_data_loader.is_distributed", lambda: True)
        with pytest.raises(ConfigurationError, match=r"must be used in one process, .* use the data loader 'elmo_lm'"):
            LmWindowDataLoader(LmReader(), path)

    @pytest.mark.parametrize("loader", [LmWindowDataLoader, partial(LmDataLoader, max_tokens_per_batch=500)])
    def test_a_part_of_the_text_is_refused(self, path, loader):
        """Oracle: the message; the vocabulary would be that of the part, and the batches those of all."""
        with pytest.raises(ConfigurationError, match="must read the whole text, but has max_instances 5"):
            loader(LmReader(max_instances=5), str(path))

    def test_wrong_arguments_are_refused(self, path):
        """Oracle: the messages."""
        with pytest.raises(
            ConfigurationError, match="must have a dataset reader of type 'elmo_lm', but has a NerReader"
        ):
            LmWindowDataLoader(NerReader(), path)
        for window in (0, 1):
            message = f"must be at least 1, and window at least 2, but are 128, 100000 and {window}"
            with pytest.raises(ConfigurationError, match=message):
                LmWindowDataLoader(LmReader(), path, window=window)
        with pytest.raises(TypeError, match="not known before the end"):
            len(LmWindowDataLoader(LmReader(), path))
