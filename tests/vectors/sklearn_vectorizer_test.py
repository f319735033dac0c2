"""Tests of the transformer for scikit-learn."""

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import check_estimator

import elmo_tasks
from elmo_tasks import Elmo, ElmoVectorizer
from tests.paths import TINY_BILM

TEXTS = ["It rains.", "Jordan beat Chelsea", "", "The bank is closed."]

# Checks that make no data. `check_estimator` skips all but the first for an estimator of texts; the rest of
# scikit-learn's make tables of numbers (check_fit_score_takes_y, check_estimators_overwrite_params,
# check_dont_overwrite_parameters, check_estimators_fit_returns_self, check_readonly_memmap_input,
# check_positive_only_tag_during_fit and all of the checks of transformers): `TestWhatTheOtherChecksCheck` has their
# counterparts for texts. check_estimators_unfitted does not apply, for there is nothing to fit.
CHECKS = [
    "check_estimator_cloneable",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_n_features_in_after_fitting",
    "check_mixin_order",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
]


@pytest.fixture(scope="module")
def tiny(fixtures_root: Path) -> str:
    return str(TINY_BILM)


@pytest.fixture(scope="module")
def elmo(tiny: str) -> Elmo:
    return Elmo.from_pretrained(tiny)


@pytest.fixture
def vectorizer(tiny: str) -> ElmoVectorizer:
    return ElmoVectorizer(tiny)


class TestEstimatorChecks:
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
    def test_check_estimator_passes(self, vectorizer):
        """Oracle: scikit-learn, with the checks that it finds."""
        results = check_estimator(vectorizer)
        assert results
        assert {result["status"] for result in results} == {"passed"}

    @pytest.mark.parametrize("name", CHECKS)
    def test_checks_without_data_pass(self, name, vectorizer):
        """Oracle: scikit-learn's check."""
        getattr(estimator_checks, name)("ElmoVectorizer", clone(vectorizer))


class TestWhatTheOtherChecksCheck:
    def test_fit_returns_itself_and_changes_no_parameter(self, vectorizer):
        """Oracle: the parameters before; labels are taken."""
        before = vectorizer.get_params()
        assert vectorizer.fit(TEXTS, [0, 1, 0, 1]) is vectorizer
        vectorizer.transform(TEXTS)
        assert vectorizer.get_params() == before

    def test_it_need_not_be_fitted(self, vectorizer):
        """Oracle: the vectors after `fit`, and those of `fit_transform`."""
        found = clone(vectorizer).transform(TEXTS)
        assert np.array_equal(found, vectorizer.fit(TEXTS[:1]).transform(TEXTS))
        assert np.array_equal(found, clone(vectorizer).fit_transform(TEXTS, [1, 2, 3, 4]))

    def test_rows_depend_neither_on_others_nor_on_their_order(self, vectorizer):
        """Oracle: the rows one by one."""
        found = vectorizer.transform(TEXTS)
        np.testing.assert_allclose(vectorizer.transform(TEXTS[::-1]), found[::-1], rtol=0, atol=1e-6)
        for row, text in zip(found, TEXTS, strict=True):
            np.testing.assert_allclose(vectorizer.transform([text])[0], row, rtol=0, atol=1e-6)

    def test_every_feature_has_a_name(self, vectorizer, elmo):
        """Oracle: the number of units, and the names that scikit-learn gives."""
        names = vectorizer.get_feature_names_out()
        assert [*names] == [f"elmovectorizer{index}" for index in range(elmo.dim)]

    def test_it_can_be_pickled_without_its_weights(self, vectorizer):
        """Oracle: its vectors; the size."""
        expected = vectorizer.transform(TEXTS)
        data = pickle.dumps(vectorizer)
        assert len(data) < 1000
        assert np.array_equal(pickle.loads(data).transform(TEXTS), expected)


