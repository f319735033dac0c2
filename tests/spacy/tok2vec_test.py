import multiprocessing
import shutil

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import fix_random_seed, registry

from elmo_tasks import Elmo
from elmo_tasks.bilm import LayerMix
from elmo_tasks.text import in_nfc
from tests.paths import TINY_BILM
from tests.results import approximately

TEXT = "Mary lives in Paris ."


LISTENER = {"@architectures": "spacy.Tok2VecListener.v1", "width": 32}
HASH = {
    "@architectures": "spacy.MultiHashEmbed.v2",
    "width": 8,
    "attrs": ["ORTH"],
    "rows": [100],
    "include_static_vectors": False,
}


def layer(**options):
    config = {"@architectures": "elmo_tasks.Elmo.v1", "bilm": str(TINY_BILM), **options}
    return registry.resolve({"model": config})["model"]


def trained(bilm, n_steps=80, save_weights=True):
    """
    A tagger and named entities that share one ELMo by listeners, and a classifier with a different
    one.
    """
    fix_random_seed(1)
    elmo = {
        "@architectures": "elmo_tasks.Elmo.v1",
        "bilm": str(bilm),
        "width": 32,
        "save_weights": save_weights,
    }
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": elmo})
    for name in ("tagger", "ner"):
        nlp.add_pipe(name, config={"model": {"tok2vec": LISTENER}})
    classifier = {
        "@architectures": "spacy.TextCatParametricAttention.v1",
        "exclusive_classes": True,
        "tok2vec": {**elmo, "embed": HASH},
    }
    nlp.add_pipe("textcat", config={"model": classifier})
    gold = {
        "tags": list("NVPNP"),
        "entities": ["U-PER", "O", "O", "U-LOC", "O"],
        "cats": {"a": 1.0, "b": 0.0},
    }
    examples = [Example.from_dict(Doc(nlp.vocab, words=TEXT.split()), gold)] * 4
    nlp.initialize(lambda: examples)
    sgd = nlp.create_optimizer()
    for _ in range(n_steps):
        nlp.update(examples, sgd=sgd)
    return nlp


def annotations(doc):
    tags = [(token.tag_, token.ent_type_) for token in doc]
    return tags, dict(doc.cats)


@pytest.fixture(scope="module")
def docs():
    nlp = spacy.blank("en")
    texts = ["A short cafe\u0301 .", "Another  one , with white space\n", "x", ""]
    return [nlp(text) for text in texts]


@pytest.fixture(scope="module")
def nlp(tmp_path_factory):
    """A trained pipeline without the folder of its biLM."""
    folder = tmp_path_factory.mktemp("bilm") / "tiny"
    shutil.copytree(TINY_BILM, folder)
    pipeline = trained(folder)
    shutil.rmtree(folder)
    return pipeline


