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
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

from elmo_tasks import TrainedTask
from elmo_tasks.files.shipped import MODELS

# The words of a file: the first column of names, the second of CoNLL-U, the fourth of CoNLL-2012.
_WORDS = re.compile(r"(?m)^(\d+\t|\S+ +\d+ +\d+ +)?([^\s#]\S*)")
_CASES: dict[str, Callable[[str], str]] = {
    "": str,
    ", without capitals": str.lower,
    ", all capitals": str.upper,
}
# A bracket of a tree, or a tag and its word.
_TREE_TOKEN = re.compile(r"\(|\)|[^\s()]+(?:\s+[^\s()]+)?")
# GUM's development and test documents of the kinds of text with an open licence: CC BY (Wikinews)
# and CC BY-SA (Wikipedia, Wikivoyage).
HELD_BACK = {
    "news": ("homeopathic", "iodine", "nasa", "sensitive"),
    "interview": ("cyclone", "gaming", "hill", "libertarian"),
    "bio": ("byron", "dvorak", "emperor", "jespersen"),
    "voyage": ("athens", "coron", "oakland", "vavau"),
}
# A word, what begins its tag, and its label.
_ROW = re.compile(r"(?m)^(\S+) .*?(?:([BI]-)(\S+)|O)$")
_UNER_ROW = re.compile(r"(?m)^\S+\t(.*)\t(?:([BI]-)(\w+)|O)\t\S+\t\S+$")
# Labels of UNER and WNUT-17 and those of our model; None is no name.
_LABELS = {
    "PER": "PERSON",
    "person": "PERSON",
    "location": "LOC",
    "corporation": "ORG",
    "group": "ORG",
    "OTH": None,
    "creative-work": None,
    "product": None,
}


def entities(source: Path, case: str = "") -> str:
    """
    Words and tags in two columns, with the labels of our model. The source is a file of UNER, of
    WNUT-17, or one of ours.
    """
    return cased(_entities(source), case)


def _entities(source: Path) -> str:
    text = source.read_text("utf-8")
    if source.suffix != ".iob2":
        return _ROW.sub(_two_columns, text)
    without_comments = re.sub(r"(?m)^#.*\n", "", text)
    sentences = _UNER_ROW.sub(_two_columns, without_comments).split("\n\n")
    if source.name == "en_ewt-ud-test.iob2":
        # Earlier sentences of this file are in data/open, some of them to train on.
        sentences = sentences[1500:]
    return "\n\n".join(sentences)


def _two_columns(row: re.Match) -> str:
    word = row[1].replace(" ", "")
    label = _LABELS.get(row[3], row[3])
    tag = f"{row[2]}{label}" if label else "O"
    return f"{word} {tag}"


def cased(content: str, case: str) -> str:
    """The content of a file with words in a different case."""

    def change(match: re.Match) -> str:
        columns_before = match[1] or ""
        return columns_before + _CASES[case](match[2])

    return _WORDS.sub(change, content)


def documents(gum: Path, kind: str, to_train: bool = False) -> str:
    """
    OntoGUM's coreference in columns of CoNLL-2012, with the sentences of the CoNLL-U file of the
    same name. The documents are those that are held back, or with `to_train` all others.
    """
    lines = []
    for file in sorted((gum / "coref/ontogum/conll").glob(f"GUM_{kind}_*.conll")):
        is_held_back = file.stem.split("_")[2] in HELD_BACK[kind]
        if is_held_back == to_train:
            continue
        lines.append(f"#begin document ({file.stem}); part 000")
        lines += _coref_lines(file, gum / "coref/ontogum/conllu" / f"{file.stem}.conllu")
        lines.append("#end document")
    return "\n".join(lines) + "\n"


def _coref_lines(file: Path, conllu: Path) -> Iterator[str]:
    rows = []
    for line in file.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            rows.append(line.split("\t"))
    start = 0
    for sentence in conllu.read_text("utf-8").strip().split("\n\n"):
        n_words = len(re.findall(r"(?m)^\d+\t", sentence))
        for number, (_, word, column) in enumerate(rows[start : start + n_words]):
            yield f"{file.stem} 0 {number} {word} XX * - - - - * {_chains(column)}"
        yield ""
        start += n_words


def _chains(column: str) -> str:
    """A column of OntoGUM as in CoNLL-2012, which has a "|" between brackets."""
    if column == "_":
        return "-"
    return re.sub(r"(?<=\d)(?=\()|\)(?=[\d(])", lambda gap: gap[0] + "|", column)


