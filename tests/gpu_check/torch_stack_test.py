import torch

from elmo_tasks.bilm.characters import sentences_to_character_ids
from elmo_tasks.gpu_check.part import SIZES
from elmo_tasks.gpu_check.torch_stack import TorchStack


class TestTorchStack:
    @torch.no_grad()
    def test_a_sentence_has_the_same_layers_in_any_batch(self):
        """Oracle: the sentence alone; and its backward units are forward ones of LSTMs that read it from its end."""
        torch.manual_seed(0)
        stack = TorchStack(SIZES["tiny"])
        batch = [["a", "word", "é"], ["two"], ["of", "four", "words", "here"]]
        layers = stack(sentences_to_character_ids(batch), torch.tensor([3, 1, 4]))
        for row, sentence in enumerate(batch):
            alone = stack(sentences_to_character_ids([sentence]), torch.tensor([len(sentence)]))
            for ours, theirs in zip(layers, alone, strict=True):
                torch.testing.assert_close(ours[row, : len(sentence)], theirs[0], rtol=0, atol=1e-6)
        for pair in stack.lstms:
            pair[0].load_state_dict(pair[1].state_dict())
        sentence, mirrored = (
            stack(sentences_to_character_ids([words]), torch.tensor([4])) for words in (batch[2], batch[2][::-1])
        )
        for ours, theirs in zip(sentence, mirrored, strict=True):
            torch.testing.assert_close(ours[0, :, 8:], theirs[0, :, :8].flip(0), rtol=0, atol=1e-6)
