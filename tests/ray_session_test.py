"""Tests of a session on a Ray cluster."""

import sys
from types import SimpleNamespace

import pytest

from elmo_tasks.ray_session import ray_session, require_ray


class TestRequireRay:
    def test_without_ray_an_error_says_how_to_get_it(self, monkeypatch):
        """Oracle: the message; `None` in `sys.modules` is a module that cannot be found."""
        monkeypatch.setitem(sys.modules, "ray", None)
        with pytest.raises(ModuleNotFoundError, match=r"pip install 'elmo_tasks\[ray\]'"):
            require_ray()


class TestRaySession:
    def test_a_local_cluster_lasts_as_long_as_the_block(self, monkeypatch):
        """
        Oracle: what is asked of a stand-in of Ray: the cores, and the end after an error in the block.
        """
        asked = []
        stand_in = SimpleNamespace(init=lambda **options: asked.append(options), shutdown=lambda: asked.append("end"))
        monkeypatch.setitem(sys.modules, "ray", stand_in)
        with pytest.raises(KeyboardInterrupt), ray_session("local", n_cpus=3) as found:
            assert found is stand_in and asked[0]["address"] == "local" and asked[0]["num_cpus"] == 3
            raise KeyboardInterrupt
        assert asked[1:] == ["end"]

    @pytest.mark.parametrize(("address", "n_starts"), [("local", 3), ("auto", 1)])
    def test_a_local_cluster_that_does_not_start_in_time_is_started_again(self, monkeypatch, address, n_starts):
        """Oracle: by hand, for a stand-in that never starts: each start is ended before the next; and the message."""
        asked = []

        def init(**options: object) -> None:
            asked.append(options)
            raise Exception("timed out")

        stand_in = SimpleNamespace(init=init, shutdown=lambda: asked.append("end"))
        monkeypatch.setitem(sys.modules, "ray", stand_in)
        message = "in 3 attempts: run the command again when fewer programs run, or" if address == "local" else "'auto'"
        with pytest.raises(ConnectionError, match=rf"{message}.*timed out"), ray_session(address):
            pass
        assert asked[1::2] == ["end"] * n_starts and asked[::2] == [asked[0]] * n_starts

    def test_a_local_cluster_that_starts_late_is_used(self, monkeypatch):
        """Oracle: by hand, for a stand-in that starts the second time."""
        asked = []

        def init(**options: object) -> None:
            asked.append(options)
            if len(asked) == 1:
                raise Exception("timed out")

        stand_in = SimpleNamespace(init=init, shutdown=lambda: asked.append("end"))
        monkeypatch.setitem(sys.modules, "ray", stand_in)
        with ray_session("local") as found:
            assert found is stand_in
        assert asked == [asked[0], "end", asked[0], "end"]

    def test_an_address_without_a_cluster_is_an_error(self):
        """Oracle: the message has the address."""
        ray = pytest.importorskip("ray")
        with pytest.raises(ConnectionError, match=r"--ray must be the address of a running cluster, .* but is 'no://"):
            with ray_session("no://where"):
                pass
        assert not ray.is_initialized()
