import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_tasks.bilm.distinct_rows import distinct_rows
from tests.devices import DEVICES


class TestDistinctRows:
    @settings(max_examples=60)
    @given(st.data(), st.integers(0, 9), st.integers(0, 4), st.sampled_from([[0, 1], [0, 2**15], [-1, 2**16 - 1]]))
    def test_every_row_is_found_again_once(self, data, n_rows, n_columns, ids):
        """Oracle: Python's set of the rows, also of ids that are equal in 16 bits."""
        rows = data.draw(st.lists(st.tuples(*[st.sampled_from(ids)] * n_columns), min_size=n_rows, max_size=n_rows))
        matrix = torch.tensor(rows, dtype=torch.long).view(n_rows, n_columns)
        distinct, positions = distinct_rows(matrix)
        assert torch.equal(distinct[positions], matrix)
        assert len(distinct) == len(set(rows))

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_rows_of_vectors_are_found_too(self, dtype):
        """Oracle: the rows, and how many of them are distinct: NaN is equal to itself, and 0 is not -0."""
        matrix = torch.tensor([[0.5, torch.nan], [-0.0, 1.0], [0.5, torch.nan], [0.0, 1.0]], dtype=dtype)
        distinct, positions = distinct_rows(matrix)
        torch.testing.assert_close(distinct[positions], matrix, rtol=0, atol=0, equal_nan=True)
        assert len(distinct) == 3 and positions[0] == positions[2]

    @pytest.mark.parametrize("device", DEVICES)
    def test_rows_may_be_on_any_device(self, device):
        """Oracle: the rows, and how many of them are distinct."""
        matrix = torch.tensor([[1, 2], [0, 0], [1, 2]], device=device)
        distinct, positions = distinct_rows(matrix)
        assert torch.equal(distinct[positions], matrix)
        assert len(distinct) == 2
