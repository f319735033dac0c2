import os
import subprocess
import sys

import pytest
import torch

from elmo_tasks.bilm.lstm import cell

triton = pytest.importorskip("triton")

from elmo_tasks.bilm.lstm import triton_cell  # noqa: E402
from tests.bilm.lstm import fast_cell_test  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
IS_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
# How far products of each type and float32 may be from each other: a digit of the result, which is about 1.
ATOL = {torch.float32: 1e-6, torch.bfloat16: 2**-7}


def draw(seed: int, *shape: int) -> torch.Tensor:
    return 1.5 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def assert_close(ours: tuple[torch.Tensor, ...], theirs: tuple[torch.Tensor, ...]) -> None:
    for our, their in zip(ours, theirs, strict=True):
        torch.testing.assert_close(our.cpu(), their, rtol=ATOL[their.dtype], atol=ATOL[their.dtype])


# Fewer units than a block, one block, and no multiple of a block; a single row, and a single LSTM.
SHAPES = [(2, 3, 5), (1, 1, 256), (2, 4, 300), (3, 1, 513)]


@pytest.mark.skipif(DEVICE == "cpu" and not IS_INTERPRETED, reason="done by TestKernelsOnACpu, or needs CUDA")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("clip", [None, 0.5, 1])
@pytest.mark.parametrize("shape", SHAPES)
class TestKernels:
    @pytest.mark.parametrize("keeps_gates", [False, True])
    def test_the_step_equals_the_eager_one(self, shape, clip, dtype, keeps_gates):
        """Oracle: `cell.cell_forward` on a CPU; rows lie among others, which stay."""
        n_lstms, n_rows, cell_dim = shape
        products = draw(0, n_lstms, n_rows + 2, 4 * cell_dim).to(dtype)
        memory, gates = draw(1, n_lstms, n_rows + 3, cell_dim), draw(2, n_lstms, n_rows + 4, 4 * cell_dim)
        tensors = [each.to(DEVICE, copy=True) for each in (products, memory, gates)]
        found = []
        for products, memory, gates in (tensors, [each.cpu().clone() for each in tensors]):
            some_gates = gates[:, 2 : n_rows + 2] if keeps_gates else None
            arguments = products[:, 1 : n_rows + 1], memory[:, :n_rows], clip
            if products is tensors[0]:
                units = triton_cell.cell_forward(*arguments, dtype=dtype, gates=some_gates)
            else:
                units = cell.cell_forward(*arguments, dtype=dtype, gates=some_gates)
            found.append((units, products, memory, gates))
        assert_close(*found)
        if clip is not None and cell_dim >= 256:
            assert (tensors[1][:, :n_rows].abs() == clip).any()

    def test_the_gradient_equals_the_eager_one(self, shape, clip, dtype):
        """Oracle: `cell.cell_backward` on a CPU; rows lie among others, which stay."""
        n_lstms, n_rows, cell_dim = shape
        gates = draw(0, n_lstms, n_rows + 2, 4 * cell_dim).sigmoid()
        memory, previous, d_memory = (draw(seed, n_lstms, n_rows + 2, cell_dim) for seed in (1, 2, 3))
        if clip is not None:
            memory.clamp_(-clip, clip)
        d_hidden, d_products = draw(4, *shape).to(dtype), draw(5, n_lstms, n_rows + 5, 4 * cell_dim).to(dtype)
        on_device = [each.to(DEVICE, copy=True) for each in (gates, memory, previous, d_hidden, d_memory, d_products)]
        found = []
        for tensors in (on_device, [each.cpu().clone() for each in on_device]):
            gates, memory, previous, d_hidden, d_memory, d_products = tensors
            now, here = slice(n_rows), slice(3, n_rows + 3)
            arguments = gates[:, 1 : n_rows + 1], memory[:, now], previous[:, now], d_hidden, d_memory[:, now], clip
            if tensors is on_device:
                d_previous = triton_cell.cell_backward(*arguments, d_products=d_products[:, here])
            else:
                d_previous = cell.cell_backward(*arguments, d_products=d_products[:, here])
            found.append((d_previous, *tensors))
        assert_close(*found)


class TestKernelsOnACpu:
    @pytest.mark.slow
    def test_they_pass_their_tests_in_the_interpreter_of_triton(self):
        """
        Oracle: `TestKernels`, in a process that imports Triton with its interpreter switched on; and the test that is
        made before their first use.
        """
        environment = {**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
        tests = [f"{__file__}::TestKernels", f"{fast_cell_test.__file__}::TestInTheInterpreter"]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
        assert f"{3 * len(SHAPES) * 3 * 2 + 2} passed" in done.stdout


@pytest.mark.skipif(IS_INTERPRETED, reason="the interpreter compiles nothing")
class TestCompiledKernels:
    @pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
    @pytest.mark.parametrize("has_clip", [False, True])
    @pytest.mark.parametrize("kernel", ["cell_forward", "keeping cell_forward", "cell_backward"])
    def test_they_compile_for_a_gpu(self, tmp_path, monkeypatch, kernel, has_clip, dtype):
        """Oracle: Triton's compiler, for compute capability 9.0, which needs no GPU."""
        from triton.backends import backends
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource

        if "nvidia" not in backends:
            pytest.skip("needs a Triton that compiles for NVIDIA's GPUs")
        monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
        rounded = {"products", "hidden", "d_hidden", "d_products"}
        constants = {"has_clip": has_clip, "block": 256}
        if kernel != "cell_backward":
            constants["keeps_gates"] = kernel == "keeping cell_forward"
        function = triton_cell._backward_kernel if kernel == "cell_backward" else triton_cell._forward_kernel
        names = function.arg_names
        pointers = names[: names.index("cell_dim")]
        signature = {name: "*" + (dtype if name in rounded else "fp32") for name in pointers}
        signature |= {name: "fp32" if name == "clip" else "i32" for name in names[len(pointers) :]}
        signature |= dict.fromkeys(constants, "constexpr")
        # By position: Triton 3.2 calls them constants, later ones constexprs.
        source = ASTSource(function, signature, constants)
        binary = triton.compile(source, target=GPUTarget("cuda", 90, 32))
        assert binary.asm["cubin"]
        assert binary.metadata.shared == 0

    def test_rows_are_on_the_axis_without_a_limit(self):
        """Oracle: CUDA's limits of a grid: 2^31 - 1 blocks on the first axis, 65,535 on the others."""
        n_rows, n_blocks, n_lstms = triton_cell._grid(torch.empty(2, 70_000, 300, device="meta"))
        assert (n_rows, n_blocks, n_lstms) == (70_000, 2, 2)
