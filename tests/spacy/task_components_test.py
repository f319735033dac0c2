import copy
import gc
import multiprocessing
import os
import shutil
import subprocess
import sys
import warnings
from html import escape
from pathlib import Path

import pytest
import spacy
import torch
from spacy import displacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example

from elmo_tasks import TrainedTask
from elmo_tasks.bilm import Bilm
from elmo_tasks.files.archives import unpack
from elmo_tasks.files.shipped import MODELS
from elmo_tasks.predictors.results import Names
from elmo_tasks.spacy.documents import set_result
from elmo_tasks.spacy.task_components import Predicate
from elmo_tasks.text import Word
from tests.paths import CHECKOUT, TINY_BILM
from tests.results import approximately
from tests.vectors.helpers import recorded

TASKS = ("ner", "srl", "coref", "sst", "pos")
# White space, two sentences, and a text without a word.
TEXTS = [
    "Ann met Bob in Rome.  He\nwas tired, and she carried his bag.",
    "",
    " \n ",
    "The old man sings: he beat Chelsea.",
]


@pytest.fixture(scope="module")
def archives(archive) -> dict[str, Path]:
    archives = {task: archive(task, "none", 3) for task in ("ner", "srl", "coref", "sst")}
    archives["pos"] = archive("pos_tagger", "none", 3)
    return archives


@pytest.fixture(scope="module")
def nlp(archives) -> spacy.Language:
    return pipeline(archives)


def pipeline(archives, tasks=TASKS, **config) -> spacy.Language:
    nlp = spacy.blank("en")
    for task in tasks:
        nlp.add_pipe(f"elmo_{task}", config={"model": str(archives[task]), **config})
    return nlp


def annotations(doc: Doc) -> dict:
    """All that the components set."""
    chains = []
    for name, group in doc.spans.items():
        if name.startswith("coref_clusters_"):
            chains.append(offsets(group))
    return {
        "ents": entities(doc),
        "predicates": [
            (predicate.verb.text, offsets(predicate.roles)) for predicate in doc._.predicates
        ],
        "chains": chains,
        "resolved": doc._.resolved,
        "cats": dict(doc.cats),
        "tags": [(token.tag_, token.pos_) for token in doc],
    }


def entities(doc: Doc) -> list[tuple]:
    probabilities = [span._.probability for span in doc.ents]
    return list(zip(offsets(doc.ents), probabilities, strict=True))


def offsets(spans) -> list[tuple[int, int, str]]:
    return [(span.start_char, span.end_char, span.label_) for span in spans]


def offsets_in(result) -> list[tuple[int, int, str]]:
    """The same of plain results."""
    return [(span["start"], span["end"], span["label"]) for span in result]


def entities_in(names) -> list[tuple]:
    probabilities = [name["probability"] for name in names]
    return list(zip(offsets_in(names), probabilities, strict=True))


def groups(doc: Doc) -> list[list[tuple]]:
    """The spans of each predicate, with its verb, and of each chain."""
    groups = []
    for predicate in doc._.predicates:
        groups.append(offsets([predicate.verb, *predicate.roles]))
    for chain in doc._.chains:
        groups.append(offsets(chain))
    return groups


def plain(task: TrainedTask, doc: Doc):
    """What a task says about the words and the sentences of a document."""
    sentences = []
    for sentence in doc.sents:
        words = []
        for token in sentence:
            if not token.is_space:
                words.append(Word(token.text, token.idx, token.idx + len(token)))
        if words:
            sentences.append(words)
    return next(task.results([task.read_words(doc.text, sentences)]))


