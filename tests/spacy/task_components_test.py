import copy
import gc
import multiprocessing
import os
import shutil
import subprocess
import sys
import warnings
from functools import partial
from html import escape
from pathlib import Path
from unittest.mock import ANY

import pytest
import spacy
import torch
from spacy import displacy
from spacy.tokens import Doc, DocBin
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
    return {task: archive("pos_tagger" if task == "pos" else task, "none", 3) for task in TASKS}


@pytest.fixture(scope="module")
def nlp(archives) -> spacy.Language:
    return pipeline(archives)


def pipeline(archives, tasks=TASKS, **config) -> spacy.Language:
    nlp = spacy.blank("en")
    for task in tasks:
        nlp.add_pipe(f"elmo_{task}", config={"model": str(archives[task]), **config})
    return nlp


def answers(doc: Doc) -> dict:
    """All that the components set, but probabilities only roughly."""
    return {
        "ents": [
            (span.start_char, span.end_char, span.label_, round(span._.probability, 3))
            for span in doc.ents
        ],
        "predicates": [
            (predicate.verb.text, places(predicate.roles)) for predicate in doc._.predicates
        ],
        "chains": [
            places(group) for key, group in doc.spans.items() if key.startswith("coref_clusters_")
        ],
        "resolved": doc._.resolved,
        "cats": {name: round(score, 3) for name, score in doc.cats.items()},
        "tags": [(token.tag_, token.pos_) for token in doc],
    }


def places(spans) -> list[tuple]:
    return [(span.start_char, span.end_char, span.label_) for span in spans]


def found_in(doc: Doc) -> list[list[tuple]]:
    return [places([verb, *roles]) for verb, roles in doc._.predicates] + list(
        map(places, doc._.chains)
    )


def plain(task: TrainedTask, doc: Doc):
    """What a task says about the words and the sentences of a document."""
    sentences = [
        [Word(t.text, t.idx, t.idx + len(t)) for t in sent if not t.is_space] for sent in doc.sents
    ]
    return next(task.results([task.read_words(doc.text, list(filter(None, sentences)))]))


