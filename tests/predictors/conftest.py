"""The taggers of the tests of the models."""

from tests.models.conftest import make_tagger, snippet

__all__ = ["make_tagger", "snippet"]
