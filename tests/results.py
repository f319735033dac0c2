"""Results of tasks, compared up to rounding."""

from typing import Any

import pytest


def approximately(result: Any) -> Any:
    """What a result must equal: the padding of a batch may change its last digits."""
    if isinstance(result, dict):
        return {key: approximately(value) for key, value in result.items()}
    if isinstance(result, (list, tuple)):
        return type(result)(map(approximately, result))
    return pytest.approx(result, abs=1e-4)