class TestAnnotations:
    def test_they_are_the_results_of_the_task(self, archives, nlp):
        nlp = pipeline(archives)
        nlp.add_pipe("sentencizer", first=True)
        for text in TEXTS:
            doc = nlp(text)
            results = {task: plain(TrainedTask(archives[task]), doc) for task in TASKS}
            assert entities(doc) == approximately(entities_in(results["ner"]))
            for predicate, expected in zip(doc._.predicates, results["srl"], strict=True):
                assert predicate.verb.text == expected["verb"]
                assert offsets(predicate.roles) == offsets_in(expected["roles"])
            for chain, mentions in zip(doc._.chains, results["coref"]["chains"], strict=True):
                starts = [mention.start_char for mention in chain]
                ends = [mention.end_char for mention in chain]
                assert starts == [mention["start"] for mention in mentions]
                assert ends == [mention["end"] for mention in mentions]
            assert doc._.resolved == results["coref"]["resolved"]
            probabilities = {}
            for stars, probability in results["sst"]["probabilities"].items():
                probabilities[str(stars)] = pytest.approx(probability, abs=1e-3)
            assert doc.cats == probabilities
            tags = [token.tag_ for token in doc if not token.is_space]
            assert tags == [word["label"] for word in results["pos"]]
            assert {token.tag_ for token in doc if token.is_space} <= {"_SP"}

    def test_all_of_them_say_something(self, nlp):
        doc = nlp(TEXTS[0])
        assert doc.ents and doc._.predicates and doc.spans["coref_clusters_1"] and doc.cats
        for predicate in doc._.predicates:
            assert isinstance(predicate, Predicate) and predicate.verb.label_ == "V"
        assert not doc.has_annotation("SENT_START")

    def test_a_part_of_a_document_has_its_own(self, archives):
        nlp = pipeline(archives, ["srl", "coref"])
        nlp.add_pipe("sentencizer", first=True)
        doc = nlp(TEXTS[0])
        assert len(doc._.predicates) > 1 and doc._.chains
        for span in (*doc.sents, doc[:], doc[2:5], doc[0:0]):
            predicates = []
            for predicate in doc._.predicates:
                if span.start <= predicate.verb.start < span.end:
                    predicates.append(predicate)
            assert span._.predicates == predicates
            chains = [chain for chain in doc._.chains if mentions_inside(chain, span)]
            assert span._.chains == chains
        first, second = doc.sents
        assert first._.predicates and second._.predicates
        assert first._.predicates + second._.predicates == doc._.predicates

    def test_a_part_that_becomes_a_document_keeps_what_is_in_it(self, archives):
        nlp = pipeline(archives, ["srl", "coref"])
        nlp.add_pipe("sentencizer", first=True)
        doc = nlp(TEXTS[0])
        for sentence in doc.sents:
            copied = sentence.as_doc(copy_user_data=True)
            assert str(copied._.predicates) == str(sentence._.predicates) != "[]"
            chains = []
            for chain in doc._.chains:
                if mentions_inside(chain[:1], sentence):
                    chains.append(mentions_inside(chain, sentence))
            assert str(copied._.chains) == str(chains)

    def test_sentences_of_the_document_are_used(self, archives):
        nlp = pipeline(archives, ["ner"])
        words = ["Ann", "met", "Bob", "in", "Rome", ".", "He", "was", "tired", "."]
        one_sentence = Doc(nlp.vocab, words=words, sent_starts=[True] + [False] * 9)
        by_rule = Doc(nlp.vocab, words=words)
        starts = [number in (0, 6) for number in range(10)]
        two_sentences = Doc(nlp.vocab, words=words, sent_starts=starts)
        task = TrainedTask(archives["ner"])
        for doc in (one_sentence, two_sentences):
            expected = entities_in(plain(task, doc))
            assert entities(nlp(doc)) == approximately(expected)
        assert entities(nlp(by_rule)) == approximately(entities(two_sentences))
        assert offsets(by_rule.ents) != offsets(one_sentence.ents)

    def test_merged_tokens_are_words(self, archives):
        nlp = pipeline(archives)
        doc = nlp.make_doc("The New York office is closed.")
        with doc.retokenize() as retokenizer:
            retokenizer.merge(doc[1:3])
        doc = nlp(doc)
        assert doc[1].text == "New York" and doc[1].tag_
        verbs = [predicate.verb.text for predicate in doc._.predicates]
        with doc.retokenize() as retokenizer:
            retokenizer.merge(doc[0:2])
        assert [predicate.verb.text for predicate in doc._.predicates] == verbs == ["is", "closed"]

    @pytest.mark.parametrize("is_read", [False, True])
    def test_tokens_may_be_merged_and_split_later(self, nlp, is_read):
        doc = nlp(TEXTS[0])
        if is_read:
            doc = Doc(nlp.vocab).from_bytes(doc.to_bytes())
        before = groups(doc)
        with doc.retokenize() as retokenizer:
            retokenizer.merge(doc[0:3])
            retokenizer.merge(doc[9:11])
            retokenizer.split(doc[14], ["car", "ried"], heads=[doc[13], doc[13]])
        assert doc[0].text == "Ann met Bob"
        expected = []
        for spans in before:
            tokens = []
            for start, end, label in spans:
                tokens.append(doc.char_span(start, end, label, alignment_mode="expand"))
            expected.append(offsets(tokens))
        assert groups(doc) == expected
        if not is_read:
            _, *roles = groups(doc)[0]
            assert offsets(doc.spans["srl_predicates_1"]) == roles
            assert offsets([doc.spans["srl_predicates_1"][-1]]) == roles[-1:]
            assert groups(Doc(nlp.vocab).from_bytes(doc.to_bytes())) == groups(doc)

    def test_documents_that_others_make_keep_predicates_and_chains_apart(self, nlp):
        docs = [nlp(TEXTS[0]), nlp(TEXTS[3]), nlp(TEXTS[0])]
        with pytest.warns(UserWarning, match="resolved"):
            joined = Doc.from_docs(docs)
        read = Doc(nlp.vocab).from_json(docs[0].to_json(underscore=["elmo_srl", "elmo_coref"]))
        for attribute in ("predicates", "chains"):
            expected = []
            for doc in docs:
                expected += getattr(doc._, attribute)
            assert str(getattr(joined._, attribute)) == str(expected)
        assert groups(read) == groups(docs[0]) != []

    def test_entities_that_are_set_are_kept(self, archives, nlp):
        names = nlp(TEXTS[0]).ents
        doc = nlp.make_doc(TEXTS[0])
        doc.ents = [doc.char_span(names[0].start_char, names[0].end_char, label="MINE")]
        nlp.get_pipe("elmo_ner")(doc)
        assert doc.ents[0].label_ == "MINE"
        assert offsets(doc.ents[1:]) == offsets(names[1:])

    def test_blocked_tokens_are_no_entities(self, nlp):
        names = nlp(TEXTS[0]).ents
        doc = nlp.make_doc(TEXTS[0])
        blocked = doc.char_span(names[0].start_char, names[0].end_char)
        doc.set_ents([], blocked=[blocked], default="missing")
        nlp.get_pipe("elmo_ner")(doc)
        assert offsets(doc.ents) == offsets(names[1:])
        for token in blocked:
            assert token.ent_iob_ == "B"

    def test_a_second_time_replaces_the_first(self, nlp):
        doc = nlp(TEXTS[0])
        before = annotations(doc)
        assert annotations(nlp(doc)) == approximately(before)


