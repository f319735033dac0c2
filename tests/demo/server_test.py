import json
import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from typing import Any

import pytest

from elmo_tasks.demo.demo import Demo

pytest.importorskip("gradio", reason="Gradio is not installed: `pip install 'elmo_tasks[demo]'`")

SENTENCES = ["They play on Saturdays .", "The play opens ."]


@pytest.fixture(scope="module")
def url(demo: Demo) -> Iterator[str]:
    """The address of a server in this process."""
    from elmo_tasks.demo.server import bound_socket, make_app, make_server

    server = make_server(make_app(demo))
    with bound_socket("127.0.0.1", 0) as bound:
        thread = Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        server.should_exit = True
        thread.join()


def opened(url: str, body: Any = None, **headers: str) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **headers})
    # Whatever proxy the shell has set.
    return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60)


def called(url: str, name: str, *values: Any) -> tuple[str, Any]:
    """The kind and the data of the last event of a call, as the page of the docs makes it."""
    with opened(f"{url}/gradio_api/call/{name}", {"data": values}) as response:
        event = json.load(response)["event_id"]
    with opened(f"{url}/gradio_api/call/{name}/{event}") as response:
        *_, kind, data = response.read().decode().strip().splitlines()
    return kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))


class TestEndpoints:
    def test_functions_return_json(self, url, demo):
        """Oracle: the functions of `Demo`, called here."""
        text, pair = "Tim Cook was in Berlin .", ["Two dogs run .", "Animals move ."]
        for name, values, expected in [
            ("similarity", [SENTENCES, "play"], demo.similarity(SENTENCES, "play")),
            ("neighbors", [SENTENCES, "play", 2], demo.neighbors(SENTENCES, "play", 2)),
            ("map", [SENTENCES, "play", "pca"], demo.map(SENTENCES, "play")),
            ("layer_weights", [], demo.layer_weights()),
            ("likelihood", [text], demo.likelihood(text)),
            ("ner", [text], demo.predict("ner", text)),
            ("snli", pair, demo.predict("snli", *pair)),
        ]:
            kind, data = called(url, name, *values)
            assert (kind, data) == ("complete", [json.loads(json.dumps(expected))]), name

    def test_names_and_descriptions_of_arguments_are_listed(self, url):
        """Oracle: the signatures; nothing else of the page has a name."""
        with opened(f"{url}/gradio_api/info") as response:
            endpoints = json.load(response)["named_endpoints"]
        arguments = {name: [one["parameter_name"] for one in found["parameters"]] for name, found in endpoints.items()}
        assert arguments == {
            "/similarity": ["sentences", "word"],
            "/neighbors": ["sentences", "word", "k"],
            "/map": ["sentences", "word", "method"],
            "/layer_weights": [],
            "/likelihood": ["sentence"],
            "/ner": ["sentence"],
            "/snli": ["premise", "hypothesis"],
        }
        assert all(found["description"] for found in endpoints.values())

    @pytest.mark.parametrize(
        ("name", "values", "message"),
        [
            (
                "similarity",
                [SENTENCES, "bank"],
                "'bank' is not in sentence 1, whose words are: They play on Saturdays .",
            ),
            ("similarity", [["<script>"], "a"], "whose words are: < script >"),
            ("similarity", ["They play", "play"], "there must be at least one sentence"),
            ("neighbors", [SENTENCES, "play", 1000], "k must be a whole number from 1 to 50, but is 1000"),
            ("map", [SENTENCES, "play", "tsne"], "the map must be by one of pca"),
            ("ner", ["word " * 10_000], "the sentence must have at most 200 words, but has 10,000: shorten it"),
            ("ner", [{"a": 1}], "the sentence must be a text, but is of the type dict"),
            ("snli", ["a", ""], "the hypothesis must have at least one word, but is empty"),
            ("likelihood", ["a \ud800"], "half a pair of UTF-16"),
        ],
    )
    def test_errors_are_sentences(self, url, capfd, name, values, message):
        """Oracle: the messages, as they are; no stack trace goes to the client or to the terminal."""
        kind, data = called(url, name, *values)
        assert kind == "error" and message in data["error"]
        assert "Traceback" not in json.dumps(data) + capfd.readouterr().err

    def test_eight_users_at_once_get_their_own_answers(self, url, demo):
        """Oracle: the likelihood of each sentence, computed here."""
        texts = [f"They play number {number} ." for number in range(8)]
        with ThreadPoolExecutor(8) as users:
            found = list(users.map(lambda text: called(url, "likelihood", text), texts))
        for text, (kind, data) in zip(texts, found, strict=True):
            assert kind == "complete"
            assert data[0]["words"] == text.split()
            assert data[0]["forward"] == pytest.approx(demo.likelihood(text)["forward"], abs=1e-4)

    def test_nothing_goes_past_the_queue(self, url):
        """Oracle: the status of Gradio for calls that would not wait."""
        with pytest.raises(urllib.error.HTTPError) as error:
            opened(f"{url}/gradio_api/run/similarity", {"data": [SENTENCES, "play"]})
        assert 400 <= error.value.code < 500


