from elmo_tasks.bilm.lstm.projected_lstm import ProjectedLstm
from elmo_tasks.bilm.options import BilmOptions


class TestProjectedLstm:
    def test_a_new_lstm_is_initialised_as_in_tensorflow(self):
        """Glorot and Bengio's bound for each matrix, zero for each bias."""
        lstm = ProjectedLstm(BilmOptions(cell_dim=50, projection_dim=20))
        assert not lstm.bias.any()
        for weight in (lstm.kernel, lstm.projection):
            bound = (6 / sum(weight.shape)) ** 0.5
            assert bound * 0.9 < weight.abs().max().item() <= bound
        assert set(lstm.state_dict()) == {"kernel", "bias", "projection"}
