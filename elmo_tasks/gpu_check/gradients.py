"""Gradients on the device against those on the CPU, and some steps of training."""

from functools import partial

import torch

from elmo_tasks.bilm import Bilm
from elmo_tasks.bilm.lstm.precision import supports_bf16
from elmo_tasks.bilm.softmax.lm_softmax import LmSoftmax
from elmo_tasks.gpu_check.batches import lowest_cosine, make_bilm, plain_path, ragged, relative_difference
from elmo_tasks.gpu_check.part import NotApplicable, Numbers, Part, PartFailed, Setting

__all__ = ["gradient_parts"]

_LARGEST_DIFFERENCE = 1e-3
# Of the gradients of all weights of a kind with products of bfloat16.
_LOWEST_COSINE = 0.97
_N_STEPS, _MOST_OF_LOSS = 25, 0.95


def gradient_parts(setting: Setting) -> list[Part]:
    """All parts with gradients."""
    return [
        *(Part(f"gradients, {size}, float32", partial(_check_gradients, size=size)) for size in setting.sizes),
        Part("gradients, plain path", _check_plainly),
        Part("gradients, mixed precision", _check_mixed_precision),
        Part("training", _check_training),
    ]


def _gradients(bilm: Bilm, batch: list[list[str]]) -> dict[str, torch.Tensor]:
    """Those of a sum of the layers with weights that depend on the unit, on the CPU."""
    bilm.requires_grad_()
    output = bilm(batch)
    loss = torch.zeros((), device=output.mask.device)
    for layer in output.layers:
        weights = torch.linspace(-1.0, 1.0, layer.size(-1), device=layer.device, dtype=layer.dtype)
        loss = loss + (layer * layer + layer * weights).sum()
    loss.backward()
    return {name: parameter.grad.cpu() for name, parameter in bilm.named_parameters() if parameter.grad is not None}


def _compare(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> Numbers:
    largest, where = 0.0, ""
    for name, gradient in expected.items():
        difference = relative_difference(found[name].to(gradient.dtype), gradient)
        # Also where it is not a number.
        if not difference <= _LARGEST_DIFFERENCE:
            raise PartFailed(
                f"the gradient of {name} differs by {difference:.1e} of its largest number, and may by "
                f"{_LARGEST_DIFFERENCE:.0e}"
            )
        if difference >= largest:
            largest, where = difference, name
    return {"largest difference": largest, "of": where}


def _check_gradients(setting: Setting, size: str) -> Numbers:
    # With digits to spare, where that takes no minutes.
    dtype = torch.float32 if size == "original" else torch.float64
    batch = ragged(6 if setting.is_quick or size == "original" else 16, 12)
    expected = _gradients(make_bilm(size).to(dtype), batch)
    return _compare(_gradients(make_bilm(size).to(setting.device), batch), expected)


def _check_plainly(setting: Setting) -> Numbers:
    setting.require_cuda("Triton's kernels")
    with plain_path():
        return _check_gradients(setting, setting.sizes[0])


def _check_mixed_precision(setting: Setting) -> Numbers:
    if not supports_bf16(setting.device):
        raise NotApplicable(f"{setting.device} has no instructions for bfloat16")
    size, batch = setting.sizes[0], ragged(12, 12)
    expected = _gradients(make_bilm(size), batch)
    with torch.autocast(setting.device.type, dtype=torch.bfloat16):
        found = _gradients(make_bilm(size).to(setting.device), batch)
    cosines = {
        name: lowest_cosine(found[name].flatten()[None], gradient.flatten()[None])
        for name, gradient in expected.items()
    }
    lowest = min(cosines, key=lambda name: cosines[name])
    numbers = {"lowest cosine": cosines[lowest], "of": lowest}
    if not all(cosine >= _LOWEST_COSINE for cosine in cosines.values()):
        raise PartFailed(
            f"the gradient of {lowest} has the cosine {cosines[lowest]:.4f} to the CPU's, and must have "
            f"{_LOWEST_COSINE}",
            numbers,
        )
    return numbers


def _check_training(setting: Setting) -> Numbers:
    """The loss of one batch falls; with mixed precision on a GPU that has bfloat16, and a sampled softmax."""
    bilm = make_bilm(setting.sizes[0]).requires_grad_().to(setting.device)
    batch = ragged(6, 8) if setting.is_tiny else ragged(16, 20)
    vocabulary = {word: number for number, word in enumerate(sorted({word for words in batch for word in words}), 2)}
    # Numbered as the contexts' words: those of the batch, and the two boundaries.
    numbered = torch.tensor([*(vocabulary[word] for words in batch for word in words), 0, 1], device=setting.device)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        softmax = LmSoftmax(len(vocabulary) + 2, bilm.options.projection_dim, n_samples=len(vocabulary) // 2)
    softmax.to(setting.device)
    parameters = [*bilm.parameters(), *softmax.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=0.1 / bilm.options.cell_dim**0.5, fused=True)

    @torch.no_grad()
    def loss_of_all_words() -> float:
        contexts = bilm.contexts(batch)
        return -float(
            softmax.log_likelihood(contexts.hidden.flatten(0, 1), numbered[contexts.targets].flatten()).mean()
        )

    # A CPU would compile products of bfloat16 for each number of rows.
    is_mixed = setting.is_cuda and supports_bf16(setting.device)
    first = loss_of_all_words()
    for _ in range(_N_STEPS):
        with torch.autocast(setting.device.type, torch.bfloat16, enabled=is_mixed):
            contexts = bilm.contexts(batch, dropout=0.1)
            targets = numbered[contexts.targets]
            loss = softmax(contexts.hidden.flatten(0, 1), targets.flatten()) / targets.numel()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 10.0)
        optimizer.step()
    last = loss_of_all_words()
    numbers = {"loss before": first, "loss after": last}
    if not last < _MOST_OF_LOSS * first:
        raise PartFailed(
            f"the loss of one batch must fall in {_N_STEPS} steps, but goes from {first} to {last}", numbers
        )
    return numbers