class TestAnnotations:
    def test_they_are_the_results_of_the_task(self, archives, nlp):
        nlp = pipeline(archives)
        nlp.add_pipe("sentencizer", first=True)
        for text in TEXTS:
            doc = nlp(text)
            found = answers(doc)
            of = {task: plain(TrainedTask(archives[task]), doc) for task in TASKS}
            assert found["ents"] == [
                (s["start"], s["end"], s["label"], round(s["probability"], 3)) for s in of["ner"]
            ]
            assert [roles for _, roles in found["predicates"]] == [
                [(role["start"], role["end"], role["label"]) for role in predicate["roles"]]
                for predicate in of["srl"]
            ]
            assert [verb for verb, _ in found["predicates"]] == [
                predicate["verb"] for predicate in of["srl"]
            ]
            assert [[place[:2] for place in chain] for chain in found["chains"]] == [
                [(mention["start"], mention["end"]) for mention in chain]
                for chain in of["coref"]["chains"]
            ]
            assert found["resolved"] == of["coref"]["resolved"]
            assert found["cats"] == {
                str(n): round(p, 3) for n, p in of["sst"]["probabilities"].items()
            }
            words = [token.tag_ for token in doc if not token.is_space]
            assert words == [word["label"] for word in of["pos"]]
            assert {token.tag_ for token in doc if token.is_space} <= {"_SP"}
        assert any(found.values())

    def test_all_of_them_say_something(self, nlp):
        doc = nlp(TEXTS[0])
        assert doc.ents and doc._.predicates and doc.spans["coref_clusters_1"] and doc.cats
        assert all(isinstance(predicate, Predicate) for predicate in doc._.predicates)
        assert {predicate.verb.label_ for predicate in doc._.predicates} == {"V"}
        assert not doc.has_annotation("SENT_START")

    def test_a_part_of_a_document_has_its_own(self, archives):
        nlp = pipeline(archives, ["srl", "coref"])
        nlp.add_pipe("sentencizer", first=True)
        doc = nlp(TEXTS[0])
        assert len(doc._.predicates) > 1 and doc._.chains
        for part in (*doc.sents, doc[:], doc[2:5], doc[0:0]):
            verbs = [each for each in doc._.predicates if part.start <= each.verb.start < part.end]
            assert part._.predicates == verbs
            assert part._.chains == [
                chain
                for chain in doc._.chains
                if any(part.start <= mention.start and mention.end <= part.end for mention in chain)
            ]
        first, second = (sentence._.predicates for sentence in doc.sents)
        assert [*first, *second] == doc._.predicates and first and second

    def test_a_part_that_becomes_a_document_keeps_what_is_in_it(self, archives):
        nlp = pipeline(archives, ["srl", "coref"])
        nlp.add_pipe("sentencizer", first=True)
        doc = nlp(TEXTS[0])
        for sentence in doc.sents:
            copied = sentence.as_doc(copy_user_data=True)
            assert str(copied._.predicates) == str(sentence._.predicates) != "[]"
            inside = [
                each for each in doc._.chains if sentence.start <= each[0].start < sentence.end
            ]
            assert len(copied._.chains) == len(inside)
            for chain, whole in zip(copied._.chains, inside, strict=True):
                assert str(chain) == str([each for each in whole if each.end <= sentence.end])

    def test_sentences_of_the_document_are_used(self, archives):
        nlp = pipeline(archives, ["ner"])
        words = ["Ann", "met", "Bob", "in", "Rome", ".", "He", "was", "tired", "."]
        whole = Doc(nlp.vocab, words=words, sent_starts=[True] + [False] * 9)
        by_rule = Doc(nlp.vocab, words=words)
        apart = Doc(nlp.vocab, words=words, sent_starts=[i in (0, 6) for i in range(10)])
        task = TrainedTask(archives["ner"])
        for doc in (whole, apart):
            expected = plain(task, doc)
            assert answers(nlp(doc))["ents"] == [
                (s["start"], s["end"], s["label"], round(s["probability"], 3)) for s in expected
            ]
        assert answers(nlp(by_rule))["ents"] == answers(apart)["ents"] != answers(whole)["ents"]

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
        before = found_in(doc)
        with doc.retokenize() as retokenizer:
            retokenizer.merge(doc[0:3])
            retokenizer.merge(doc[9:11])
            retokenizer.split(doc[14], ["car", "ried"], heads=[doc[13], doc[13]])
        assert [token.text for token in doc][:1] == ["Ann met Bob"]
        expected = [
            [doc.char_span(*place, alignment_mode="expand") for *place, _ in spans]
            for spans in before
        ]
        assert found_in(doc) == [
            [
                (span.start_char, span.end_char, label)
                for span, (*_, label) in zip(spans, old, strict=True)
            ]
            for spans, old in zip(expected, before, strict=True)
        ]
        if not is_read:
            assert places(doc.spans["srl_predicates_1"]) == found_in(doc)[0][1:]
            assert doc.spans["srl_predicates_1"][-1].end_char == found_in(doc)[0][-1][1]
            assert found_in(Doc(nlp.vocab).from_bytes(doc.to_bytes())) == found_in(doc)

    def test_documents_that_others_make_keep_predicates_and_chains_apart(self, nlp):
        docs = [nlp(TEXTS[0]), nlp(TEXTS[3]), nlp(TEXTS[0])]
        with pytest.warns(UserWarning, match="resolved"):
            joined = Doc.from_docs(docs)
        read = Doc(nlp.vocab).from_json(docs[0].to_json(underscore=["elmo_srl", "elmo_coref"]))
        for attribute in ("predicates", "chains"):
            single = [getattr(doc._, attribute) for doc in docs]
            assert str(getattr(joined._, attribute)) == str([*single[0], *single[1], *single[2]])
        assert found_in(read) == found_in(docs[0]) != []

    def test_entities_that_are_set_are_kept(self, archives, nlp):
        (first, *others) = answers(nlp(TEXTS[0]))["ents"]
        doc = nlp.make_doc(TEXTS[0])
        doc.ents = [doc.char_span(first[0], first[1], label="MINE")]
        kept = nlp.get_pipe("elmo_ner")(doc).ents
        assert kept[0].label_ == "MINE"
        assert places(kept[1:]) == [place[:3] for place in others]

    def test_blocked_tokens_are_no_entities(self, nlp):
        (first, *others) = answers(nlp(TEXTS[0]))["ents"]
        doc = nlp.make_doc(TEXTS[0])
        doc.set_ents([], blocked=[doc.char_span(*first[:2])], default="missing")
        kept = nlp.get_pipe("elmo_ner")(doc)
        assert places(kept.ents) == [place[:3] for place in others]
        assert [token.ent_iob_ for token in doc.char_span(*first[:2])] == ["B"] * len(
            doc.char_span(*first[:2])
        )

    def test_a_second_time_replaces_the_first(self, nlp):
        doc = nlp(TEXTS[0])
        before = answers(doc)
        assert answers(nlp(doc)) == before