class TestTransform:
    @pytest.mark.parametrize(
        "arguments",
        [{}, {"pool": "max", "layers": "top"}, {"weights": [0.0, 1.0, 2.0], "gamma": 2.0}, {"pool": "first-last"}],
    )
    def test_the_rows_are_those_of_elmo(self, tiny, elmo, arguments):
        """Oracle: `Elmo` with the same arguments."""
        found = ElmoVectorizer(tiny, **arguments).transform(TEXTS)
        assert found.dtype == np.float32
        assert found.shape == (len(TEXTS), elmo.dim)
        assert np.array_equal(found, np.stack(elmo.embed(TEXTS, **{"pool": "mean", **arguments})))

    def test_texts_may_come_in_any_sequence_and_as_lists_of_words(self, vectorizer):
        """Oracle: the rows of the list."""
        expected = vectorizer.transform(TEXTS)
        words = [["It", "rains", "."], ["Jordan", "beat", "Chelsea"], [], ["The", "bank", "is", "closed", "."]]
        for texts in (tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, dtype=object), iter(TEXTS), words):
            assert np.array_equal(vectorizer.transform(texts), expected)

    def test_a_tokenizer_may_be_given(self, tiny, elmo):
        """Oracle: the words by hand."""
        found = ElmoVectorizer(tiny, tokenizer=str.split).transform(["don't go."])
        assert np.array_equal(found[0], elmo.embed([["don't", "go."]], pool="mean")[0])

    def test_no_texts_are_no_rows(self, vectorizer, elmo):
        """Oracle: by hand."""
        assert vectorizer.transform([]).shape == (0, elmo.dim)

    def test_parameters_may_be_set_again(self, vectorizer, shipped_bilm):
        """Oracle: the dimension of another biLM."""
        assert vectorizer.transform(TEXTS).shape[1] == 16
        assert vectorizer.set_params(bilm=str(shipped_bilm)).transform(TEXTS).shape[1] == 256


class TestErrors:
    @pytest.mark.parametrize("method", ["fit", "transform"])
    @pytest.mark.parametrize(
        ("texts", "message"),
        [
            ("a text", "X must be a list of texts, but is the string 'a text'"),
            (np.array([["a"], ["b"]]), r"X must be a list of texts or one column, but has the shape \(2, 1\)"),
        ],
    )
    def test_another_object_than_a_list_of_texts_is_an_error(self, vectorizer, method, texts, message):
        """Oracle: the rule and the value in the message."""
        with pytest.raises(ValueError, match=message):
            getattr(vectorizer, method)(texts)

    def test_an_object_that_is_not_a_text_is_named(self, vectorizer):
        """Oracle: the number and the value; an empty cell of a table is read so."""
        with pytest.raises(ValueError, match=r"a sentence must be a string.*, but sentence 1 is nan"):
            vectorizer.transform(["a", float("nan")])

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"pool": None}, "a text must have one vector, but pool is None"),
            ({"layers": "all"}, "a text must have one vector, .*layers 'all'"),
            ({"pool": "sum"}, "pool must be one of"),
            ({"weights": [1.0]}, "weights must be 3 finite numbers"),
            ({"bilm": "smal"}, "a biLM must be one of small-open"),
        ],
    )
    def test_settings_are_checked_by_fit(self, tiny, arguments, message):
        """Oracle: the rule in the message; no error before, as scikit-learn wants it."""
        vectorizer = ElmoVectorizer(**{"bilm": tiny, **arguments})
        with pytest.raises(ValueError, match=message):
            vectorizer.fit(TEXTS)


class TestTheImport:
    def test_without_scikit_learn_the_error_says_what_to_do(self, monkeypatch):
        """Oracle: the message."""
        monkeypatch.setitem(sys.modules, "sklearn.base", None)
        monkeypatch.delitem(sys.modules, "elmo_tasks.vectors.sklearn_vectorizer")
        with pytest.raises(ModuleNotFoundError, match="scikit-learn, which is not installed"):
            elmo_tasks.ElmoVectorizer  # noqa: B018


class TestInPipelines:
    def test_a_search_chooses_its_parameters(self, tiny):
        """Oracle: labels that depend on the words."""
        texts = ["good good film", "bad bad film", "a good one", "a bad one"] * 3
        labels = [1, 0, 1, 0] * 3
        pipeline = make_pipeline(ElmoVectorizer(tiny, tokenizer=str.split), LogisticRegression(C=1e4))
        search = GridSearchCV(pipeline, {"elmovectorizer__layers": [0, "top"]}, cv=2).fit(texts, labels)
        assert search.predict(["good", "bad"]).tolist() == [1, 0]

    def test_a_column_is_given_by_itself(self, tiny, elmo):
        """Oracle: `Elmo` on the column; a list of columns is an error."""
        table = np.array([[number, text] for number, text in enumerate(TEXTS)], dtype=object)
        found = ColumnTransformer([("elmo", ElmoVectorizer(tiny), 1)]).fit_transform(table)
        assert np.array_equal(found, np.stack(elmo.embed(TEXTS, pool="mean")))
        with pytest.raises(ValueError, match="in a ColumnTransformer by its name"):
            ColumnTransformer([("elmo", ElmoVectorizer(tiny), [1])]).fit_transform(table)
