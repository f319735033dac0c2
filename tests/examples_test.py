"""examples/: every script runs, and prints what its page promises."""

import re
import subprocess
import sys

import pytest

from tests.paths import CHECKOUT

EXAMPLES = CHECKOUT / "examples"
NUMBER = r"(-?\d+\.\d+)"


def output_of(name: str) -> str:
    """What a script prints."""
    run = subprocess.run([sys.executable, EXAMPLES / name], capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr[-2000:]
    return run.stdout


def numbers(pattern: str, text: str) -> list[float]:
    """The numbers of the only place that a pattern matches."""
    (found,) = re.findall(pattern, text)
    return [float(number) for number in ((found,) if isinstance(found, str) else found)]


@pytest.fixture(autouse=True)
def data_that_ships(monkeypatch):
    """Whatever the shell has set, the scripts run on what ships."""
    for name in ("ELMO_TASKS_DATA", "ELMO_TASKS_GLOVE", "ELMO_TASKS_BILM", "ELMO_TASKS_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))


def test_each_is_tested_and_asks_a_question():
    """Oracle: the names of the tests below; the docstring's first line."""
    tests = {name.removeprefix("test_").removesuffix("_runs") for name in globals() if name.endswith("_runs")}
    scripts = list(EXAMPLES.glob("*.py"))
    assert {path.stem for path in scripts} == tests
    for path in scripts:
        question = path.read_text(encoding="utf-8").split('"""')[1].strip().splitlines()[0]
        assert question.endswith("?"), path.name


@pytest.mark.slow
def test_vectors_runs():
    """Oracle: a bank of a river is nearer to another one than to a bank with money."""
    output = output_of("vectors.py")
    (same,) = numbers(rf"bank \(river\) and bank \(other river\): +{NUMBER}", output)
    (other,) = numbers(rf"bank \(river\) and bank \(money\): +{NUMBER}", output)
    assert same > other + 0.1


@pytest.mark.slow
def test_nearest_neighbours_runs():
    """Oracle: the nearest use of the verb is a verb, and that of the noun is a noun."""
    verb, noun = re.findall(r"':\n(.*)\n", output_of("nearest_neighbours.py"))
    assert "[play] in 'They play football" in verb
    assert "[play] in 'He wrote a play" in noun or "[play] in 'The critics" in noun


@pytest.mark.slow
def test_sklearn_classifier_runs():
    """Oracle: far better than guessing; two sentences by hand."""
    output = output_of("sklearn_classifier.py")
    (accuracy,) = numbers(rf"accuracy: {NUMBER}", output)
    assert accuracy > 0.8
    assert re.search(r"superb.*: review", output) and re.search(r"mayor.*: news", output)


@pytest.mark.slow
def test_embed_a_corpus_runs():
    """Oracle: the lines of the text that ships; the nearest sentences come in descending order."""
    output = output_of("embed_a_corpus.py")
    assert "163 sentences" in output and "163 x 256" in output
    cosines = [float(number) for number in re.findall(rf"^  {NUMBER}  \S", output, re.MULTILINE)]
    assert len(cosines) == 3 and cosines == sorted(cosines, reverse=True) and cosines[0] < 1


@pytest.mark.slow
def test_ner_with_elmo_runs():
    """Oracle: it has learned something; each sentence has its line."""
    output = output_of("ner_with_elmo.py")
    (f1,) = numbers(rf"F1 on the dev set: {NUMBER}", output)
    assert 0.1 < f1 <= 1
    assert len(re.findall(r" -> \S", output)) == 2


@pytest.mark.slow
def test_finetune_a_bilm_runs():
    """Oracle: the perplexity falls; the biLM has vectors of its own width, 2 x 64."""
    output = output_of("finetune_a_bilm.py")
    before, after = numbers(rf"sentences: {NUMBER} before, {NUMBER} after", output)
    assert 1 < after < before
    assert "5 words, 128 numbers each" in output
