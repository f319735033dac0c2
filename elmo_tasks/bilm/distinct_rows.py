"""The distinct rows of a matrix: words and contexts that occur several times in a batch are computed once."""

import numpy as np
import torch

__all__ = ["distinct_rows"]


def distinct_rows(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """
    # Parameters

    matrix
        Shape `(n_rows, n_columns)`, int64; on a CPU also float32 or float64, whose rows are equal if they are so bit
        for bit.

    # Returns

    `Tuple[torch.Tensor, torch.Tensor]`
        The distinct rows, of shape `(n_distinct, n_columns)`, and the index among them of each row, of shape
        `(n_rows,)`.
    """
    if not matrix.numel():
        # All rows without columns are equal.
        return matrix[:1], torch.zeros(len(matrix), dtype=torch.long, device=matrix.device)
    if matrix.is_cuda:
        distinct, positions = torch.unique(matrix, dim=0, return_inverse=True)
        return distinct, positions
    # Ten times as fast as torch.unique: a row is one value of many bytes, and the fewer, the sooner it is compared.
    array = matrix.numpy()
    if matrix.dtype == torch.long:
        lowest, highest = (int(bound) for bound in matrix.aminmax())
        array = array.astype(np.int16) if lowest >= -(2**15) and highest < 2**15 else array
    array = np.ascontiguousarray(array)
    _, first, inverse = np.unique(
        array.view(f"V{array.itemsize * matrix.size(1)}").ravel(), return_index=True, return_inverse=True
    )
    return matrix[torch.from_numpy(first)], torch.from_numpy(inverse)
