from allennlp.common import Params
from allennlp.data import DatasetReader


def test_it_is_registered_and_has_the_options_of_the_text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("a e\N{COMBINING ACUTE ACCENT}\n\nd\n", encoding="utf-8")
    reader = DatasetReader.from_params(Params({"type": "elmo_lm", "nfc": True}))
    assert [instance["words"].metadata for instance in reader.read(path)] == [
        ["a", "\N{LATIN SMALL LETTER E WITH ACUTE}"],
        ["d"],
    ]
