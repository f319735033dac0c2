"""
Scores of the models in `models/` on text unlike what they were trained on, next to their own test
sets: `python tools/other_text.py FOLDER DATA [TASK ...]`, twenty minutes of one core. Prints the
beginning of rows of `results/studies.csv`.

DATA is what `allennlp elmo-data open --to DATA` wrote. FOLDER has clones of
UniversalNER/UNER_English-EWT, UNER_English-PUD and UNER_German-PUD,
UniversalDependencies/UD_English-PUD and UD_English-GUM, amir-zeldes/gum, propbank/propbank-release,
verypluming/MED, deepset-ai/COVID-QA and deepmind/xquad; `masc/`, the bracketed Penn Treebank files
of MASC (https://anc.org/data/masc); and `amazon_cells_labelled.txt` of the Sentiment Labelled
Sentences (UCI, CC BY 4.0). What is missing there is left out.
"""

import argparse
import json
import re
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from elmo_tasks import TrainedTask
from elmo_tasks.files.shipped import MODELS

# The words of a file: the first column of names, the second of CoNLL-U, the fourth of CoNLL-2012.
_WORDS = re.compile(r"(?m)^(\d+\t|\S+ +\d+ +\d+ +)?([^\s#]\S*)")
_CASES: dict[str, Callable[[str], str]] = {
    "": str,
    ", without capitals": str.lower,
    ", all capitals": str.upper,
}
_LEAF = re.compile(r"\(|\)|[^\s()]+(?:\s+[^\s()]+)?")
# Kinds of text in GUM with an open licence: CC BY (Wikinews) and CC BY-SA (Wikipedia, Wikivoyage).
# GUM's own development and test documents of these kinds.
HELD_BACK = {
    "news": ("homeopathic", "iodine", "nasa", "sensitive"),
    "interview": ("cyclone", "gaming", "hill", "libertarian"),
    "bio": ("byron", "dvorak", "emperor", "jespersen"),
    "voyage": ("athens", "coron", "oakland", "vavau"),
}
# A word, what begins its tag, and the kind of name.
_ROW = re.compile(r"(?m)^(\S+) .*?(?:([BI]-)(\S+)|O)$")
_ROW_OF_UNER = re.compile(r"(?m)^\S+\t(.*)\t(?:([BI]-)(\w+)|O)\t\S+\t\S+$")
# Labels of UNER and WNUT-17 and those of our model; None is no name.
_LABELS = {
    "PER": "PERSON",
    "person": "PERSON",
    "location": "LOC",
    "corporation": "ORG",
    "group": "ORG",
} | dict.fromkeys(("OTH", "creative-work", "product"))


def entities(source: Path, case: str = "") -> str:
    """
    Words and tags in two columns, with the labels of our model, of UNER, WNUT-17 or our own files.
    """
    return cased(_entities(source), case)


def _entities(source: Path) -> str:
    text = source.read_text("utf-8")
    if source.suffix != ".iob2":
        return _ROW.sub(_two_columns, text)
    sentences = _ROW_OF_UNER.sub(_two_columns, re.sub(r"(?m)^#.*\n", "", text)).split("\n\n")
    # Earlier sentences of this file are in data/open, some of them to train on.
    return "\n\n".join(sentences[1500:] if source.name == "en_ewt-ud-test.iob2" else sentences)


def _two_columns(row: re.Match) -> str:
    label = _LABELS.get(row[3], row[3])
    return f"{row[1].replace(' ', '')} {f'{row[2]}{label}' if label else 'O'}"


def cased(content: str, case: str) -> str:
    """The content of a file with words in a different case."""
    return _WORDS.sub(lambda found: (found[1] or "") + _CASES[case](found[2]), content)


