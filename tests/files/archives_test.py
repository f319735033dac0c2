import inspect

import pytest

from allennlp_today import files
from elmo_tasks.files import archives


@pytest.mark.parametrize("name", archives.__all__)
def test_the_copies_in_both_packages_are_equal(name):
    """A repair of one of them, which read untrusted files, is a repair of both."""
    assert inspect.getsource(getattr(archives, name)) == inspect.getsource(getattr(files, name))