def mentions_inside(chain: list[Span], span: Span) -> list[Span]:
    inside = []
    for mention in chain:
        if span.start <= mention.start and mention.end <= span.end:
            inside.append(mention)
    return inside


class TestPipe:
    def test_a_stream_has_the_annotations_of_single_documents(self, nlp):
        expected = [annotations(nlp(text)) for text in TEXTS] * 3
        numbered = zip(TEXTS * 3, range(12), strict=True)
        stream = nlp.pipe(numbered, as_tuples=True, batch_size=2)
        for number, (doc, context) in enumerate(stream):
            assert context == number
            assert annotations(doc) == approximately(expected[number])
        assert number == 11

    @pytest.mark.parametrize("batch_size", [1, 3])
    def test_no_more_is_read_than_the_batch_size(self, archives, batch_size):
        nlp = pipeline(archives, ["ner", "srl"])
        nlp.add_pipe("elmo", config={"bilm": str(TINY_BILM)})
        read: list[str] = []
        docs = nlp.pipe(recorded(TEXTS * 3, read), batch_size=batch_size)
        for number in range(2 * batch_size):
            assert next(docs).text == TEXTS[number % len(TEXTS)]
            assert len(read) == batch_size * (number // batch_size + 1)

    @pytest.mark.slow
    @pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.weekly)])
    def test_processes_have_the_models(self, nlp, method):
        before = multiprocessing.get_start_method()
        threads = torch.get_num_threads()
        multiprocessing.set_start_method(method, force=True)
        # After that, a forked process with several threads would hang.
        torch.set_num_threads(2)
        nlp(TEXTS[0])
        try:
            docs = list(nlp.pipe(TEXTS * 2, n_process=2, batch_size=2))
        finally:
            multiprocessing.set_start_method(before, force=True)
            torch.set_num_threads(threads)
        expected = [annotations(nlp(text)) for text in TEXTS] * 2
        assert [annotations(doc) for doc in docs] == approximately(expected)

    def test_the_error_handler_gets_only_the_bad_document(self, archives):
        failures: list[tuple] = []

        def note(name, component, docs, error):
            failures.append((name, docs, str(error)))

        for task in ("srl", "ner"):
            nlp = pipeline(archives, [task])
            expected = [annotations(nlp(TEXTS[0])), annotations(nlp(TEXTS[3]))]
            bad = Doc(nlp.vocab, words=["Ann", "<S>", "."])
            docs = [nlp.make_doc(TEXTS[0]), bad, nlp.make_doc(TEXTS[3])]
            with pytest.raises(ValueError, match="<S>"):
                list(nlp.pipe(doc.copy() for doc in docs))
            failures.clear()
            nlp.set_error_handler(note)
            annotated = list(nlp.pipe(doc.copy() for doc in docs))
            assert [annotations(doc) for doc in annotated] == approximately(expected)
            ((name, (failed,), message),) = failures
            assert name == f"elmo_{task}" and failed.text == bad.text and "<S>" in message

    @pytest.mark.parametrize("name", ["elmo_ner", "elmo"])
    def test_settings_in_component_cfg_are_an_error(self, archives, name):
        nlp = pipeline(archives, ["ner"])
        nlp.add_pipe("elmo", config={"bilm": str(TINY_BILM)})
        settings = {name: {"threshold": 0.5}}
        expected = rf"config=\.\.\.\) for the settings of {name}, got threshold in component_cfg"
        with pytest.raises(ValueError, match=expected):
            nlp(TEXTS[0], component_cfg=settings)
        with pytest.raises(ValueError, match=expected):
            list(nlp.pipe(TEXTS, component_cfg=settings))
        read: list[str] = []
        sizes = {"elmo_ner": {"batch_size": 1}, "elmo": {"batch_size": 2}}
        docs = nlp.pipe(recorded(TEXTS, read), component_cfg=sizes)
        assert next(docs).text == TEXTS[0] and len(read) == 2

    def test_components_can_be_switched_off(self, nlp):
        with nlp.select_pipes(enable=["elmo_sst"]):
            doc = nlp(TEXTS[0])
        assert doc.cats and not doc.ents and not doc.spans

    @pytest.mark.skipif(not MODELS.is_dir(), reason="needs the models of a checkout")
    def test_labels_and_licences_are_saved(self, tmp_path):
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo_ner", config={"threshold": 0.9})
        assert nlp.pipe_labels["elmo_ner"] == ["LOC", "ORG", "PERSON"]
        names = nlp("Angela Merkel met Tim Cook of Apple. The Zork met Blaf in Xib.").ents
        assert [name.text for name in names] == ["Angela Merkel", "Tim Cook", "Apple"]
        nlp.to_disk(tmp_path)
        meta = spacy.load(tmp_path).meta
        assert meta["labels"]["elmo_ner"] == ["LOC", "ORG", "PERSON"]
        assert meta["sources"] == [{"name": "elmo_tasks ner", "license": "cc-by-sa-4.0"}]

    @pytest.mark.weekly
    def test_an_attribute_of_other_code_is_an_error(self):
        code = (
            "import spacy\nfrom spacy.tokens import Doc\nDoc.set_extension('chains', default=7)\n"
            "nlp = spacy.blank('en')\nprint(nlp('a')._.chains)\nnlp.add_pipe('elmo_ner')"
        )
        environment = os.environ | {"PYTHONPATH": str(CHECKOUT)}
        command = [sys.executable, "-c", code]
        run = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert run.stdout == "7\n"
        assert "ValueError: Doc._.chains was set by other code" in run.stderr

    @pytest.mark.skipif(not MODELS.is_dir(), reason="needs the models of a checkout")
    def test_components_share_one_bilm_in_memory(self):
        def n_bilms():
            gc.collect()
            bilms = [value for value in gc.get_objects() if type(value) is Bilm]
            return sum(bilm.options.projection_dim == 128 for bilm in bilms)

        before = n_bilms()
        nlp = spacy.blank("en")
        for name in ("elmo_ner", "elmo_srl", "elmo_sst", "elmo_pos"):
            nlp.add_pipe(name)
        doc = nlp("Anna met Tim Cook in Berlin.")
        assert [span.label_ for span in doc.ents] == ["PERSON", "PERSON", "LOC"]
        assert [token.pos_ for token in doc[:2]] == ["PROPN", "VERB"]
        assert [token.tag_ for token in doc[:2]] == ["NNP", "VBD"]
        assert n_bilms() <= before + 1