def propositions(propbank: Path, trees: Path, kind: str) -> str:
    """PropBank's roles of MASC in columns of CoNLL-2012, with the words of the bracketed files."""
    lines = []
    for file in sorted((propbank / f"data/oanc/masc/{kind}").rglob("*.gold_skel")):
        pattern = f"{file.stem.replace('-ms98', '*-ms98')}.mrg*"
        tree_files = sorted(trees.glob(pattern))
        if not tree_files:
            continue
        lines.append(f"#begin document ({file.stem}); part 000")
        lines += _proposition_lines(file, tree_files[0])
        lines.append("#end document")
    # Five roles have labels that the training data lacks, so the model has no number for them. With
    # a rare label that it has, they count as errors.
    return re.sub(r"\((?:R-ARGM-PRP|R-ARGM-EXT|ARGM-DSP)\*", "(ARGA*", "\n".join(lines)) + "\n"


def _proposition_lines(file: Path, tree_file: Path) -> Iterator[str]:
    sentences = _tree_words(tree_file.read_text("utf-8"))
    for block in file.read_text("utf-8").strip().split("\n\n"):
        rows = [line.split() for line in block.splitlines() if line.strip()]
        # Not every tree has a block.
        words = next(words for words in sentences if len(words) == len(rows))
        roles_by_predicate = zip(*(row[8:] for row in rows), strict=True)
        if not all(_is_sound(cells) for cells in roles_by_predicate):
            continue
        for number, (row, word) in enumerate(zip(rows, words, strict=True)):
            yield _proposition_line(file.stem, number, word, row)
        yield ""


def _proposition_line(document: str, number: int, word: str, row: list[str]) -> str:
    lemma = sense = "-"
    if row[6] != "-":
        lemma = row[6]
        sense = row[7].partition(".")[2]
    before_roles = f"{document} 0 {number} {word} {row[4]} * {lemma} {sense} - - *"
    return " ".join([before_roles, *row[8:], "-"])


def _is_sound(cells: tuple[str, ...]) -> bool:
    """Whether the roles of a predicate do not overlap, and it has one verb."""
    brackets = "".join(re.findall(r"[()]", "".join(cells)))
    n_verbs = sum(cell.startswith("(V*") for cell in cells)
    return n_verbs == 1 and not brackets.replace("()", "")


def _tree_words(text: str) -> Iterator[list[str]]:
    """The words of each tree, without traces."""
    depth = 0
    words: list[str] = []
    for token in _TREE_TOKEN.findall(text):
        if token == "(":
            depth += 1
        elif token == ")":
            depth -= 1
            if depth == 0 and words:
                yield words
                words = []
        else:
            tag, *leaves = token.split()
            if leaves and tag != "-NONE-":
                words.append(leaves[0].replace("-LRB-", "(").replace("-RRB-", ")"))


