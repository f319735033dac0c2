from typing import Any

import pytest
from allennlp.data import Batch, Instance, Vocabulary
from allennlp.data.token_indexers import SingleIdTokenIndexer

from elmo_tasks.data import CorefReader, ElmoTokenIndexer
from elmo_tasks.data.dataset_readers.coref_reader import read_documents
from tests.data.dataset_readers.instances import words_in

SENTENCES = [["Ann", "sang", "."], ["She", "slept"]]


def metadata_of(instance: Instance) -> dict[str, Any]:
    metadata: dict[str, Any] = instance["metadata"].metadata
    assert list(map(words_in, instance["tokens"])) == metadata["sentences"]
    return metadata


class TestCorefReader:
    def test_a_document_is_a_list_of_sentences(self, fixtures_root):
        file = str(fixtures_root / "coref" / "dev.conll")
        for instance, document in zip(CorefReader().read(file), read_documents(file), strict=True):
            assert metadata_of(instance) == {
                "document": document.name,
                "part": 0,
                "genre": document.name[:2],
                "sentences": document.sentences,
                "speakers": document.speakers,
                "clusters": document.clusters,
            }

    def test_words_alone_are_enough(self):
        metadata = metadata_of(CorefReader().text_to_instance(SENTENCES))
        assert metadata["speakers"] == [["-"] * 3, ["-"] * 2]
        assert metadata["document"] == ""
        assert metadata["genre"] == ""
        assert "clusters" not in metadata

    def test_a_genre_may_be_given(self):
        instance = CorefReader().text_to_instance(SENTENCES, name="nw/x", genre="bc")
        assert metadata_of(instance)["genre"] == "bc"

    def test_the_tensors_are_sentence_by_sentence(self):
        reader = CorefReader(
            token_indexers={"tokens": SingleIdTokenIndexer(), "elmo": ElmoTokenIndexer()}
        )
        instances = [reader.text_to_instance(SENTENCES), reader.text_to_instance([["x"]])]
        for instance in instances:
            reader.apply_token_indexers(instance)
        vocabulary = Vocabulary.from_instances(instances)
        batch = Batch(instances)
        batch.index_instances(vocabulary)
        tokens = batch.as_tensor_dict()["tokens"]
        indices = tokens["tokens"]["tokens"]
        assert indices.shape == (2, 2, 3)
        words = [vocabulary.get_token_from_index(index) for index in indices.flatten().tolist()]
        padding = "@@PADDING@@"
        assert words[:6] == ["Ann", "sang", ".", "She", "slept", padding]
        assert words[6:] == ["x"] + [padding] * 5
        assert tokens["elmo"]["character_ids"].shape == (2, 2, 3, 50)

    @pytest.mark.parametrize(
        ("remove", "kept"), [(True, [[(0, 0), (3, 3)]]), (False, [[(1, 1)], [(0, 0), (3, 3)]])]
    )
    def test_clusters_of_one_mention_can_be_dropped(self, remove, kept):
        reader = CorefReader(remove_singleton_clusters=remove)
        instance = reader.text_to_instance(SENTENCES, clusters=[[(1, 1)], [(0, 0), (3, 3)]])
        assert metadata_of(instance)["clusters"] == kept