TITLES = {
    "ner": "named entities",
    "srl": "semantic roles",
    "coref": "coreference",
    "sst": "sentiment",
    "pos": "parts of speech",
    "snli": "entailment",
    "squad": "questions",
    "task": "single texts",
}


class TestModels:
    @pytest.fixture(scope="class")
    def models(self, archive, archives, tmp_path_factory) -> dict[str, list[Path]]:
        """Of each task an archive and its folder."""
        folder = tmp_path_factory.mktemp("models")
        models = {}
        for task, model in archives.items():
            models[task] = [model, folder / task]
        for task in ("snli", "squad"):
            models[task] = [archive(task, "none", 3), folder / task]
        for model, unpacked in models.values():
            unpack(model, unpacked)
        return models

    @pytest.mark.parametrize(
        "component",
        [
            "ner",
            "task",
            pytest.param("srl", marks=pytest.mark.weekly),
            pytest.param("coref", marks=pytest.mark.weekly),
            pytest.param("sst", marks=pytest.mark.weekly),
            pytest.param("pos", marks=pytest.mark.weekly),
        ],
    )
    def test_a_component_takes_models_of_its_task(self, models, component):
        for task, paths in models.items():
            got = f"got .*{task}.* \\({TITLES[task]}\\)"
            expected = f"elmo_{component} needs a model of {TITLES[component]}, {got}"
            for path in paths:
                nlp = spacy.blank("en")
                config = {"model": str(path)}
                if component in (task, "task") and task not in ("snli", "squad"):
                    nlp.add_pipe(f"elmo_{component}", config=config)
                else:
                    with pytest.raises(ValueError, match=expected):
                        nlp.add_pipe(f"elmo_{component}", config=config)

    def test_a_model_that_comes_later_is_checked_when_it_is_used(self, archives, tmp_path):
        nlp = pipeline({"ner": tmp_path / "late.tar.gz"}, ["ner"])
        shutil.copyfile(archives["srl"], tmp_path / "late.tar.gz")
        expected = r"elmo_ner needs a model of named entities, got .* \(semantic roles\)"
        with pytest.raises(ValueError, match=expected):
            nlp("Ann met Bob.")

    def test_two_components_that_replace_each_other_are_reported(self, archives):
        for task in TASKS:
            nlp = pipeline(archives, [task])
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                nlp.add_pipe(f"elmo_{task}", name="second", config={"model": str(archives[task])})
            messages = [str(warning.message) for warning in caught]
            n_reports = sum("'second'" in message for message in messages)
            assert n_reports == (0 if task == "ner" else 1)