def documents(gum: Path, kind: str, to_train: bool = False) -> str:
    """
    OntoGUM's coreference in columns of CoNLL-2012, with the sentences of its other file: of the
    documents that are held back, or of all others.
    """
    parts = []
    for file in sorted((gum / "coref/ontogum/conll").glob(f"GUM_{kind}_*.conll")):
        if (file.stem.split("_")[2] in HELD_BACK[kind]) == to_train:
            continue
        rows = [
            line.split("\t")
            for line in file.read_text("utf-8").splitlines()
            if line and line[0] != "#"
        ]
        sentences = (
            (gum / "coref/ontogum/conllu" / f"{file.stem}.conllu")
            .read_text("utf-8")
            .strip()
            .split("\n\n")
        )
        lengths = [len(re.findall(r"(?m)^\d+\t", sentence)) for sentence in sentences]
        lines, start = [], 0
        for length in lengths:
            for number, (_, word, column) in enumerate(rows[start : start + length]):
                # Between brackets, CoNLL-2012 has a "|".
                column = (
                    "-"
                    if column == "_"
                    else re.sub(r"(?<=\d)(?=\()|\)(?=[\d(])", lambda gap: gap[0] + "|", column)
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
                columns = [
                    file.stem,
                    "0",
                    str(number),
                    word,
                    row[4],
                    "*",
                    lemma,
                    sense,
                    "-",
                    "-",
                    "*",
                    *row[8:],
                    "-",
                ]
                parts.append(" ".join(columns))
            parts.append("")
        parts.append("#end document")
    # Five roles that the training data does not have: as a rare one that it has, they are errors.
    return re.sub(r"\((?:R-ARGM-PRP|R-ARGM-EXT|ARGM-DSP)\*", "(ARGA*", "\n".join(parts)) + "\n"


def _is_sound(cells: tuple[str, ...]) -> bool:
    """Whether the roles of a predicate do not overlap, and it has one verb."""
    brackets = re.findall(r"[()]", "".join(cells))
    return (
        brackets == ["(", ")"] * (len(brackets) // 2)
        and sum(cell.startswith("(V*") for cell in cells) == 1
    )


def _leaves(text: str) -> Iterator[list[str]]:
    """The words of each tree, without traces."""
    depth = 0
    words: list[str] = []
    for part in _LEAF.findall(text):
        if part in "()":
            depth += 1 if part == "(" else -1
            if depth == 0 and words:
                yield words
                words = []
        elif len(leaf := part.split()) == 2 and leaf[0] != "-NONE-":
            words.append(leaf[1].replace("-LRB-", "(").replace("-RRB-", ")"))


def questions(source: Path) -> str:
    """
    COVID-QA with the paragraph of the answer as the passage; paragraphs over 4,000 characters are
    left out.
    """
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
                        asked = {
                            "id": str(question["id"]),
                            "question": question["question"],
                            "answers": answers,
                        }
                        paragraphs.append({"context": passage, "qas": [asked]})
    return json.dumps({"data": [{"title": "", "paragraphs": paragraphs}]})


def in_case(value: Any, case: str) -> Any:
    """JSON with all texts in a different case; offsets still hold."""
    if isinstance(value, dict):
        return {key: in_case(each, case) for key, each in value.items()}
    if isinstance(value, list):
        return [in_case(each, case) for each in value]
    change = lambda letter: changed if len(changed := _CASES[case](letter)) == 1 else letter  # noqa: E731
    return "".join(map(change, value)) if isinstance(value, str) else value


def tagged(source: Path, case: str) -> str:
    return cased(source.read_text("utf-8"), case)


def roles(source: Path, case: str) -> str:
    """Every fourth document of a file of CoNLL-2012."""
    return cased("#begin".join(source.read_text("utf-8").split("#begin")[::4]), case)


def articles(source: Path, case: str, number: int) -> str:
    """The first articles of a file of SQuAD."""
    content = json.loads(source.read_text("utf-8"))
    return json.dumps({"data": in_case(content["data"][:number], case)})


def evaluated(suffix: str, metric: str, content: Callable[[], str], archive: Path) -> float:
    """A metric of `allennlp evaluate` for the content of a file."""
    from allennlp.commands.evaluate import evaluate_from_archive

    with tempfile.NamedTemporaryFile("w", suffix=suffix, encoding="utf-8") as file:
        file.write(content())
        file.flush()
        found: dict[str, Any] = evaluate_from_archive(str(archive), file.name)
    return 100 * found[metric]


def tags(content: Callable[[], str], archive: Path) -> tuple[float, float, float]:
    """The accuracy of universal tags, of Penn Treebank tags and of both for CoNLL-U."""
    from elmo_tasks.data import PosReader

    predictor: Any = TrainedTask(archive).predictor
    right, n_words = [0, 0, 0], 0
    with tempfile.NamedTemporaryFile("w", suffix=".conllu", encoding="utf-8") as file:
        file.write(content())
        file.flush()
        rows = [row for _, row in PosReader(tags="both").rows(file.name)]
    outputs = predictor.predict_batch_json([{"words": words} for words, _ in rows])
    for (_, golds), output in zip(rows, outputs, strict=True):
        for gold, tag in zip(golds or [], output["tags"], strict=True):
            pairs = zip([*gold.split("|", 1), gold], [*tag.split("|", 1), tag], strict=True)
            right = [
                count + (one == other) for count, (one, other) in zip(right, pairs, strict=True)
            ]
            n_words += 1
    universal, penn, both = (100 * count / n_words for count in right)
    return universal, penn, both


def reliability(source: Path, archive: Path) -> Iterator[tuple[str, float]]:
    """
    Of the names found, by their probability: a measure and which share is right, in per cent; last,
    the mean gap.
    """
    from elmo_tasks.text.tags import tags_to_spans

    predictor: Any = TrainedTask(archive).predictor
    sentences = source.read_text("utf-8").strip().split("\n\n")
    rows = [[line.split(" ") for line in sentence.split("\n")] for sentence in sentences]
    outputs = predictor.predict_batch_json([{"words": [word for word, _ in row]} for row in rows])
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(10)]
    for row, output in zip(rows, outputs, strict=True):
        golds = tags_to_spans([tag for _, tag in row])
        for span in output["spans"]:
            is_right = (span["label"], span["start"], span["end"]) in golds
            bins[min(int(10 * span["score"]), 9)].append((span["score"], is_right))
    gap = 0.0
    for number, found in enumerate(bins):
        if found:
            mean = 100 * sum(score for score, _ in found) / len(found)
            right = 100 * sum(is_right for _, is_right in found) / len(found)
            gap += len(found) * abs(mean - right)
            named = (
                f"{len(found)} with a probability of {number / 10:.1f} to {(number + 1) / 10:.1f}"
            )
            yield f"right, of {named} (mean {mean / 100:.2f}), in per cent", right
    yield (
        "mean difference of probability and share that is right, in points",
        gap / sum(map(len, bins)),
    )


def entailment(source: Path, archive: Path) -> float:
    """The accuracy of entailment or not."""
    header, *lines = source.read_text("utf-8").splitlines()
    rows = [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]
    task: Any = TrainedTask(archive)
    results = task([(row["sentence1"], row["sentence2"]) for row in rows])
    guesses = [max(result, key=result.__getitem__) == "entailment" for result in results]
    golds = [row["gold_label"] == "entailment" for row in rows]
    return 100 * sum(one == other for one, other in zip(guesses, golds, strict=True)) / len(rows)


def sentiment(labelled: Callable[[], list[tuple[str, bool]]], archive: Path) -> float:
    """
    The accuracy of positive or negative: whether 4 and 5 stars together are likelier than 1 and 2.
    """
    pairs = labelled()
    results = TrainedTask(archive)([text for text, _ in pairs])
    of = [result["probabilities"] for result in results]
    guesses = [each[4] + each[5] > each[1] + each[2] for each in of]
    return (
        100
        * sum(guess == gold for guess, (_, gold) in zip(guesses, pairs, strict=True))
        / len(pairs)
    )


def reviews(source: Path) -> list[tuple[str, bool]]:
    lines = [
        line.rsplit("\t", 1) for line in source.read_text("utf-8").splitlines() if "\t" in line
    ]
    return [(text, label == "1") for text, label in lines]


def films(source: Path) -> list[tuple[str, bool]]:
    """The sentences of SST that are not neutral."""
    trees = [line for line in source.read_text("utf-8").splitlines() if line[1] != "2"]
    return [(" ".join(re.findall(r" ([^\s()]+)\)", tree)), int(tree[1]) > 2) for tree in trees]


def captions(source: Path, case: str, archive: Path) -> float:
    """The accuracy of entailment or not on SNLI, to compare with `entailment`."""
    rows = [
        row
        for row in map(json.loads, source.read_text("utf-8").splitlines())
        if row["gold_label"] != "-"
    ][:3000]
    pairs = [(_CASES[case](row["sentence1"]), _CASES[case](row["sentence2"])) for row in rows]
    task: Any = TrainedTask(archive)
    guesses = [max(result, key=result.__getitem__) == "entailment" for result in task(pairs)]
    right = (
        guess == (row["gold_label"] == "entailment")
        for guess, row in zip(guesses, rows, strict=True)
    )
    return 100 * sum(right) / len(rows)


# Task, text, measure, what it needs, and how an archive is scored.
Test = tuple[str, str, str, Path, Callable[[Path], Any]]


def tests_of_names(folder: Path, data: Path) -> Iterator[Test]:
    of_uner = {
        "web text (UNER EWT)": "English-EWT/en_ewt",
        "news and Wikipedia (UNER PUD)": "English-PUD/en_pud",
    }
    of_uner["German news and Wikipedia (UNER PUD)"] = "German-PUD/de_pud"
    files = {text: folder / f"UNER_{name}-ud-test.iob2" for text, name in of_uner.items()}
    files["web text of data/open (UNER EWT)"] = data / "ner_general/ewt.txt"
    files["Wikipedia (WikiGold)"] = data / "ner_general/wikigold.txt"
    files["tweets (WNUT-17)"] = data / "ner/test.txt"
    files["tweets (BTC)"] = data / "ner_general/tweets.txt"
    f1 = partial(evaluated, ".txt", "f1-measure-overall")
    for text, file in files.items():
        for case in _CASES if text in ("web text (UNER EWT)", "Wikipedia (WikiGold)") else [""]:
            yield "ner", text + case, "F1", file, partial(f1, partial(entities, file, case))
    dev = data / "ner_general/dev.txt"
    yield "ner", "", "", dev, partial(reliability, dev)


def tests_of_structure(folder: Path, data: Path) -> Iterator[Test]:
    """The tests of parts of speech, roles and coreference."""
    for name, text in (
        ("EWT", "web text"),
        ("PUD", "news and Wikipedia"),
        ("GUM", "16 kinds of text"),
    ):
        elsewhere = folder / f"UD_English-{name}/en_{name.lower()}-ud-test.conllu"
        file = data / "pos/test.conllu" if name == "EWT" else elsewhere
        for case in _CASES if name == "EWT" else [""]:
            yield (
                "pos",
                f"{text} (UD {name}){case}",
                "accuracy",
                file,
                partial(tags, partial(tagged, file, case)),
            )
    propbank, gum, ewt = (
        folder / "propbank-release",
        folder / "gum",
        data / "srl/test/ewt.gold_conll",
    )
    f1 = partial(evaluated, ".gold_conll", "f1")
    for kind in ("written", "spoken"):
        masc = partial(propositions, propbank, folder / "masc", kind)
        yield "srl", f"{kind} text of MASC (PropBank)", "F1", folder / "masc", partial(f1, masc)
    for case in _CASES:
        yield (
            "srl",
            f"a quarter of the web text (EWT){case}",
            "F1",
            ewt,
            partial(f1, partial(roles, ewt, case)),
        )
    f1 = partial(evaluated, ".conll", "coref_f1")
    for kind in HELD_BACK:
        yield (
            "coref",
            f"{kind}, four documents (OntoGUM)",
            "mean F1",
            gum,
            partial(f1, partial(documents, gum, kind)),
        )


def tests_of_texts(folder: Path, data: Path) -> Iterator[Test]:
    """The tests of questions, entailment and sentiment."""
    covid = folder / "COVID-QA/data/question-answering/200423_covidQA.json"
    wikipedia, german = data / "squad/dev.json", folder / "xquad/xquad.de.json"
    f1 = partial(evaluated, ".json", "f1")
    yield (
        "squad",
        "papers about COVID-19 (COVID-QA)",
        "F1",
        covid,
        partial(f1, partial(questions, covid)),
    )
    for case in _CASES:
        asked = partial(articles, wikipedia, case, 3)
        yield (
            "squad",
            f"three articles of Wikipedia (SQuAD){case}",
            "F1",
            wikipedia,
            partial(f1, asked),
        )
    asked = partial(articles, german, "", 12)
    yield (
        "squad",
        "twelve articles of Wikipedia in German (XQuAD)",
        "F1",
        german,
        partial(f1, asked),
    )
    snli, med = data / "snli/test.jsonl", folder / "MED/MED.tsv"
    for case in _CASES:
        yield (
            "snli",
            f"captions (SNLI), entailment or not{case}",
            "accuracy",
            snli,
            partial(captions, snli, case),
        )
    text = "monotone changes of sentences (MED), entailment or not"
    yield "snli", text, "accuracy", med, partial(entailment, med)
    sst, amazon = data / "sst/test.txt", folder / "amazon_cells_labelled.txt"
    text = "film reviews (SST), positive or negative"
    yield "sst", text, "accuracy", sst, partial(sentiment, partial(films, sst))
    text = "product reviews (Amazon), positive or negative"
    yield "sst", text, "accuracy", amazon, partial(sentiment, partial(reviews, amazon))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("tasks", nargs="*")
    parser.add_argument(
        "--models", type=Path, default=MODELS, help="a folder with archives named like the tasks"
    )
    parser.add_argument("--seed", default="", help="the seed of these archives, for the rows")
    arguments = parser.parse_args()
    tests = chain.from_iterable(
        each(arguments.folder, arguments.data)
        for each in (tests_of_names, tests_of_structure, tests_of_texts)
    )
    for task, text, measure, needed, score in tests:
        if not needed.exists() or task not in (arguments.tasks or [task]):
            continue
        values = score(arguments.models / task)
        rows = values if measure == "" else [(f"{measure}, {text}", values)]
        if task == "pos":
            rows = [
                (f"{kind} {measure}, {text}", value)
                for kind, value in zip(("universal", "Penn"), values[:2], strict=True)
            ]
        for name, value in rows:
            study = "other text" if measure else "reliability"
            print(f'{study},{task},models/{task},{arguments.seed},"{name}",{value:.2f}', flush=True)


if __name__ == "__main__":
    main()
