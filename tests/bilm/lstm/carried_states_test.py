import torch

from elmo_tasks.bilm.lstm.carried_states import CarriedStates


def state(*rows: float, requires_grad: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """Output and memory of one LSTM with a unit, a number a row; the memory is ten times the output."""
    output = torch.tensor(rows).unsqueeze(1).requires_grad_(requires_grad)
    return output, output * 10


def zero(n_rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    return state(*[0.0] * n_rows)


def rows_of(states: CarriedStates, *rows: int) -> list[float]:
    ((output, memory),) = states.of(torch.tensor(rows), [zero(len(rows))])
    assert torch.equal(memory, output * 10)
    return output.flatten().tolist()


class TestCarriedStates:
    def test_at_first_every_row_starts_from_zero(self):
        """Oracle: the zero state that it is given, of any value."""
        given = state(7.0, 8.0)
        assert CarriedStates().of(torch.tensor([1, 0]), [given])[0] is given

    def test_a_row_gets_its_own_state_in_any_order(self):
        """Oracle: by hand: the rows were in another order when they were kept."""
        states = CarriedStates()
        states.keep(torch.tensor([2, 0, 1]), [state(2.0, 0.0, 1.0)])
        assert rows_of(states, 0, 1, 2) == [0.0, 1.0, 2.0]
        assert rows_of(states, 1, 2, 0) == [1.0, 2.0, 0.0]

    def test_rows_beyond_a_smaller_batch_stay(self):
        """Oracle: by hand."""
        states = CarriedStates()
        states.keep(torch.tensor([0, 1, 2]), [state(1.0, 2.0, 3.0)])
        states.keep(torch.tensor([1, 0]), [state(20.0, 10.0)])
        assert rows_of(states, 0, 1, 2) == [10.0, 20.0, 3.0]

    def test_rows_that_no_batch_had_start_from_zero(self):
        """Oracle: by hand."""
        states = CarriedStates()
        states.keep(torch.tensor([0]), [state(1.0)])
        assert rows_of(states, 2, 0, 1) == [0.0, 1.0, 0.0]
        states.keep(torch.tensor([0, 1, 2]), [state(4.0, 5.0, 6.0)])
        assert rows_of(states, 0, 1, 2) == [4.0, 5.0, 6.0]

    def test_no_gradient_goes_from_one_batch_to_the_one_before(self):
        """Oracle: torch, which says whether a tensor has gradients."""
        states = CarriedStates()
        states.keep(torch.tensor([0]), [state(1.0, requires_grad=True)])
        assert not any(tensor.requires_grad for tensor in states.of(torch.tensor([0]), [zero(1)])[0])

    def test_states_take_the_type_of_the_zero_state(self):
        """Oracle: the type; numbers that both types have."""
        states = CarriedStates()
        states.keep(torch.tensor([0]), [state(1.5)])
        ((output, memory),) = states.of(torch.tensor([0]), [(zero(1)[0].double(), zero(1)[1].double())])
        assert output.dtype == memory.dtype == torch.float64
        assert (output.item(), memory.item()) == (1.5, 15.0)