class TestFiles:
    def test_a_saved_pipeline_needs_no_other_files(self, archives, tmp_path):
        copies = {task: tmp_path / f"{task}.tar.gz" for task in TASKS}
        for task, archive in archives.items():
            shutil.copyfile(archive, copies[task])
        nlp = pipeline(copies)
        expected = approximately(annotations(nlp(TEXTS[0])))
        nlp.to_disk(tmp_path / "saved")
        content = nlp.to_bytes()
        config = copy.deepcopy(nlp.config)
        for archive in copies.values():
            archive.unlink()
        shutil.move(tmp_path / "saved", tmp_path / "moved")
        loaded = spacy.load(tmp_path / "moved")
        # Onto the files that it reads.
        loaded.to_disk(tmp_path / "moved")
        assert annotations(loaded(TEXTS[0])) == expected
        from_bytes = spacy.util.load_model_from_config(config, auto_fill=True)
        from_bytes.from_bytes(content)
        assert annotations(from_bytes(TEXTS[0])) == expected
        without_roles = spacy.load(tmp_path / "moved", exclude=["elmo_srl"])
        assert without_roles.pipe_names == ["elmo_ner", "elmo_coref", "elmo_sst", "elmo_pos"]

    @pytest.mark.parametrize(("name", "key"), [("elmo_sst", "model"), ("elmo", "bilm")])
    def test_a_config_cannot_name_a_different_model(self, archives, tmp_path, name, key):
        models = {"elmo_sst": archives["sst"], "elmo": TINY_BILM}
        nlp = spacy.blank("en")
        nlp.add_pipe(name, config={key: str(models[name])})
        nlp.to_disk(tmp_path / "saved")
        with pytest.raises(ValueError, match="expected the model that was saved"):
            spacy.load(tmp_path / "saved", config={"components": {name: {key: "small-open"}}})

    def test_without_save_weights_only_the_name_is_saved(self, archives, tmp_path):
        nlp = pipeline(archives, ["sst"], save_weights=False)
        nlp.to_disk(tmp_path)
        assert not list(tmp_path.rglob("model"))
        expected = approximately(annotations(nlp(TEXTS[0])))
        assert annotations(spacy.load(tmp_path)(TEXTS[0])) == expected

    def test_documents_of_files_have_the_annotations(self, nlp, tmp_path):
        docs = list(nlp.pipe(TEXTS))
        attributes = ["TAG", "POS", "ENT_IOB", "ENT_TYPE"]
        DocBin(docs=docs, store_user_data=True, attrs=attributes).to_disk(tmp_path / "docs")
        code = (
            "import sys, spacy\n"
            "from spacy.tokens import DocBin\n"
            "for doc in DocBin().from_disk(sys.argv[1]).get_docs(spacy.blank('en').vocab):\n"
            "    names = [name._.probability for name in doc.ents]\n"
            "    print([names, str(doc._.predicates), doc._.resolved, doc.cats])\n"
        )
        command = [sys.executable, "-c", code, tmp_path / "docs"]
        environment = os.environ | {"PYTHONPATH": str(CHECKOUT)}
        run = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        expected = []
        for doc in docs:
            names = [name._.probability for name in doc.ents]
            expected.append(str([names, str(doc._.predicates), doc._.resolved, doc.cats]))
        assert run.stdout.splitlines() == expected


