"""
Scores of the models in `models/` on text unlike what they were trained on, next to their own test sets:
`python tools/other_text.py FOLDER DATA [TASK ...]`, ten minutes of one core.
Prints the beginning of rows of `results/studies.csv`.

DATA is what `allennlp elmo-data open --to DATA` wrote. FOLDER has clones of UniversalNER/UNER_English-PUD,
UniversalDependencies/UD_English-PUD and UD_English-GUM, propbank/propbank-release, amir-zeldes/gum, verypluming/MED and
deepset-ai/COVID-QA; `masc/`, the bracketed Penn Treebank files of MASC (https://anc.org/data/masc); and
`amazon_cells_labelled.txt` of the Sentiment Labelled Sentences (UCI, CC BY 4.0). What is missing there is left out.
"""

import argparse
import json
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from elmo_tasks import TrainedTask
from elmo_tasks.shipped import MODELS

# The words of a file: the first column of names, the second of CoNLL-U.
_WORDS = re.compile(r"(?m)^(\d+\t)?([^\s#]\S*)")
_CASES: dict[str, Callable[[str], str]] = {"": str, ", without capitals": str.lower, ", all capitals": str.upper}
_LEAF = re.compile(r"\(|\)|[^\s()]+(?:\s+[^\s()]+)?")
# Kinds of text in GUM with an open licence: CC BY (Wikinews) and CC BY-SA (Wikipedia, Wikivoyage).
_GUM = ("news", "interview", "bio", "voyage")


def entities(source: Path) -> str:
    """The words and tags of UNER in two columns, with the labels of our model; other files as they are."""
    if source.suffix != ".iob2":
        return source.read_text("utf-8")
    text = re.sub(r"(?m)^#.*\n", "", source.read_text("utf-8"))
    return re.sub(r"(?m)^\S+\t(.*)\t(\S+)\t\S+\t\S+$", _two_columns, text)


def _two_columns(line: re.Match) -> str:
    word, tag = line[1].replace(" ", ""), line[2].replace("PER", "PERSON")
    return f"{word} {'O' if 'OTH' in tag else tag}"


def cased(content: str, case: str) -> str:
    """The content of a file with words in a different case."""
    return _WORDS.sub(lambda found: (found[1] or "") + _CASES[case](found[2]), content)


def documents(gum: Path, kind: str) -> str:
    """OntoGUM's coreference in columns of CoNLL-2012, with the sentences of its other file."""
    parts = []
    for file in sorted((gum / "coref/ontogum/conll").glob(f"GUM_{kind}_*.conll")):
        rows = [line.split("\t") for line in file.read_text("utf-8").splitlines() if line and line[0] != "#"]
        sentences = (gum / "coref/ontogum/conllu" / f"{file.stem}.conllu").read_text("utf-8").strip().split("\n\n")
        lengths = [len(re.findall(r"(?m)^\d+\t", sentence)) for sentence in sentences]
        lines, start = [], 0
        for length in lengths:
            for number, (_, word, column) in enumerate(rows[start : start + length]):
                # Between brackets, CoNLL-2012 has a "|".
                column = (
                    "-" if column == "_" else re.sub(r"(?<=\d)(?=\()|\)(?=[\d(])", lambda gap: gap[0] + "|", column)
                )
                lines.append(f"{file.stem} 0 {number} {word} XX * - - - - * {column}")
            lines.append("")
            start += length
        parts += [f"#begin document ({file.stem}); part 000", *lines, "#end document"]
    return "\n".join(parts) + "\n"


def propositions(propbank: Path, trees: Path, kind: str) -> str:
    """PropBank's roles of MASC in columns of CoNLL-2012, with the words of the bracketed files."""
    parts = []
    for file in sorted((propbank / f"data/oanc/masc/{kind}").rglob("*.gold_skel")):
        found = next(iter(sorted(trees.glob(f"{file.stem.replace('-ms98', '*-ms98')}.mrg*"))), None)
        if found is None:
            continue
        sentences = iter(list(_leaves(found.read_text("utf-8"))))
        parts.append(f"#begin document ({file.stem}); part 000")
        for block in file.read_text("utf-8").strip().split("\n\n"):
            rows = [line.split() for line in block.splitlines() if line.strip()]
            words = next(words for words in sentences if len(words) == len(rows))
            if not all(map(_is_sound, zip(*(row[8:] for row in rows), strict=True))):
                continue
            for number, (row, word) in enumerate(zip(rows, words, strict=True)):
                lemma, sense = (row[6], row[7].partition(".")[2]) if row[6] != "-" else ("-", "-")
                columns = [file.stem, "0", str(number), word, row[4], "*", lemma, sense, "-", "-", "*", *row[8:], "-"]
                parts.append(" ".join(columns))
            parts.append("")
        parts.append("#end document")
    # Five roles that the training data does not have: as a rare one that it has, they are errors.
    return re.sub(r"\((?:R-ARGM-PRP|R-ARGM-EXT|ARGM-DSP)\*", "(ARGA*", "\n".join(parts)) + "\n"


