import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from elmo_tasks import ElmoVectorizer
from tests.paths import SHIPPED_BILM, TINY_BILM

TEXTS = ["It rains.", "Jordan beat Chelsea", "", "The bank is closed."]
TINY = str(TINY_BILM)


@pytest.fixture
def vectorizer() -> ElmoVectorizer:
    return ElmoVectorizer(TINY)


class TestEstimatorChecks:
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
    def test_check_estimator_passes(self, vectorizer):
        results = check_estimator(vectorizer)
        assert results
        assert {result["status"] for result in results} == {"passed"}


class TestWhatTheOtherChecksCheck:
    def test_fit_returns_itself_and_changes_no_parameter(self, vectorizer):
        before = vectorizer.get_params()
        assert vectorizer.fit(TEXTS, [0, 1, 0, 1]) is vectorizer
        vectorizer.transform(TEXTS)
        assert vectorizer.get_params() == before

    def test_it_need_not_be_fitted(self, vectorizer):
        rows = clone(vectorizer).transform(TEXTS)
        assert np.array_equal(rows, vectorizer.fit(TEXTS[:1]).transform(TEXTS))
        assert np.array_equal(rows, clone(vectorizer).fit_transform(TEXTS, [1, 2, 3, 4]))

    def test_it_can_be_pickled_without_its_weights(self, vectorizer):
        expected = vectorizer.transform(TEXTS)
        data = pickle.dumps(vectorizer)
        assert len(data) < 1000
        assert np.array_equal(pickle.loads(data).transform(TEXTS), expected)


class TestTransform:
    @pytest.mark.parametrize(
        "arguments",
        [
            {},
            {"pool": "max", "layers": "top"},
            {"weights": [0.0, 1.0, 2.0], "gamma": 2.0},
            {"pool": "first-last"},
            {"layers": "all"},
        ],
    )
    def test_the_rows_match_elmo(self, elmo, arguments):
        vectorizer = ElmoVectorizer(TINY, **arguments)
        rows = vectorizer.transform(TEXTS)
        expected = elmo.embed(TEXTS, **{"pool": "mean", **arguments})
        assert rows.dtype == np.float32
        assert np.array_equal(rows, [array.ravel() for array in expected])
        names = vectorizer.get_feature_names_out()
        assert list(names) == [f"elmovectorizer{index}" for index in range(rows.shape[1])]

    def test_without_a_pool_it_is_the_mean(self, vectorizer):
        expected = vectorizer.transform(TEXTS)
        assert np.array_equal(vectorizer.set_params(pool=None).transform(TEXTS), expected)

    def test_texts_may_come_in_any_sequence_and_as_lists_of_words(self, vectorizer):
        expected = vectorizer.transform(TEXTS)
        words = [
            ["It", "rains", "."],
            ["Jordan", "beat", "Chelsea"],
            [],
            ["The", "bank", "is", "closed", "."],
        ]
        for texts in (
            tuple(TEXTS),
            np.array(TEXTS),
            np.array(TEXTS, dtype=object),
            iter(TEXTS),
            words,
        ):
            assert np.array_equal(vectorizer.transform(texts), expected)

    def test_parameters_may_be_set_again(self, vectorizer):
        assert vectorizer.transform(TEXTS).shape[1] == 16
        vectorizer.set_params(bilm=str(SHIPPED_BILM))
        assert vectorizer.transform(TEXTS).shape[1] == 256


class TestInPipelines:
    def test_a_search_chooses_its_parameters(self):
        texts = ["good good film", "bad bad film", "a good one", "a bad one"] * 3
        labels = [1, 0, 1, 0] * 3
        pipeline = make_pipeline(
            ElmoVectorizer(TINY, tokenizer=str.split), LogisticRegression(C=1e4)
        )
        search = GridSearchCV(pipeline, {"elmovectorizer__layers": [0, "top"]}, cv=2)
        search.fit(texts, labels)
        assert search.predict(["good", "bad"]).tolist() == [1, 0]

    @pytest.mark.parametrize("columns", [1, [1]])
    def test_a_table_has_one_column(self, elmo, columns):
        table = np.array(list(enumerate(TEXTS)), dtype=object)
        transformer = ColumnTransformer([("elmo", ElmoVectorizer(TINY), columns)])
        rows = transformer.fit_transform(table)
        assert np.array_equal(rows, np.stack(elmo.embed(TEXTS, pool="mean")))
        with pytest.raises(ValueError, match=r"one column, got the shape \(\d, 2\)"):
            ElmoVectorizer(TINY).fit_transform(table)
