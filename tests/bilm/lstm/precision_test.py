import pytest
import torch

from elmo_tasks.bilm.lstm.precision import computing_dtype, supports_bf16, tf32_is_on, tf32_set_to

CPU = torch.device("cpu")


class TestComputingDtype:
    def test_without_bf16_it_is_that_of_the_parameters(self):
        """Oracle: the parameters' type, whatever the device can do."""
        for dtype in (torch.float32, torch.float64, torch.bfloat16):
            for precision in ("float32", "tf32"):
                assert computing_dtype(precision, torch.ones(1, dtype=dtype)) == dtype

    def test_a_cpu_is_asked_for_its_instructions(self, monkeypatch):
        """Oracle: torch's answer, replaced; and the message, which must state the remedy."""
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
        assert supports_bf16(CPU)
        assert computing_dtype("bf16", torch.ones(1)) == torch.bfloat16
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
        assert not supports_bf16(CPU)
        with pytest.raises(ValueError, match=r"but cpu has none .*AVX-512 BF16.*: set precision to 'float32'"):
            computing_dtype("bf16", torch.ones(1))

    def test_a_torch_that_cannot_be_asked_has_none(self, monkeypatch):
        """Oracle: a torch without its private name for it."""
        monkeypatch.delattr(torch.cpu, "_is_avx512_bf16_supported")
        assert not supports_bf16(CPU)

    def test_other_devices_have_none(self):
        """Oracle: a device without products."""
        assert not supports_bf16(torch.device("meta"))


class TestTf32SetTo:
    @pytest.mark.parametrize("inside", [False, True])
    @pytest.mark.parametrize("before", [False, True])
    def test_it_is_set_and_restored(self, before, inside):
        """Oracle: torch's own setting, inside, after, and after an error."""
        matmul = torch.backends.cuda.matmul
        at_first = matmul.allow_tf32
        try:
            matmul.allow_tf32 = before
            with tf32_set_to(inside):
                assert tf32_is_on() == inside
            assert matmul.allow_tf32 == tf32_is_on() == before
            with pytest.raises(MemoryError), tf32_set_to(inside):
                raise MemoryError
            assert matmul.allow_tf32 == before
        finally:
            matmul.allow_tf32 = at_first

    @pytest.mark.skipif(
        not hasattr(torch.backends.cuda.matmul, "fp32_precision"), reason="needs a torch with the new names"
    )
    @pytest.mark.parametrize("precision", ["ieee", "tf32"])
    def test_it_works_with_the_new_names(self, precision):
        """Oracle: torch's new setting; reading the old one after it is an error, which must not occur."""
        matmul = torch.backends.cuda.matmul
        try:
            matmul.fp32_precision = precision
            for rounds in (False, True):
                with tf32_set_to(rounds):
                    assert tf32_is_on() == rounds
                assert matmul.fp32_precision == precision
        finally:
            matmul.allow_tf32 = False