class TestPage:
    def test_nothing_is_fetched_from_another_host(self, url):
        """Oracle: the addresses of scripts, styles and images in the page and its theme; the policy for the browser."""
        with opened(url) as response:
            page, policy = response.read().decode(), response.headers["Content-Security-Policy"]
        with opened(f"{url}/theme.css") as response:
            theme = response.read().decode()
        addresses = re.findall(r"""(?:src|href)=["']?((?:https?:)?//[^"' >]*)""", page)
        assert [address for address in addresses if not address.startswith(f"{url}/")] == []
        assert "--font:" in theme and not re.search(r"""url\(["']?(?:https?:)?//|@import|IBM Plex""", theme)
        assert policy.startswith("default-src 'self';") and "http" not in policy

    def test_names_of_users_are_escaped(self, url):
        """Oracle: the name of the biLM, which has markup, in the config of the page."""
        with opened(f"{url}/config") as response:
            config = response.read().decode()
        assert "&lt;b&gt;tiny&lt;/b&gt;" in config and "<b>tiny" not in config

    def test_another_site_cannot_read_the_answers(self, url):
        """Oracle: the status for a name that was resolved to this machine."""
        with pytest.raises(urllib.error.HTTPError) as error:
            opened(url, Host="evil.example")
        assert error.value.code == 400

    def test_nothing_is_reported(self):
        """Oracle: Gradio's own function."""
        from gradio.analytics import analytics_enabled

        assert not analytics_enabled()


class TestErrors:
    def test_a_sentence_on_the_page_is_escaped(self):
        """Oracle: by hand; Gradio takes a message as HTML."""
        import gradio

        from elmo_tasks.demo.errors import for_the_page

        def fail(text: str) -> None:
            raise ValueError(f"not {text}")

        with pytest.raises(gradio.Error) as error:
            for_the_page(fail)("<img src=x>")
        assert error.value.message == "not &lt;img src=x&gt;"

    def test_an_unexpected_error_is_only_in_the_log(self, caplog):
        """Oracle: the sentence, and the reason in the log."""
        import gradio

        from elmo_tasks.demo.errors import for_the_api

        def fail() -> None:
            raise ZeroDivisionError("secret")

        with pytest.raises(gradio.Error, match="could not compute this") as error:
            for_the_api(fail)()
        assert "secret" not in error.value.message and "secret" in caplog.text


class TestBoundSocket:
    def test_a_port_in_use_is_refused_in_a_sentence(self):
        """Oracle: the message, with the port."""
        from elmo_tasks.demo.server import bound_socket

        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(
                OSError, match=rf"127.0.0.1:{port} is not one \(Address already in use.*--port 0 for any"
            ):
                with bound_socket("127.0.0.1", port):
                    pass

    def test_an_address_of_ipv6_is_an_error(self):
        """Oracle: the message."""
        from elmo_tasks.demo.server import bound_socket

        with pytest.raises(ValueError, match=r"a name or an address of IPv4, but is '::1': name another with --host"):
            with bound_socket("::1", 0):
                pass

    @pytest.mark.parametrize("port", [-1, 65_536])
    def test_a_port_that_does_not_exist_is_an_error(self, port):
        """Oracle: the message."""
        from elmo_tasks.demo.server import bound_socket

        with pytest.raises(ValueError, match=rf"the port must be from 0 to 65,535, but is {port:,}: name another"):
            with bound_socket("127.0.0.1", port):
                pass