def _is_sound(cells: tuple[str, ...]) -> bool:
    """Whether the roles of a predicate do not overlap, and it has one verb."""
    brackets = re.findall(r"[()]", "".join(cells))
    return brackets == ["(", ")"] * (len(brackets) // 2) and sum(cell.startswith("(V*") for cell in cells) == 1


def _leaves(text: str) -> Iterator[list[str]]:
    """The words of each tree, without traces."""
    depth, words = 0, []
    for part in _LEAF.findall(text):
        if part in "()":
            depth += 1 if part == "(" else -1
            if depth == 0 and words:
                yield words
                words = []
        elif len(leaf := part.split()) == 2 and leaf[0] != "-NONE-":
            words.append(leaf[1].replace("-LRB-", "(").replace("-RRB-", ")"))


def questions(source: Path) -> str:
    """COVID-QA with the paragraph of the answer as the passage; paragraphs over 4,000 characters are left out."""
    paragraphs = []
    for article in json.loads(source.read_text("utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                for answer in question["answers"][:1]:
                    start = paragraph["context"].rfind("\n\n", 0, answer["answer_start"]) + 2
                    passage = paragraph["context"][start:].partition("\n\n")[0].strip()
                    text, place = answer["text"].strip(), passage.find(answer["text"].strip())
                    if place >= 0 and len(passage) <= 4000:
                        answers = [{"text": text, "answer_start": place}]
                        asked = {"id": str(question["id"]), "question": question["question"], "answers": answers}
                        paragraphs.append({"context": passage, "qas": [asked]})
    return json.dumps({"data": [{"title": "", "paragraphs": paragraphs}]})


def evaluated(task: str, content: str, suffix: str, metric: str) -> float:
    """A metric of `allennlp evaluate` for the content of a file."""
    from allennlp.commands.evaluate import evaluate_from_archive

    with tempfile.NamedTemporaryFile("w", suffix=suffix, encoding="utf-8") as file:
        file.write(content)
        file.flush()
        found: dict[str, Any] = evaluate_from_archive(str(MODELS / task), file.name)
    return 100 * found[metric]


def tags(content: str) -> tuple[float, float, float]:
    """The accuracy of universal tags, of Penn Treebank tags and of both for CoNLL-U."""
    from elmo_tasks.data import PosReader

    predictor: Any = TrainedTask("pos").predictor
    right, n_words = [0, 0, 0], 0
    with tempfile.NamedTemporaryFile("w", suffix=".conllu", encoding="utf-8") as file:
        file.write(content)
        file.flush()
        rows = [row for _, row in PosReader(tags="both").rows(file.name)]
    outputs = predictor.predict_batch_json([{"words": words} for words, _ in rows])
    for (_, golds), output in zip(rows, outputs, strict=True):
        for gold, tag in zip(golds or [], output["tags"], strict=True):
            pairs = zip([*gold.split("|", 1), gold], [*tag.split("|", 1), tag], strict=True)
            right = [count + (one == other) for count, (one, other) in zip(right, pairs, strict=True)]
            n_words += 1
    universal, penn, both = (100 * count / n_words for count in right)
    return universal, penn, both


def entailment(source: Path) -> float:
    """The accuracy of entailment or not."""
    header, *lines = source.read_text("utf-8").splitlines()
    rows = [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]
    results = TrainedTask("snli")([(row["sentence1"], row["sentence2"]) for row in rows])
    guesses = [max(result, key=result.__getitem__) == "entailment" for result in results]
    golds = [row["gold_label"] == "entailment" for row in rows]
    return 100 * sum(one == other for one, other in zip(guesses, golds, strict=True)) / len(rows)


def sentiment(pairs: list[tuple[str, bool]]) -> float:
    """The accuracy of positive or negative: whether 4 and 5 stars together are likelier than 1 and 2."""
    results = TrainedTask("sst")([text for text, _ in pairs])
    of = [result["probabilities"] for result in results]
    guesses = [each[4] + each[5] > each[1] + each[2] for each in of]
    return 100 * sum(guess == gold for guess, (_, gold) in zip(guesses, pairs, strict=True)) / len(pairs)


def reviews(source: Path) -> list[tuple[str, bool]]:
    lines = [line.rsplit("\t", 1) for line in source.read_text("utf-8").splitlines() if "\t" in line]
    return [(text, label == "1") for text, label in lines]


def films(source: Path) -> list[tuple[str, bool]]:
    """The sentences of SST that are not neutral."""
    trees = [line for line in source.read_text("utf-8").splitlines() if line[1] != "2"]
    return [(" ".join(re.findall(r" ([^\s()]+)\)", tree)), int(tree[1]) > 2) for tree in trees]


def captions(source: Path) -> float:
    """The accuracy of entailment or not on SNLI, to compare with `entailment`."""
    rows = [row for row in map(json.loads, source.read_text("utf-8").splitlines()) if row["gold_label"] != "-"][:3000]
    results = TrainedTask("snli")([(row["sentence1"], row["sentence2"]) for row in rows])
    guesses = [max(result, key=result.__getitem__) == "entailment" for result in results]
    right = (guess == (row["gold_label"] == "entailment") for guess, row in zip(guesses, rows, strict=True))
    return 100 * sum(right) / len(rows)


_F1, _COREF, _SRL = "f1-measure-overall", "coref_f1", "f1"
# Task, text, measure, what it needs, and how it is computed.
Test = tuple[str, str, str, Path, Callable[[], Any]]


def tests(folder: Path, data: Path) -> list[Test]:
    uner, ud = folder / "UNER_English-PUD/en_pud-ud-test.iob2", folder / "UD_English-{0}/en_{1}-ud-test.conllu"
    propbank, gum, med = folder / "propbank-release", folder / "gum", folder / "MED/MED.tsv"
    covid = folder / "COVID-QA/data/question-answering/200423_covidQA.json"
    amazon = folder / "amazon_cells_labelled.txt"
    found: list[Test] = [
        ("squad", "papers about COVID-19 (COVID-QA)", "F1", covid,
         lambda: evaluated("squad", questions(covid), ".json", "f1")),
        ("snli", "captions (SNLI), entailment or not", "accuracy", data / "snli/test.jsonl",
         lambda: captions(data / "snli/test.jsonl")),
        ("snli", "monotone changes of sentences (MED), entailment or not", "accuracy", med, lambda: entailment(med)),
        ("sst", "film reviews (SST), positive or negative", "accuracy", data / "sst/test.txt",
         lambda: sentiment(films(data / "sst/test.txt"))),
        ("sst", "product reviews (Amazon), positive or negative", "accuracy", amazon,
         lambda: sentiment(reviews(amazon))),
    ]  # fmt: skip
    german = folder / "UNER_German-PUD/de_pud-ud-test.iob2"
    names = {
        "web text (UNER EWT)": data / "ner_general/ewt.txt",
        "Wikipedia (WikiGold)": data / "ner_general/wikigold.txt",
        "news and Wikipedia (UNER PUD)": uner,
        "tweets (BTC)": data / "ner_general/tweets.txt",
        "German news and Wikipedia (UNER PUD)": german,
    }
    for text, file in names.items():
        for case in _CASES if file.stem in ("ewt", "wikigold") else [""]:
            score = lambda file=file, case=case: evaluated("ner", cased(entities(file), case), ".txt", _F1)  # noqa: E731
            found.append(("ner", text + case, "F1", file, score))
    for name, text in (("EWT", "web text"), ("PUD", "news and Wikipedia"), ("GUM", "16 kinds of text")):
        file = data / "pos/test.conllu" if name == "EWT" else Path(str(ud).format(name, name.lower()))
        for case in _CASES if name == "EWT" else [""]:
            score = lambda file=file, case=case: tags(cased(file.read_text("utf-8"), case))  # noqa: E731
            found.append(("pos", f"{text} (UD {name}){case}", "accuracy", file, score))
    for kind in ("written", "spoken"):
        columns = lambda kind=kind: propositions(propbank, folder / "masc", kind)  # noqa: E731
        score = lambda columns=columns: evaluated("srl", columns(), ".gold_conll", _SRL)  # noqa: E731
        found.append(("srl", f"{kind} text of MASC (PropBank)", "F1", folder / "masc", score))
    for kind in _GUM:
        score = lambda kind=kind: evaluated("coref", documents(gum, kind), ".conll", _COREF)  # noqa: E731
        found.append(("coref", f"{kind} (OntoGUM)", "mean F1", gum, score))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("tasks", nargs="*")
    arguments = parser.parse_args()
    for task, text, measure, needed, score in tests(arguments.folder, arguments.data):
        if needed.exists() and task in (arguments.tasks or [task]):
            values = score()
            named = zip(("universal ", "Penn "), values, strict=False) if task == "pos" else [("", values)]
            for name, value in named:
                print(f'other text,{task},models/{task},,"{name}{measure}, {text}",{value:.2f}', flush=True)


if __name__ == "__main__":
    main()
