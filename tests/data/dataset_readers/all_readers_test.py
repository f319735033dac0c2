"""Tests of what AllenNLP expects of every dataset reader."""

from collections.abc import Iterable
from typing import Any

import pytest
from allennlp.common import Params
from allennlp.data import DatasetReader, Instance
from allennlp.data.dataset_readers.dataset_reader import WorkerInfo
from allennlp.data.fields import ListField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer

from elmo_tasks.data import ElmoTokenIndexer
from tests.paths import FIXTURES

# A small file for each registered task reader.
FILES = {
    "elmo_coref": FIXTURES / "coref" / "dev.conll",
    "elmo_ner": FIXTURES / "ner" / "dev.txt",
    "elmo_pos": FIXTURES / "pos" / "dev.conllu",
    "elmo_snli": FIXTURES / "snli" / "dev.jsonl",
    "elmo_squad": FIXTURES / "squad" / "dev.json",
    "elmo_srl": FIXTURES / "srl" / "dev",
    "elmo_sst": FIXTURES / "sst" / "dev.txt",
}


@pytest.fixture(params=FILES)
def name(request: pytest.FixtureRequest, environment: pytest.MonkeyPatch) -> str:
    return request.param


def reader_of(name: str, **arguments: Any) -> DatasetReader:
    return DatasetReader.from_params(Params({"type": name, **arguments}))


def texts_of(instance: Instance) -> list[TextField]:
    fields = [field for field in instance.fields.values() if isinstance(field, TextField)]
    return fields + [
        text for field in instance.fields.values() if isinstance(field, ListField) for text in field
    ]


def words_of(instances: Iterable[Instance]) -> list[str]:
    return [
        repr([[token.text for token in text.tokens] for text in texts_of(instance)])
        for instance in instances
    ]


class TestEveryReader:
    def test_it_is_made_from_a_config(self, name):
        instances = list(
            reader_of(name, token_indexers={"x": {"type": "elmo"}}, max_instances=2).read(
                FILES[name]
            )
        )
        assert len(instances) == 2
        for text in (text for instance in instances for text in texts_of(instance)):
            assert isinstance(text.token_indexers["x"], ElmoTokenIndexer)
        (text, *_) = texts_of(next(iter(reader_of(name).read(FILES[name]))))
        assert isinstance(text.token_indexers["tokens"], SingleIdTokenIndexer)

    def test_workers_share_a_file_out(self, name):
        alone, parts = words_of(reader_of(name).read(FILES[name])), []
        for worker in range(3):
            reader = reader_of(name)
            reader._set_worker_info(WorkerInfo(3, worker))
            parts.append(words_of(reader.read(FILES[name])))
        assert sorted(words for part in parts for words in part) == sorted(alone)
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
