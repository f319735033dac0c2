import torch

from elmo_tasks.bilm.characters import sentences_to_character_ids
from tests.bilm.helpers import random_bilm

TEXT = [
    ["<S>", "a", "bc", "</S>", "<S>", "d", "ef", "g", "</S>"],
    ["<S>", "h", "</S>", "<S>", "i", "a", "j", "k", "</S>"],
]


def ids() -> torch.Tensor:
    """Shape (2, 2, 9, 50): two rows for each direction."""
    return torch.stack([sentences_to_character_ids(TEXT), sentences_to_character_ids([row[::-1] for row in TEXT])])


class TestRunningContexts:
    def test_windows_are_one_long_text(self):
        """Oracle: all of the text at once."""
        whole = random_bilm(stateful=True).running_contexts(ids())
        assert whole.shape == (2, 2, 9, 6)
        bilm = random_bilm(stateful=True)
        parts = [bilm.running_contexts(part) for part in ids().split([4, 2, 3], 2)]
        torch.testing.assert_close(torch.cat(parts, 2), whole, rtol=0, atol=1e-6)

    def test_without_a_state_each_window_starts_from_zero(self):
        """Oracle: each window by a new biLM."""
        bilm = random_bilm()
        for part in ids().split([4, 2, 3], 2):
            assert torch.equal(bilm.running_contexts(part), random_bilm().running_contexts(part))

    def test_they_are_the_contexts_of_sentences(self):
        """Oracle: `contexts` of the same sentences, whose boundaries it adds."""
        sentences = [["a", "bc"], ["i", "a"]]
        bounded = [["<S>", *sentence, "</S>"] for sentence in sentences]
        character_ids = torch.stack(
            [sentences_to_character_ids(bounded), sentences_to_character_ids([row[::-1] for row in bounded])]
        )
        running = random_bilm().running_contexts(character_ids)
        contexts = random_bilm().contexts(sentences)
        # The word after the last boundary is predicted in running text only.
        for row in range(2):
            ours = running[:, row, :-1]
            torch.testing.assert_close(ours, contexts.hidden[:, contexts.rows == row], rtol=0, atol=1e-6)
