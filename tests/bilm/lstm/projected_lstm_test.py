import torch

from elmo_tasks.bilm.lstm.projected_lstm import ProjectedLstm


class TestProjectedLstm:
    def test_a_new_lstm_starts_as_tensorflow_says(self):
        """Oracle: Glorot and Bengio's bound for each matrix; a bias of zero (the 1 of the forget gate is no part)."""
        lstm = ProjectedLstm(input_dim=30, cell_dim=50, projection_dim=20)
        assert not lstm.bias.any()
        for weight in (lstm.kernel, lstm.projection):
            bound = (6 / sum(weight.shape)) ** 0.5
            assert bound * 0.9 < weight.abs().max().item() <= bound
        assert set(lstm.state_dict()) == {"kernel", "bias", "projection"}

    def test_the_forget_gate_gets_its_one(self):
        """Oracle: the third of the four gates; the others and the matrices are the parameters."""
        lstm = ProjectedLstm(input_dim=3, cell_dim=2, projection_dim=4)
        kernel, bias, projection = lstm.recurrent_parameters()
        assert bias.tolist() == [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0]
        assert kernel is lstm.kernel and projection is lstm.projection

    def test_the_memory_has_the_digits_of_float32_at_least(self):
        """Oracle: the types of the parameters, and float32."""
        lstm = ProjectedLstm(input_dim=3, cell_dim=2, projection_dim=4)
        for dtype, of_memory in ((torch.bfloat16, torch.float32), (torch.float64, torch.float64)):
            output, memory = lstm.to(dtype).zero_state(5)
            assert (output.dtype, output.shape) == (dtype, (5, 4))
            assert (memory.dtype, memory.shape) == (of_memory, (5, 2))
            assert not output.any() and not memory.any()
