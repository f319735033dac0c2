"""Every script in examples/ runs, and prints what its page promises."""

import ast
import contextlib
import io
import json
import logging
import re
import runpy
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from tests.docs.home import make_home
from tests.paths import CHECKOUT, TINY_BILM

EXAMPLES = CHECKOUT / "examples"
NUMBER = r"(-?\d+\.\d+)"


def output_of(name: str) -> str:
    """
    The output of a script, run in this process because the imports alone take longer than most
    scripts.
    """
    output = io.StringIO()
    try:
        with contextlib.redirect_stdout(output):
            runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    finally:
        logging.disable(logging.NOTSET)
    return output.getvalue()


def numbers(pattern: str, text: str) -> list[float]:
    """The numbers in the only match of a pattern."""
    (match,) = re.finditer(pattern, text)
    return [float(number) for number in match.groups()]


@pytest.fixture(autouse=True)
def data_that_ships(monkeypatch, logging_as_before):
    """Makes the scripts run on the included data, regardless of the shell."""
    for name in ("ELMO_TASKS_DATA", "ELMO_TASKS_GLOVE", "ELMO_TASKS_BILM", "ELMO_TASKS_CACHE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def small_data(tmp_path: Path) -> Path:
    """A data folder with a few sentences of the included data."""
    make_home(tmp_path)
    return tmp_path / "data"


def test_each_is_tested_and_asks_a_question():
    scripts = list(EXAMPLES.glob("*.py"))
    tests = [name for name in globals() if name.endswith("_runs")]
    assert {f"test_{path.stem}_runs" for path in scripts} == set(tests)
    for path in scripts:
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        question, *_ = docstring.splitlines()
        assert question.endswith("?"), path.name


@pytest.mark.slow
def test_vectors_runs():
    output = output_of("vectors.py")
    (same,) = numbers(rf"bank \(river\) and bank \(other river\): +{NUMBER}", output)
    (other,) = numbers(rf"bank \(river\) and bank \(money\): +{NUMBER}", output)
    assert same > other + 0.1


@pytest.mark.slow
def test_nearest_neighbours_runs():
    verb, noun = re.findall(r"':\n(.*)\n", output_of("nearest_neighbours.py"))
    assert "[play] in 'They play football" in verb
    assert re.search(r"\[play\] in '(He wrote a play|The critics)", noun)


@pytest.mark.slow
def test_sklearn_classifier_runs():
    output = output_of("sklearn_classifier.py")
    (accuracy,) = numbers(rf"accuracy: {NUMBER}", output)
    assert accuracy > 0.8
    assert re.search(r"superb.*: review", output)
    assert re.search(r"mayor.*: news", output)


@pytest.mark.slow
def test_embed_a_corpus_runs():
    output = output_of("embed_a_corpus.py")
    assert "163 sentences" in output and "163 x 256" in output
    cosines = [float(number) for number in re.findall(rf"^  {NUMBER}  \S", output, re.MULTILINE)]
    assert len(cosines) == 3
    assert cosines == sorted(cosines, reverse=True)
    assert cosines[0] < 1


@pytest.mark.weekly
def test_ner_with_elmo_runs(small_data, monkeypatch):
    people = ["Anna", "Peter", "Maria", "John", "Paul", "Mary", "David", "Sarah"]
    towns = ["Paris", "London", "Berlin", "Boston", "Chicago", "Rome", "Madrid", "Vienna"]
    sentences = []
    for person, town in product(people, towns):
        sentences.append(f"{person} -X- O B-PER\nsaw -X- O O\n{town} -X- O B-LOC\n. -X- O O\n")
    ner = small_data / "ner"
    (ner / "train.txt").write_text("\n".join(sentences * 4), encoding="utf-8")
    for name in ("dev.txt", "test.txt"):
        (ner / name).write_text("\n".join(sentences[:20]), encoding="utf-8")
    monkeypatch.setenv("ELMO_TASKS_DATA", str(small_data))
    monkeypatch.setenv("ELMO_TASKS_BILM", str(TINY_BILM))
    output = output_of("ner_with_elmo.py")
    (f1,) = numbers(rf"F1 on the dev set: {NUMBER}", output)
    assert 0.5 < f1 <= 1
    assert len(re.findall(r" -> \S", output)) == 2


@pytest.mark.weekly
def test_finetune_a_bilm_runs(small_data, monkeypatch):
    monkeypatch.setattr("elmo_tasks.files.shipped.FIXTURES", small_data)
    output = output_of("finetune_a_bilm.py")
    before, after = numbers(rf"sentences: {NUMBER} before, {NUMBER} after", output)
    assert 1 < after < before
    assert "5 words, 256 numbers each" in output


@pytest.mark.slow
def test_text_from_wikipedia_runs(tmp_path, monkeypatch):
    document = """\
<doc id="1" title="A title of a long article.">
A title of a long article.

History of the town.
{}

</doc>
"""
    with_markup = "The town is (, ) 12 &amp;lt;br&amp;gt; miles away from Paris."
    with_a_formula = "It has formula_1 and a river."
    paragraphs_of = {
        "AA": [f"{with_markup} {with_a_formula}", "It is not far at all from here."],
        "AB": ["It is not far at all from here. The last folder is held out."],
    }
    for name, paragraphs in paragraphs_of.items():
        folder = tmp_path / "wikipedia" / name
        folder.mkdir(parents=True)
        documents = [document.format(paragraph) for paragraph in paragraphs]
        (folder / "wiki_00").write_text("".join(documents))
    monkeypatch.setattr("sys.argv", ["", str(tmp_path / "wikipedia"), str(tmp_path / "lm")])
    assert "2 sentences, 18 words" in output_of("text_from_wikipedia.py")
    train = (tmp_path / "lm" / "train.txt").read_text()
    expected = ["It is not far at all from here .", "The town is 12 miles away from Paris ."]
    assert sorted(train.splitlines()) == expected
    assert (tmp_path / "lm" / "test.txt").read_text() == "The last folder is held out .\n"


@pytest.mark.weekly
def test_the_spacy_project_makes_a_package(tmp_path):
    project = tmp_path / "examples" / "spacy"
    project.mkdir(parents=True)
    for file in ("configs.py", "data.py", "project.yml"):
        shutil.copy(EXAMPLES / "spacy" / file, project)
    (tmp_path / "data").symlink_to(CHECKOUT / "data")
    command = "spacy project run all . --vars.sentences 300 --vars.epochs 1"
    subprocess.run([sys.executable, "-m", *command.split()], cwd=project, check=True)
    metrics = json.loads((project / "metrics" / "ner_elmo_0.json").read_text())
    assert 0 <= metrics["ents_f"] < 1
    assert list(project.glob("packages/en_ner_elmo-0.0.0/dist/*.tar.gz"))


@pytest.mark.weekly
def test_the_notebook_prints_what_it_shows(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    names: dict[str, object] = {}
    content = (EXAMPLES / "elmo_in_five_minutes.ipynb").read_text(encoding="utf-8")
    for cell in json.loads(content)["cells"]:
        if cell["cell_type"] == "code":
            shown: list[str] = []
            for cell_output in cell["outputs"]:
                shown += cell_output.get("text", [])
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec("".join(cell["source"]), names)
            assert output.getvalue() == "".join(shown)