class TestElmoTok2vec:
    def test_the_vectors_are_those_of_elmo(self, docs):
        elmo = Elmo.from_pretrained(TINY_BILM)
        for layers in ("mix", "top", 0):
            model = layer(layers=layers)
            model.initialize(X=docs)
            for doc, vectors in zip(docs, model.predict(docs), strict=True):
                assert vectors.shape == (len(doc), elmo.dim)
                is_word = np.array([not token.is_space for token in doc], dtype=bool)
                words = [in_nfc(token.text) for token in doc if not token.is_space]
                (expected,) = elmo.embed([words], layers=layers)
                np.testing.assert_allclose(vectors[is_word], expected, rtol=0, atol=1e-6)
                assert not vectors[~is_word].any()

    def test_the_gradients_of_the_mix_are_those_of_layer_mix(self, docs):
        generator = np.random.default_rng(0)
        model = layer()
        model.initialize(X=docs)
        mix = LayerMix(3)
        with torch.no_grad():
            mix.layer_weights.copy_(torch.tensor([0.5, -1.0, 0.3]))
            mix.gamma.fill_(1.7)
        model.set_param("layer_weights", mix.layer_weights.detach().numpy().copy())
        model.set_param("gamma", np.array([1.7], "f"))
        mixed, backprop = model.begin_update(docs)
        gradients = [generator.normal(size=vectors.shape).astype("f") for vectors in mixed]
        assert backprop(gradients) == []
        layers_of_docs = model.shims[0].layers_of(docs, False)
        for vectors, gradient, array in zip(mixed, gradients, layers_of_docs, strict=True):
            # Shape: (n_layers, 1, n_tokens, dim)
            layers = torch.from_numpy(array).unsqueeze(1)
            mask = torch.ones(1, len(vectors), dtype=torch.bool)
            (expected,) = mix(layers, mask)
            np.testing.assert_allclose(vectors, expected.detach(), atol=1e-5)
            (expected * torch.from_numpy(gradient)).sum().backward()
        d_weights = model.get_grad("layer_weights")
        np.testing.assert_allclose(d_weights, mix.layer_weights.grad, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(model.get_grad("gamma"), mix.gamma.grad[None], rtol=1e-4)

    @pytest.mark.parametrize("cache_gb", [0, 1])
    def test_training_computes_a_sentence_once_if_it_may_keep_it(self, docs, cache_gb):
        model = layer(cache_gb=cache_gb)
        model.initialize(X=docs)
        computed = []
        bilm = model.shims[0].elmo.bilm
        bilm.register_forward_pre_hook(lambda module, inputs: computed.extend(inputs[0]))
        vectors, _ = model.begin_update(docs)
        vectors_again, _ = model.begin_update(docs)
        assert all(map(np.array_equal, vectors, vectors_again))
        assert len(computed) == (4 if cache_gb else 8)

    def test_a_long_text_without_sentences_gives_a_warning(self):
        model = layer()
        doc = Doc(spacy.blank("en").vocab, words=["word"] * 201)
        model.initialize(X=[doc])
        with pytest.warns(UserWarning, match="sentence boundaries"):
            model.begin_update([doc])


class TestPipelines:
    def test_components_learn_with_it(self, nlp):
        assert [token.tag_ for token in nlp(TEXT)] == list("NVPNP")
        assert nlp(TEXT).cats["a"] > 0.9
        assert nlp.get_pipe("tok2vec").model.layers[0].get_param("layer_weights").any()

    def test_a_saved_pipeline_needs_no_other_files(self, nlp, tmp_path):
        nlp.to_disk(tmp_path / "saved")
        shutil.move(tmp_path / "saved", tmp_path / "moved")
        loaded = spacy.load(tmp_path / "moved")
        expected = approximately(annotations(nlp(TEXT)))
        assert annotations(loaded(TEXT)) == expected
        loaded.replace_listeners("tok2vec", "ner", ["model.tok2vec"])
        assert annotations(loaded(TEXT)) == expected
        source = spacy.blank("en")
        source.add_pipe("tok2vec", source=loaded)
        source.add_pipe("tagger", source=loaded)
        assert [token.tag_ for token in source(TEXT)] == [token.tag_ for token in nlp(TEXT)]

    @pytest.mark.slow
    @pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.weekly)])
    def test_processes_have_it(self, nlp, method, tmp_path):
        # spaCy cannot pickle a pipeline with listeners that it has just trained.
        nlp.to_disk(tmp_path)
        nlp = spacy.load(tmp_path)
        texts = [TEXT, "Paris lives ."] * 4
        before = multiprocessing.get_start_method()
        multiprocessing.set_start_method(method, force=True)
        try:
            docs = list(nlp.pipe(texts, n_process=2, batch_size=2))
        finally:
            multiprocessing.set_start_method(before, force=True)
        expected = [annotations(nlp(text)) for text in texts]
        assert [annotations(doc) for doc in docs] == approximately(expected)

    def test_without_save_weights_only_the_name_is_saved(self, nlp, tmp_path):
        named = trained(TINY_BILM, n_steps=2, save_weights=False)
        nlp.to_disk(tmp_path / "with")
        named.to_disk(tmp_path / "without")
        n_bytes = (tmp_path / "with" / "tok2vec" / "model").stat().st_size
        n_bytes_without = (tmp_path / "without" / "tok2vec" / "model").stat().st_size
        assert n_bytes > 2 * n_bytes_without
        loaded = spacy.load(tmp_path / "without")
        assert annotations(loaded(TEXT)) == approximately(annotations(named(TEXT)))
