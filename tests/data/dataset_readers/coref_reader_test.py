from pathlib import Path
from typing import Any

import pytest
from allennlp.data import Batch, Instance, Vocabulary
from allennlp.data.token_indexers import SingleIdTokenIndexer

from elmo_tasks.data import CorefReader, ElmoTokenIndexer
from elmo_tasks.data.coref_conll import document_lines, read_documents

SENTENCES = [["Ann", "sang", "."], ["She", "slept"]]


def metadata_of(instance: Instance) -> dict[str, Any]:
    metadata: dict[str, Any] = instance["metadata"].metadata
    assert [[token.text for token in text.tokens] for text in instance["tokens"]] == metadata["sentences"]
    return metadata


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of seven documents."""
    file = tmp_path / "file.conll"
    lines = [line for number in range(7) for line in document_lines(f"nw/{number}", 0, SENTENCES, [[(0, 0), (3, 3)]])]
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


class TestCorefReader:
    def test_a_document_is_a_list_of_sentences(self, fixtures_root):
        """Oracle: `read_documents`."""
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

    def test_a_file_without_clusters_is_named(self, path, caplog):
        """Oracle: the log; without them all scores are 0."""
        assert len(list(CorefReader().read(str(path)))) == 7
        assert not caplog.messages
        path.write_text("\n".join(document_lines("nw/0", 0, SENTENCES, [])))
        assert len(list(CorefReader().read(str(path)))) == 1
        assert caplog.messages == [f"{path}: no document has a cluster of coreference: there are no scores of it"]

    def test_words_alone_are_enough(self):
        """Oracle: by hand: no speakers, no genre, no clusters."""
        metadata = metadata_of(CorefReader().text_to_instance(SENTENCES))
        assert metadata["speakers"] == [["-"] * 3, ["-"] * 2]
        assert (metadata["document"], metadata["genre"]) == ("", "")
        assert "clusters" not in metadata
        assert metadata_of(CorefReader().text_to_instance(SENTENCES, name="nw/x", genre="bc"))["genre"] == "bc"

    @pytest.mark.parametrize("sentences", [[], [[]], [[], ["a"]]])
    def test_documents_without_words_are_tensors_too(self, sentences):
        """Oracle: by hand: zeroes, as many sentences as there are, but one at least."""
        reader = CorefReader()
        instance = reader.text_to_instance(sentences)
        reader.apply_token_indexers(instance)
        batch = Batch([instance])
        batch.index_instances(Vocabulary.empty())
        tokens = batch.as_tensor_dict()["tokens"]["tokens"]["tokens"]
        assert tokens.shape == (1, max(1, len(sentences)), 1)
        assert int((tokens != 0).sum()) == sum(map(len, sentences))

    def test_the_tensors_are_sentence_by_sentence(self):
        """Oracle: the numbers of the words by hand."""
        reader = CorefReader({"tokens": SingleIdTokenIndexer(), "elmo": ElmoTokenIndexer()})
        instances = [reader.text_to_instance(SENTENCES), reader.text_to_instance([["x"]])]
        for instance in instances:
            reader.apply_token_indexers(instance)
        vocabulary = Vocabulary.from_instances(instances)
        batch = Batch(instances)
        batch.index_instances(vocabulary)
        tokens = batch.as_tensor_dict()["tokens"]
        index = vocabulary.get_token_index
        rows = [[index(word) for word in words] for words in SENTENCES]
        assert tokens["tokens"]["tokens"].tolist() == [[rows[0], rows[1] + [0]], [[index("x"), 0, 0], [0, 0, 0]]]
        assert tokens["elmo"]["character_ids"].shape == (2, 2, 3, 50)

    @pytest.mark.parametrize(("remove", "kept"), [(True, [[(0, 0), (3, 3)]]), (False, [[(1, 1)], [(0, 0), (3, 3)]])])
    def test_clusters_of_one_mention_can_be_dropped(self, remove, kept):
        """Oracle: by hand."""
        reader = CorefReader(remove_singleton_clusters=remove)
        instance = reader.text_to_instance(SENTENCES, clusters=[[(1, 1)], [(0, 0), (3, 3)]])
        assert metadata_of(instance)["clusters"] == kept

    def test_wrong_numbers_of_speakers_are_errors(self):
        """Oracle: the message says both numbers."""
        with pytest.raises(ValueError, match=r"\[3, 2\] words and \[3, 1\] speakers"):
            CorefReader().text_to_instance(SENTENCES, [["a"] * 3, ["b"]])

    @pytest.mark.parametrize("mention", [(3, 5), (-1, 0), (2, 1)])
    def test_a_mention_outside_of_the_document_is_an_error(self, mention):
        """Oracle: the message names it and the number of words."""
        with pytest.raises(ValueError, match=rf"has 5 words, but is \[{mention[0]}, {mention[1]}\]"):
            CorefReader().text_to_instance(SENTENCES, clusters=[[(0, 0), mention]])