class TestPipe:
    def test_a_stream_has_the_annotations_of_single_documents(self, nlp):
        found = list(
            nlp.pipe(
                [(text, number) for number, text in enumerate(TEXTS * 3)],
                as_tuples=True,
                batch_size=2,
            )
        )
        assert [number for _, number in found] == list(range(len(TEXTS) * 3))
        assert [answers(doc) for doc, _ in found] == [answers(nlp(text)) for text in TEXTS] * 3

    @pytest.mark.parametrize("batch_size", [1, 3])
    def test_no_more_is_read_than_the_batch_size(self, archives, batch_size):
        nlp = pipeline(archives, ["ner", "srl"])
        nlp.add_pipe("elmo", config={"bilm": str(TINY_BILM)})
        read: list[str] = []
        docs = nlp.pipe((read.append(text) or text for text in TEXTS * 3), batch_size=batch_size)
        for number in range(2 * batch_size):
            assert next(docs).text == TEXTS[number % len(TEXTS)]
            assert len(read) == batch_size * (number // batch_size + 1)

    @pytest.mark.slow
    @pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.weekly)])
    def test_processes_have_the_models(self, nlp, method):
        before, threads = multiprocessing.get_start_method(), torch.get_num_threads()
        multiprocessing.set_start_method(method, force=True)
        # After that, a forked process with several threads would hang.
        torch.set_num_threads(2)
        nlp(TEXTS[0])
        try:
            found = [answers(doc) for doc in nlp.pipe(TEXTS * 2, n_process=2, batch_size=2)]
        finally:
            multiprocessing.set_start_method(before, force=True)
            torch.set_num_threads(threads)
        assert found == [answers(nlp(text)) for text in TEXTS] * 2

    def test_the_error_handler_gets_only_the_bad_document(self, archives):
        for nlp in (pipeline(archives, ["srl"]), pipeline(archives, ["ner"])):
            docs = [
                nlp.make_doc(TEXTS[0]),
                Doc(nlp.vocab, words=["Ann", "<S>", "."]),
                nlp.make_doc(TEXTS[3]),
            ]
            with pytest.raises(ValueError, match="<S>"):
                list(nlp.pipe(doc.copy() for doc in docs))
            bad: list = []
            nlp.set_error_handler(
                lambda name, component, failed, error, bad=bad: bad.append(
                    (name, failed, str(error))
                )
            )
            found = list(nlp.pipe(doc.copy() for doc in docs))
            assert list(map(answers, found)) == [answers(nlp(TEXTS[0])), answers(nlp(TEXTS[3]))]
            ((name, (doc,), message),) = bad
            assert (name, doc[1].text) == (nlp.pipe_names[0], "<S>") and "<S>" in message

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
        texts = (read.append(text) or text for text in TEXTS)
        docs = nlp.pipe(
            texts, component_cfg={"elmo_ner": {"batch_size": 1}, "elmo": {"batch_size": 2}}
        )
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
        found = nlp("Angela Merkel met Tim Cook of Apple. The Zork met Blaf in Xib.").ents
        assert [name.text for name in found] == ["Angela Merkel", "Tim Cook", "Apple"]
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
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=environment
        )
        assert (
            run.stdout == "7\n" and "ValueError: Doc._.chains was set by other code" in run.stderr
        )

    @pytest.mark.skipif(not MODELS.is_dir(), reason="needs the models of a checkout")
    def test_one_biLM_is_in_memory(self):
        def n_bilms():
            gc.collect()
            return sum(
                type(thing) is Bilm and thing.options.projection_dim == 128
                for thing in gc.get_objects()
            )

        before, nlp = n_bilms(), spacy.blank("en")
        for name in ("elmo_ner", "elmo_srl", "elmo_sst", "elmo_pos"):
            nlp.add_pipe(name)
        doc = nlp("Anna met Tim Cook in Berlin.")
        assert [span.label_ for span in doc.ents] == ["PERSON", "PERSON", "LOC"]
        assert [(token.pos_, token.tag_) for token in doc[:2]] == [
            ("PROPN", "NNP"),
            ("VERB", "VBD"),
        ]
        assert n_bilms() <= before + 1


