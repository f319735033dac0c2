import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from allennlp.data import Batch

from elmo_tasks.distillation import teacher
from elmo_tasks.distillation.soft_labels import soft_labels
from elmo_tasks.distillation.teacher import Teachers, read_part

TEXTS = ["The cat sat .", "Hello", "They like Paris very much today"]


@pytest.fixture
def archives(make_model, tmp_path, monkeypatch):
    """Makes the archives of teachers of a task, with other weights each."""

    def make(task, n_teachers=1):
        models = {}
        for number in range(n_teachers):
            made = make_model(task, [])
            torch.manual_seed(number)
            for parameter in made.model.parameters():
                torch.nn.init.normal_(parameter, std=0.5) if parameter.requires_grad else None
            path = tmp_path / f"teacher{number}.tar.gz"
            path.write_text(f"{task} {number}")
            models[str(path)] = SimpleNamespace(model=made.model, validation_dataset_reader=made.reader)
        monkeypatch.setattr(teacher, "load_archive", models.__getitem__)
        return models

    return make


@pytest.fixture
def text(tmp_path):
    file = tmp_path / "text.txt"
    file.write_text("\n".join(TEXTS))
    return file


def label(archives, text, folder, **options):
    teachers = Teachers(list(map(Path, archives)), torch.device("cpu"))
    return teachers.label(text, folder, **{"temperature": 2.0, **options})


def parts(folder):
    return [each for file in sorted(folder.iterdir()) for each in read_part(file)]


class TestTeachers:
    def test_each_text_has_the_mean_of_the_teachers(self, archives, text, tmp_path):
        """Oracle: each model on each sentence alone; within the three digits of the file."""
        models = archives("ner", 2)
        n_texts, _ = label(models, text, tmp_path / "out", batch_size=2)
        assert n_texts == 3
        found = parts(tmp_path / "out")
        assert [each.text for each in found] == [[line.split()] for line in TEXTS]
        for each in found:
            alone = []
            for made in models.values():
                instance = made.validation_dataset_reader.text_to_instance(*each.text)
                made.validation_dataset_reader.apply_token_indexers(instance)
                batch = Batch([instance])
                batch.index_instances(made.model.vocab)
                alone.append(soft_labels(made.model, batch.as_tensor_dict(), 2.0))
            for name in ("logits", "probabilities"):
                expected = torch.stack([getattr(of_one, name) for of_one in alone]).mean(0).detach().numpy()
                np.testing.assert_allclose(getattr(each, name), expected, rtol=2e-3, atol=2e-3)

    def test_a_tagger_without_a_crf_has_a_softmax_for_each_word(self, archives, text, tmp_path):
        """Oracle: the softmax of the logits in the file, within its three digits."""
        (made,) = (models := archives("pos_tagger")).values()
        label(models, text, tmp_path / "out", temperature=2.0)
        n_labels = made.model.vocab.get_vocab_size("labels")
        for each in parts(tmp_path / "out"):
            assert each.logits.shape == (len(each.text[0]), n_labels)
            expected = torch.from_numpy(each.logits).float().div(2.0).softmax(-1)
            np.testing.assert_allclose(each.probabilities, expected, atol=5e-3)

    def test_a_model_of_texts_has_a_row_for_each(self, archives, text, tmp_path):
        """Oracle: the shape."""
        models = archives("snli")
        assert label(models, text, tmp_path / "out")[0] == 2
        found = parts(tmp_path / "out")
        assert [each.text for each in found] == [TEXTS[:2], TEXTS[1:]]
        assert all(each.probabilities.shape == (3,) for each in found)

    def test_what_is_there_is_kept(self, archives, text, tmp_path, monkeypatch):
        """Oracle: the number of parts that are computed: all, none, the damaged one, and those of other texts."""
        monkeypatch.setattr(teacher, "_TEXTS_PER_PART", 1)
        models = archives("ner")
        computed = []
        original = Teachers._compute
        monkeypatch.setattr(
            Teachers, "_compute", lambda self, part, *args: computed.append(part) or original(self, part, *args)
        )
        folder = tmp_path / "out"
        _, digest = label(models, text, folder)
        assert len(computed) == 3
        assert label(models, text, folder)[1] == digest
        assert len(computed) == 3
        (folder / "part-00001.npz").write_bytes((folder / "part-00001.npz").read_bytes()[:-30])
        assert label(models, text, folder)[1] == digest
        assert computed[3:] == [[[TEXTS[1].split()]]]
        assert label(models, text, folder, temperature=1.0)[1] != digest
        assert len(computed) == 7
        text.write_text(f"{TEXTS[0]}\nanother\n")
        assert label(models, text, folder, temperature=1.0)[0] == 2
        assert computed[7:] == [[[["another"]]]]
        # The third is kept for a call that has all of the text again.
        assert len(list(folder.iterdir())) == 3

    def test_teachers_with_other_labels_are_an_error(self, archives, make_model, text, tmp_path):
        """Oracle: the message names the archives and the labels."""
        models = archives("snli", 2)
        (path := list(models)[1])
        models[path].model.vocab._index_to_token["labels"][0] = "other"
        with pytest.raises(ValueError, match=r"the same labels, but .*teacher0.* has .*, and .*teacher1.* has .*other"):
            label(models, text, tmp_path / "out")

    def test_a_teacher_that_is_there_twice_is_an_error(self, archives, text, tmp_path):
        """Oracle: the message, for one file with two names; two models of one size are two."""
        first, second = archives("snli", 2)
        shutil.copy(first, tmp_path / "copy")
        with pytest.raises(ValueError, match=rf"but {tmp_path}/copy is the same as .*teacher0.*: name it once"):
            label([first, second, tmp_path / "copy"], text, tmp_path / "out")
        path = Path(first)
        with pytest.raises(ValueError, match="is the same as"):
            Teachers([path, path], torch.device("cpu"))

    def test_a_teacher_of_another_task_is_an_error(self, archives, text, tmp_path):
        """Oracle: the message."""
        with pytest.raises(ValueError, match="but one is a SemanticRoleLabeler"):
            label(archives("srl"), text, tmp_path / "out")


class TestReadPart:
    def test_a_damaged_part_is_an_error(self, tmp_path):
        """Oracle: the message names the file."""
        (tmp_path / "part-00000.npz").write_bytes(b"damaged")
        with pytest.raises(ValueError, match=r"part-00000\.npz must be what a teacher has said .*, but is damaged"):
            list(read_part(tmp_path / "part-00000.npz"))

    def test_a_part_that_says_to_be_compressed_in_an_unknown_way_is_made_again(self, archives, text, tmp_path):
        """Oracle: its bytes, before and after."""
        models = archives("ner")
        label(models, text, tmp_path / "teacher")
        (part,) = (tmp_path / "teacher").iterdir()
        whole = part.read_bytes()
        # The number of the method is 10 bytes after the beginning of an entry of the directory.
        place = whole.rindex(b"PK\x01\x02") + 10
        part.write_bytes(whole[:place] + b"\x63" + whole[place + 1 :])
        label(models, text, tmp_path / "teacher")
        assert part.read_bytes() == whole
