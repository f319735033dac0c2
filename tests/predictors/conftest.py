"""The models of the tests of the models."""

from tests.models.conftest import make_classifier, make_tagger, snippet

__all__ = ["make_classifier", "make_tagger", "snippet"]