TITLES = {
    **{
        "ner": "named entities",
        "srl": "semantic roles",
        "coref": "coreference",
        "sst": "sentiment",
    },
    **{
        "pos": "parts of speech",
        "snli": "entailment",
        "squad": "questions",
        "task": "single texts",
    },
}


class TestModels:
    @pytest.fixture(scope="class")
    def models(self, archive, archives, tmp_path_factory) -> dict[str, list[Path]]:
        """Of each task an archive and its folder."""
        models = archives | {task: archive(task, "none", 3) for task in ("snli", "squad")}
        folder = tmp_path_factory.mktemp("models")
        for task, model in models.items():
            unpack(model, folder / task)
        return {task: [model, folder / task] for task, model in models.items()}

    @pytest.mark.parametrize(
        "component",
        ["ner", "task", *(pytest.param(task, marks=pytest.mark.weekly) for task in TASKS[1:])],
    )
    def test_a_component_takes_models_of_its_task(self, models, component):
        for task, paths in models.items():
            for path in paths:
                add = partial(
                    spacy.blank("en").add_pipe, f"elmo_{component}", config={"model": str(path)}
                )
                if component in (task, "task") and task not in ("snli", "squad"):
                    assert add()
                    continue
                expected = f"elmo_{component} needs a model of {TITLES[component]}, got .*{task}.* \\({TITLES[task]}\\)"
                with pytest.raises(ValueError, match=expected):
                    add()

    def test_a_model_that_comes_later_is_checked_when_it_is_used(self, archives, tmp_path):
        nlp = pipeline({"ner": tmp_path / "late.tar.gz"}, ["ner"])
        shutil.copyfile(archives["srl"], tmp_path / "late.tar.gz")
        with pytest.raises(
            ValueError, match=r"elmo_ner needs a model of named entities, got .* \(semantic roles\)"
        ):
            nlp("Ann met Bob.")

    def test_two_components_that_replace_each_other_are_reported(self, archives):
        for task in TASKS:
            nlp = pipeline(archives, [task])
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                nlp.add_pipe(f"elmo_{task}", name="second", config={"model": str(archives[task])})
            assert [str(each.message) for each in caught if "'second'" in str(each.message)] == (
                [] if task == "ner" else [ANY]
            )


