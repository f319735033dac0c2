import torch
from hypothesis import given
from hypothesis import strategies as st

from elmo_tasks.modules.recurrent.packed_batch import pack


def mask_of(lengths: list[int], padding: int = 1) -> torch.Tensor:
    """A mask of sentences with padding at the end."""
    return torch.arange(max(lengths, default=0) + padding) < torch.tensor(lengths).unsqueeze(-1)


class TestPack:
    @given(st.lists(st.integers(0, 6), min_size=1, max_size=6))
    def test_each_word_has_its_place_and_its_neighbours(self, lengths):
        mask = mask_of(lengths)
        order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
        words = [(row, step) for step in range(max(lengths)) for row in order if step < lengths[row]]
        packed = {word: number for number, word in enumerate(words)}
        batch = pack(mask)
        assert batch.positions.tolist() == [row * mask.size(1) + step for row, step in words]
        assert batch.sentences.tolist() == [order.index(row) for row, _ in words]
        assert batch.before.tolist() == [packed.get((row, step - 1), len(words)) for row, step in words]
        assert batch.after.tolist() == [packed.get((row, step + 1), len(words)) for row, step in words]
        assert batch.mirrored.tolist() == [packed[row, lengths[row] - 1 - step] for row, step in words]
        assert [words[rows] for rows in batch.steps] == [
            [word for word in words if word[1] == step] for step in range(max(lengths))
        ]
        assert batch.batch_sizes == [rows.stop - rows.start for rows in batch.steps]
        assert batch.n_sentences == sum(length > 0 for length in lengths)
