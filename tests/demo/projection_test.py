import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from elmo_tasks.demo import projection
from elmo_tasks.demo.projection import projected


class TestProjected:
    def test_pca_keeps_the_directions_of_most_variance(self):
        """Oracle: distances in NumPy; vectors that vary in two of five directions lose nothing."""
        random = np.random.default_rng(0)
        vectors = np.zeros((20, 5))
        vectors[:, [1, 3]] = random.normal(size=(20, 2)) * [3, 1]
        points = projected(vectors)
        assert points.shape == (20, 2)
        distances = [np.linalg.norm(some[:, None] - some[None], axis=-1) for some in (vectors, points)]
        np.testing.assert_allclose(*distances, atol=1e-9)
        assert points[:, 0].var() > points[:, 1].var()

    def test_one_vector_and_none_have_places(self):
        """Oracle: the shapes; PCA needs two vectors."""
        np.testing.assert_array_equal(projected(np.ones((1, 4))), [[0, 0]])
        assert projected(np.ones((0, 4))).shape == (0, 2)

    def test_equal_vectors_have_the_same_place(self):
        """Oracle: the difference, in which no number is NaN."""
        points = projected(np.ones((3, 4)))
        np.testing.assert_allclose(points, 0, atol=1e-9)

    def test_umap_needs_its_package_and_enough_vectors(self, monkeypatch):
        """Oracle: the messages."""
        monkeypatch.setattr(projection, "METHODS", ("pca",))
        with pytest.raises(ValueError, match="one of pca, but is by 'umap': `pip install umap-learn`"):
            projected(np.ones((9, 4)), "umap")
        monkeypatch.setattr(projection, "METHODS", ("pca", "umap"))
        with pytest.raises(ValueError, match="UMAP needs at least 8 occurrences of the word, but there are 3"):
            projected(np.ones((3, 4)), "umap")
        with pytest.raises(ValueError, match=r"one of pca, umap, but is by 'tsne'$"):
            projected(np.ones((3, 4)), "tsne")

    @pytest.mark.parametrize(("n", "n_neighbors"), [(8, 7), (40, 15)])
    def test_umap_is_asked_for_the_same_map_each_time(self, monkeypatch, n, n_neighbors):
        """Oracle: the arguments, of a stand-in for the package; with the package itself the next test."""
        asked = []

        def make(**settings):
            asked.append(settings)
            return SimpleNamespace(fit_transform=lambda vectors: vectors[:, :2])

        monkeypatch.setattr(projection, "METHODS", ("pca", "umap"))
        monkeypatch.setitem(sys.modules, "umap", SimpleNamespace(UMAP=make))
        assert projected(np.ones((n, 4)), "umap").shape == (n, 2)
        assert asked == [{"n_neighbors": n_neighbors, "random_state": 0, "n_jobs": 1}]

    @pytest.mark.slow
    def test_umap_keeps_groups_apart(self):
        """Oracle: two groups far from each other are so on the map; the same map twice, without a warning."""
        pytest.importorskip("umap", reason="umap-learn is not installed")
        random = np.random.default_rng(0)
        vectors = np.concatenate([center + 0.1 * random.normal(size=(20, 16)) for center in (0.0, 1.0)])
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            points = projected(vectors, "umap")
        np.testing.assert_array_equal(points, projected(vectors, "umap"))
        within = max(points[:20].std(0).max(), points[20:].std(0).max())
        assert np.linalg.norm(points[:20].mean(0) - points[20:].mean(0)) > 4 * within