class TestFiles:
    def test_a_saved_pipeline_needs_no_other_files(self, archives, tmp_path):
        copies = {task: tmp_path / f"{task}.tar.gz" for task in TASKS}
        for task, archive in archives.items():
            shutil.copyfile(archive, copies[task])
        nlp = pipeline(copies)
        expected = answers(nlp(TEXTS[0]))
        nlp.to_disk(tmp_path / "saved")
        content, config = nlp.to_bytes(), copy.deepcopy(nlp.config)
        for archive in copies.values():
            archive.unlink()
        shutil.move(tmp_path / "saved", tmp_path / "moved")
        loaded = spacy.load(tmp_path / "moved")
        # Onto the files that it reads.
        loaded.to_disk(tmp_path / "moved")
        assert answers(loaded(TEXTS[0])) == expected
        assert (
            answers(
                spacy.util.load_model_from_config(config, auto_fill=True).from_bytes(content)(
                    TEXTS[0]
                )
            )
            == expected
        )
        assert spacy.load(tmp_path / "moved", exclude=["elmo_srl"]).pipe_names == [
            "elmo_ner",
            *list(nlp.pipe_names)[2:],
        ]

    @pytest.mark.parametrize(("name", "key"), [("elmo_sst", "model"), ("elmo", "bilm")])
    def test_a_config_cannot_name_a_different_model(self, archives, tmp_path, name, key):
        nlp = spacy.blank("en")
        nlp.add_pipe(
            name, config={key: str({"elmo_sst": archives["sst"], "elmo": TINY_BILM}[name])}
        )
        nlp.to_disk(tmp_path / "saved")
        with pytest.raises(ValueError, match="expected the model that was saved"):
            spacy.load(tmp_path / "saved", config={"components": {name: {key: "small-open"}}})

    def test_only_the_name_is_saved_if_it_should(self, archives, tmp_path):
        nlp = pipeline(archives, ["sst"], save_weights=False)
        nlp.to_disk(tmp_path)
        assert not list(tmp_path.rglob("model"))
        assert answers(spacy.load(tmp_path)(TEXTS[0])) == answers(nlp(TEXTS[0]))

    def test_documents_of_files_have_the_annotations(self, nlp, tmp_path):
        docs = list(nlp.pipe(TEXTS))
        DocBin(
            docs=docs, store_user_data=True, attrs=["TAG", "POS", "ENT_IOB", "ENT_TYPE"]
        ).to_disk(tmp_path / "docs")
        code = (
            "import sys, spacy\n"
            "from spacy.tokens import DocBin\n"
            "docs = DocBin().from_disk(sys.argv[1]).get_docs(spacy.blank('en').vocab)\n"
            "print([([e._.probability for e in d.ents], str(d._.predicates), d._.resolved, d.cats) for d in docs])"
        )
        run = [sys.executable, "-c", code, tmp_path / "docs"]
        environment = os.environ | {"PYTHONPATH": str(CHECKOUT)}
        printed = subprocess.run(
            run, capture_output=True, text=True, check=True, env=environment
        ).stdout
        expected = [
            ([e._.probability for e in d.ents], str(d._.predicates), d._.resolved, d.cats)
            for d in docs
        ]
        assert printed == f"{expected}\n"


class TestScores:
    def test_spacys_scorers_compare_with_gold_documents(self, archives):
        nlp = pipeline(archives, ["ner", "pos", "sst"])
        golds = [nlp(text) for text in ("Ann met Bob in Rome.", TEXTS[3])]
        for gold in golds:
            best = max(gold.cats, key=gold.cats.get)
            gold.cats = {label: float(label == best) for label in gold.cats}
        examples = [Example(nlp.make_doc(gold.text), gold) for gold in golds]
        scores = nlp.evaluate(examples)
        assert (scores["ents_f"], scores["tag_acc"], scores["cats_macro_f"] > 0) == (1.0, 1.0, True)
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
        for key in ("srl_predicates_1", "coref_clusters_1"):
            assert doc.spans[key][0].label_ in displacy.render(
                doc, "span", jupyter=False, options={"spans_key": key}
            )
