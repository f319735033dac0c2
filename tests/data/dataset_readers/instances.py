"""What is in the fields of an instance."""

from pathlib import Path

from allennlp.data import DatasetReader, Field, Instance

TaggedWords = tuple[list[str], list[str] | None]


def words_in(text: Field) -> list[str]:
    """Of a `TextField`."""
    return [token.text for token in text.tokens]


def label_of(instance: Instance) -> str | None:
    if "label" not in instance.fields:
        return None
    return instance["label"].label


def tags_of(instance: Instance) -> list[str] | None:
    if "tags" not in instance.fields:
        return None
    return list(instance["tags"].labels)


def tagged_words(instance: Instance) -> TaggedWords:
    words = words_in(instance["tokens"])
    assert instance["metadata"].metadata["words"] == words
    return words, tags_of(instance)


def write(path: Path, content: str | bytes) -> str:
    """Writes a file with its line ends as they are."""
    if isinstance(content, str):
        content = content.encode()
    path.write_bytes(content)
    return str(path)


def read_tagged(reader: DatasetReader, path: Path, content: str | bytes) -> list[TaggedWords]:
    return list(map(tagged_words, reader.read(write(path, content))))