def questions(source: Path) -> str:
    """
    COVID-QA with the paragraph of the answer as the passage; paragraphs over 4,000 characters are
    left out.
    """
    paragraphs: list[dict[str, Any]] = []
    for article in json.loads(source.read_text("utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                paragraphs += _answered_passages(paragraph["context"], question)
    return json.dumps({"data": [{"title": "", "paragraphs": paragraphs}]})


def _answered_passages(context: str, question: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The passage of the first answer, if there is one."""
    for answer in question["answers"][:1]:
        start = answer["answer_start"]
        paragraph_before = context[:start].rpartition("\n\n")[2]
        passage = (paragraph_before + context[start:]).partition("\n\n")[0].strip()
        text = answer["text"].strip()
        answer_start = passage.find(text)
        if answer_start == -1 or len(passage) > 4000:
            continue
        asked = {
            "id": str(question["id"]),
            "question": question["question"],
            "answers": [{"text": text, "answer_start": answer_start}],
        }
        yield {"context": passage, "qas": [asked]}


def in_case(value: Any, case: str) -> Any:
    """JSON with all texts in a different case; offsets still hold."""
    if isinstance(value, dict):
        return {key: in_case(child, case) for key, child in value.items()}
    if isinstance(value, list):
        return [in_case(child, case) for child in value]
    if isinstance(value, str):
        return "".join(_letter_in_case(letter, case) for letter in value)
    return value


def _letter_in_case(letter: str, case: str) -> str:
    changed = _CASES[case](letter)
    return changed if len(changed) == 1 else letter


def tagged(source: Path, case: str) -> str:
    return cased(source.read_text("utf-8"), case)


def roles(source: Path, case: str) -> str:
    """Every fourth document of a file of CoNLL-2012."""
    chosen = source.read_text("utf-8").split("#begin")[::4]
    return cased("#begin".join(chosen), case)


def articles(source: Path, case: str, number: int) -> str:
    """The first articles of a file of SQuAD."""
    content = json.loads(source.read_text("utf-8"))
    return json.dumps({"data": in_case(content["data"][:number], case)})


@contextmanager
def temporary_file(content: str, suffix: str) -> Iterator[str]:
    """The name of a temporary file with this content."""
    with tempfile.NamedTemporaryFile("w", suffix=suffix, encoding="utf-8") as file:
        file.write(content)
        file.flush()
        yield file.name


# Scores in per cent, by the names of their measures.
Scores = dict[str, float]


def evaluated(
    archive: Path, *, content: Callable[[], str], suffix: str, metric: str, measure: str = "F1"
) -> Scores:
    """A metric of `allennlp evaluate` for the content of a file."""
    from allennlp.commands.evaluate import evaluate_from_archive

    with temporary_file(content(), suffix) as file:
        metrics: dict[str, Any] = evaluate_from_archive(str(archive), file)
    return {measure: 100 * metrics[metric]}


class TagAccuracies(TypedDict):
    universal: float
    penn: float
    both: float


def tag_accuracies(content: str, archive: Path) -> TagAccuracies:
    """The accuracy of universal tags, of Penn Treebank tags and of both for CoNLL-U."""
    from elmo_tasks.data import PosReader

    predictor: Any = TrainedTask(archive).predictor
    with temporary_file(content, ".conllu") as file:
        rows = [row for _, row in PosReader(tags="both").rows(file)]
    outputs = predictor.predict_batch_json([{"words": words} for words, _ in rows])
    n_words = n_universal = n_penn = n_both = 0
    for (_, golds), output in zip(rows, outputs, strict=True):
        for gold, tag in zip(golds or [], output["tags"], strict=True):
            gold_universal, gold_penn = gold.split("|", 1)
            universal, penn = tag.split("|", 1)
            n_words += 1
            n_universal += universal == gold_universal
            n_penn += penn == gold_penn
            n_both += tag == gold
    return {
        "universal": 100 * n_universal / n_words,
        "penn": 100 * n_penn / n_words,
        "both": 100 * n_both / n_words,
    }


def parts_of_speech(archive: Path, *, source: Path, case: str) -> Scores:
    accuracies = tag_accuracies(tagged(source, case), archive)
    return {
        "universal accuracy": accuracies["universal"],
        "Penn accuracy": accuracies["penn"],
    }


def reliability(archive: Path, *, source: Path) -> Scores:
    """
    For each tenth of the probability, the share of the found names that is right; and last, the
    mean difference between probability and share.
    """
    from elmo_tasks.text.tags import tags_to_spans

    predictor: Any = TrainedTask(archive).predictor
    sentences = source.read_text("utf-8").strip().split("\n\n")
    rows = [[line.split(" ") for line in sentence.split("\n")] for sentence in sentences]
    outputs = predictor.predict_batch_json([{"words": [word for word, _ in row]} for row in rows])
    # For each tenth of the probability, the probabilities of its names, and which are right.
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(10)]
    for row, output in zip(rows, outputs, strict=True):
        golds = tags_to_spans([tag for _, tag in row])
        for span in output["spans"]:
            is_right = (span["label"], span["start"], span["end"]) in golds
            number = min(int(10 * span["score"]), 9)
            bins[number].append((span["score"], is_right))
    scores = {}
    sum_of_differences = 0.0
    for number, names in enumerate(bins):
        if not names:
            continue
        n_names = len(names)
        mean = 100 * sum(score for score, _ in names) / n_names
        right = 100 * sum(is_right for _, is_right in names) / n_names
        sum_of_differences += n_names * abs(mean - right)
        limits = f"{number / 10:.1f} to {(number + 1) / 10:.1f}"
        named = f"{n_names} with a probability of {limits} (mean {mean / 100:.2f})"
        scores[f"right, of {named}, in per cent"] = right
    name_of_difference = "mean difference of probability and share that is right, in points"
    scores[name_of_difference] = sum_of_differences / sum(len(names) for names in bins)
    return scores


def accuracy_of(guesses: list[bool], golds: list[bool]) -> float:
    """The share of guesses that are right, in per cent."""
    n_right = sum(guess == gold for guess, gold in zip(guesses, golds, strict=True))
    return 100 * n_right / len(golds)


def entailment(archive: Path, *, pairs: Callable[[], list[tuple[str, str, bool]]]) -> Scores:
    """The accuracy of entailment or not, of premises and hypotheses."""
    rows = pairs()
    task: Any = TrainedTask(archive)
    results = task([(premise, hypothesis) for premise, hypothesis, _ in rows])
    guesses = [max(result, key=result.__getitem__) == "entailment" for result in results]
    golds = [is_entailed for _, _, is_entailed in rows]
    return {"accuracy": accuracy_of(guesses, golds)}


def monotone_changes(source: Path) -> list[tuple[str, str, bool]]:
    """The pairs of MED."""
    header, *lines = source.read_text("utf-8").splitlines()
    columns = header.split("\t")
    pairs = []
    for line in lines:
        row = dict(zip(columns, line.split("\t"), strict=True))
        pairs.append((row["sentence1"], row["sentence2"], row["gold_label"] == "entailment"))
    return pairs


def captions(source: Path, case: str) -> list[tuple[str, str, bool]]:
    """The first 3,000 pairs of SNLI, to compare with `monotone_changes`."""
    change = _CASES[case]
    pairs: list[tuple[str, str, bool]] = []
    for line in source.read_text("utf-8").splitlines():
        if len(pairs) == 3000:
            break
        row = json.loads(line)
        if row["gold_label"] == "-":
            continue
        is_entailed = row["gold_label"] == "entailment"
        pairs.append((change(row["sentence1"]), change(row["sentence2"]), is_entailed))
    return pairs


def sentiment(archive: Path, *, labelled: Callable[[], list[tuple[str, bool]]]) -> Scores:
    """
    The accuracy of positive or negative: whether 4 and 5 stars together are likelier than 1 and 2.
    """
    texts = labelled()
    guesses = []
    for result in TrainedTask(archive)([text for text, _ in texts]):
        stars = result["probabilities"]
        guesses.append(stars[4] + stars[5] > stars[1] + stars[2])
    golds = [is_positive for _, is_positive in texts]
    return {"accuracy": accuracy_of(guesses, golds)}


def reviews(source: Path) -> list[tuple[str, bool]]:
    labelled = []
    for line in source.read_text("utf-8").splitlines():
        if "\t" in line:
            text, label = line.rsplit("\t", 1)
            labelled.append((text, label == "1"))
    return labelled


def films(source: Path) -> list[tuple[str, bool]]:
    """The sentences of SST that are not neutral."""
    labelled = []
    for tree in source.read_text("utf-8").splitlines():
        label = int(tree[1])
        if label != 2:
            words = re.findall(r" ([^\s()]+)\)", tree)
            labelled.append((" ".join(words), label > 2))
    return labelled


@dataclass(frozen=True)
class Evaluation:
    """A text that the archive of a task is scored on, if its file or folder exists."""

    task: str
    text: str
    source: Path
    score: Callable[[Path], Scores]
    study: str = "other text"

    def rows(self, archive: Path) -> Iterator[tuple[str, float]]:
        """The names and values of the rows."""
        for measure, value in self.score(archive).items():
            name = f"{measure}, {self.text}" if self.text else measure
            yield name, value


def name_evaluations(folder: Path, data: Path) -> Iterator[Evaluation]:
    files = {
        "web text (UNER EWT)": folder / "UNER_English-EWT/en_ewt-ud-test.iob2",
        "news and Wikipedia (UNER PUD)": folder / "UNER_English-PUD/en_pud-ud-test.iob2",
        "German news and Wikipedia (UNER PUD)": folder / "UNER_German-PUD/de_pud-ud-test.iob2",
        "web text of data/open (UNER EWT)": data / "ner_general/ewt.txt",
        "Wikipedia (WikiGold)": data / "ner_general/wikigold.txt",
        "tweets (WNUT-17)": data / "ner/test.txt",
        "tweets (BTC)": data / "ner_general/tweets.txt",
    }
    in_all_cases = ("web text (UNER EWT)", "Wikipedia (WikiGold)")
    f1 = partial(evaluated, suffix=".txt", metric="f1-measure-overall")
    for text, file in files.items():
        for case in _CASES:
            if case and text not in in_all_cases:
                continue
            score = partial(f1, content=partial(entities, file, case))
            yield Evaluation("ner", text + case, file, score)
    dev = data / "ner_general/dev.txt"
    yield Evaluation("ner", "", dev, partial(reliability, source=dev), study="reliability")


def tag_evaluations(folder: Path, data: Path) -> Iterator[Evaluation]:
    ewt = data / "pos/test.conllu"
    for case in _CASES:
        score = partial(parts_of_speech, source=ewt, case=case)
        yield Evaluation("pos", f"web text (UD EWT){case}", ewt, score)
    for name, text in (("PUD", "news and Wikipedia"), ("GUM", "16 kinds of text")):
        file = folder / f"UD_English-{name}/en_{name.lower()}-ud-test.conllu"
        score = partial(parts_of_speech, source=file, case="")
        yield Evaluation("pos", f"{text} (UD {name})", file, score)


def role_evaluations(folder: Path, data: Path) -> Iterator[Evaluation]:
    f1 = partial(evaluated, suffix=".gold_conll", metric="f1")
    masc = folder / "masc"
    for kind in ("written", "spoken"):
        score = partial(f1, content=partial(propositions, folder / "propbank-release", masc, kind))
        yield Evaluation("srl", f"{kind} text of MASC (PropBank)", masc, score)
    ewt = data / "srl/test/ewt.gold_conll"
    for case in _CASES:
        score = partial(f1, content=partial(roles, ewt, case))
        yield Evaluation("srl", f"a quarter of the web text (EWT){case}", ewt, score)


def coref_evaluations(folder: Path, data: Path) -> Iterator[Evaluation]:
    gum = folder / "gum"
    f1 = partial(evaluated, suffix=".conll", metric="coref_f1", measure="mean F1")
    for kind in HELD_BACK:
        score = partial(f1, content=partial(documents, gum, kind))
        yield Evaluation("coref", f"{kind}, four documents (OntoGUM)", gum, score)


def question_evaluations(folder: Path, data: Path) -> Iterator[Evaluation]:
    f1 = partial(evaluated, suffix=".json", metric="f1")
    covid = folder / "COVID-QA/data/question-answering/200423_covidQA.json"
    score = partial(f1, content=partial(questions, covid))
    yield Evaluation("squad", "papers about COVID-19 (COVID-QA)", covid, score)
    wikipedia = data / "squad/dev.json"
    for case in _CASES:
        score = partial(f1, content=partial(articles, wikipedia, case, 3))
        text = f"three articles of Wikipedia (SQuAD){case}"
        yield Evaluation("squad", text, wikipedia, score)
    german = folder / "xquad/xquad.de.json"
    score = partial(f1, content=partial(articles, german, "", 12))
    yield Evaluation("squad", "twelve articles of Wikipedia in German (XQuAD)", german, score)


def sentence_evaluations(folder: Path, data: Path) -> Iterator[Evaluation]:
    """The evaluations of the two tasks with sentences: entailment and sentiment."""
    snli = data / "snli/test.jsonl"
    for case in _CASES:
        score = partial(entailment, pairs=partial(captions, snli, case))
        yield Evaluation("snli", f"captions (SNLI), entailment or not{case}", snli, score)
    med = folder / "MED/MED.tsv"
    text = "monotone changes of sentences (MED), entailment or not"
    score = partial(entailment, pairs=partial(monotone_changes, med))
    yield Evaluation("snli", text, med, score)
    sst = data / "sst/test.txt"
    score = partial(sentiment, labelled=partial(films, sst))
    yield Evaluation("sst", "film reviews (SST), positive or negative", sst, score)
    amazon = folder / "amazon_cells_labelled.txt"
    score = partial(sentiment, labelled=partial(reviews, amazon))
    yield Evaluation("sst", "product reviews (Amazon), positive or negative", amazon, score)


def evaluations(folder: Path, data: Path) -> Iterator[Evaluation]:
    yield from name_evaluations(folder, data)
    yield from tag_evaluations(folder, data)
    yield from role_evaluations(folder, data)
    yield from coref_evaluations(folder, data)
    yield from question_evaluations(folder, data)
    yield from sentence_evaluations(folder, data)


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
    for evaluation in evaluations(arguments.folder, arguments.data):
        task = evaluation.task
        if arguments.tasks and task not in arguments.tasks:
            continue
        if not evaluation.source.exists():
            continue
        row_begin = f"{evaluation.study},{task},models/{task},{arguments.seed}"
        for name, value in evaluation.rows(arguments.models / task):
            print(f'{row_begin},"{name}",{value:.2f}', flush=True)


if __name__ == "__main__":
    main()