class TestScores:
    def test_spacys_scorers_compare_with_gold_documents(self, archives):
        nlp = pipeline(archives, ["ner", "pos", "sst"])
        golds = [nlp(text) for text in ("Ann met Bob in Rome.", TEXTS[3])]
        for gold in golds:
            best = max(gold.cats, key=gold.cats.get)
            gold.cats = {label: float(label == best) for label in gold.cats}
        examples = [Example(nlp.make_doc(gold.text), gold) for gold in golds]
        scores = nlp.evaluate(examples)
        assert scores["ents_f"] == scores["tag_acc"] == 1.0
        assert scores["cats_macro_f"] > 0
        golds[0].ents = []
        golds[0][0].tag_ = "wrong"
        scores = nlp.evaluate([Example(nlp.make_doc(gold.text), gold) for gold in golds])
        assert 0 < scores["ents_f"] < 1 and 0.8 < scores["tag_acc"] < 1

    def test_labels_are_text_in_pictures(self, nlp):
        doc = nlp.make_doc("Ann sang.")
        label = "<img src=x onerror=alert(1)>"
        name = {"text": "Ann", "start": 0, "end": 3, "label": label, "probability": 0.5}
        set_result(doc, "elmo_ner", Names(), [name])
        page = displacy.render(doc, style="ent", jupyter=False)
        assert "<img" not in page and escape(label) in page

    def test_pictures(self, nlp):
        doc = nlp(TEXTS[0])
        assert "<mark" in displacy.render(doc, style="ent", jupyter=False)
        for name in ("srl_predicates_1", "coref_clusters_1"):
            page = displacy.render(doc, "span", jupyter=False, options={"spans_key": name})
            assert doc.spans[name][0].label_ in page
