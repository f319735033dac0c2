import json
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest

from elmo_tasks import Elmo
from elmo_tasks.__main__ import main
from elmo_tasks.corpora.embed import EmbedOptions, embed_file
from tests.bilm.many_langs.models import write_model
from tests.paths import TINY_BILM

LINES = ["A dog barks .", "", "The  dog sleeps ."]
LINES += [f"line {number} has words" for number in range(9)]
LINES += ["A dog barks ."]
WORDS = [line.split() for line in LINES]
SENTENCES = [" ".join(words) for words in WORDS]
BILM = str(TINY_BILM)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"layers": "all"},
        {"layers": 1, "gamma": 2.0},
        {"weights": (1.0, 0.0, 2.0)},
        {"pool": "max"},
    ],
)
def test_hdf5_has_the_vectors_of_embed(text, tmp_path, elmo, arguments):
    options = EmbedOptions(BILM, part_lines=4, **arguments)
    assert embed_file(text, tmp_path / "out.h5", options, elmo=elmo) == len(LINES)
    expected = elmo.embed(WORDS, **arguments)
    with h5py.File(tmp_path / "out.h5") as file:
        # In line order: 0, 1, 2, not 0, 1, 10.
        assert list(file)[: len(LINES)] == [str(number) for number in range(len(LINES))]
        # Programs for files of `allennlp elmo` take all members but one for arrays.
        assert list(file)[len(LINES) :] == ["sentence_to_index"]
        assert file.attrs["sentences"].tolist() == SENTENCES
        index = json.loads(file["sentence_to_index"].asstr()[0])
        assert index["The dog sleeps ."] == "2" and index["A dog barks ."] == str(len(LINES) - 1)
        for number, array in enumerate(expected):
            np.testing.assert_allclose(file[str(number)][()], array, atol=1e-6)
    assert not (tmp_path / "out.h5.parts").exists()


def test_parquet_has_the_vectors_of_embed(text, tmp_path, elmo):
    parquet = pytest.importorskip("pyarrow.parquet")
    options = EmbedOptions(BILM, part_lines=5, dtype="float16")
    embed_file(text, tmp_path / "out.parquet", options, elmo=elmo)
    rows = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert [row["index"] for row in rows] == list(range(len(LINES)))
    for row, expected in zip(rows, elmo.embed(WORDS), strict=True):
        vectors = np.array(row["vectors"], np.float16).reshape(row["shape"])
        np.testing.assert_allclose(vectors, expected, rtol=1e-3, atol=1e-6)


PARQUET_FILES = ["part-00000000.parquet", "part-00000001.parquet", "part-00000002.parquet"]


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_of_parquet_files_has_the_vectors_of_embed(text, tmp_path, elmo):
    pandas = pytest.importorskip("pandas")
    dataset = pytest.importorskip("pyarrow.dataset")
    output = tmp_path / "out"
    options = EmbedOptions(BILM, part_lines=5)
    for force in (False, True):
        embed_file(text, f"{output}/", options, elmo=elmo, force=force)
        assert names_in(output) == PARQUET_FILES
    expected = elmo.embed(WORDS)
    for rows in (
        pandas.read_parquet(output).to_dict("records"),
        dataset.dataset(output).to_table().to_pylist(),
    ):
        assert [row["index"] for row in rows] == list(range(len(LINES)))
        assert [row["sentence"] for row in rows] == SENTENCES
        for row, array in zip(rows, expected, strict=True):
            vectors = np.array(row["vectors"]).reshape(row["shape"])
            np.testing.assert_allclose(vectors, array, atol=1e-6)


def test_a_folder_with_other_files_is_kept(text, tmp_path, elmo):
    pytest.importorskip("pyarrow")
    output = tmp_path / "out"
    embed_file(text, f"{output}/", EmbedOptions(BILM), elmo=elmo)
    with pytest.raises(FileExistsError):
        embed_file(text, f"{output}/", EmbedOptions(BILM), elmo=elmo)
    (output / "notes.txt").touch()
    with pytest.raises(FileExistsError, match="notes"):
        embed_file(text, f"{output}/", EmbedOptions(BILM), elmo=elmo, force=True)
    assert names_in(output) == ["notes.txt", "part-00000000.parquet"]


def interrupted_job(
    text: Path, output: Path, options: EmbedOptions, monkeypatch: pytest.MonkeyPatch, end=""
) -> None:
    """Runs a job that Ctrl-C interrupts after its first part."""
    elmo = Elmo.from_pretrained(BILM)
    parts = []

    def embed(sentences, **options):
        if parts:
            raise KeyboardInterrupt
        parts.append(sentences)
        return Elmo.embed(elmo, sentences, **options)

    monkeypatch.setattr(elmo, "embed", embed)
    with pytest.raises(KeyboardInterrupt, match="continues"):
        embed_file(text, f"{output}{end}", options, elmo=elmo)
    assert len(list(output.with_name(f"{output.name}.parts").glob("part-*"))) == 1


@pytest.mark.parametrize("end", ["", "/"])
def test_after_ctrl_c_only_missing_parts_are_computed(text, tmp_path, elmo, monkeypatch, end):
    options = EmbedOptions(BILM, part_lines=5)
    output = tmp_path / "out.h5"
    interrupted_job(text, output, options, monkeypatch, end)
    # Of a killed worker.
    (tmp_path / "out.h5.parts" / "_tmp-0123456789ab-part-00000001.parquet").touch()
    embedded = []

    def embed(sentences, **options):
        embedded.extend(sentences)
        return Elmo.embed(elmo, sentences, **options)

    monkeypatch.setattr(elmo, "embed", embed)
    embed_file(text, f"{output}{end}", options, elmo=elmo)
    assert embedded == WORDS[5:]
    if end == "/":
        assert names_in(output) == PARQUET_FILES
    with pytest.raises(FileExistsError, match=r"out\.h5 exists"):
        embed_file(text, f"{output}{end}", options, elmo=elmo)


@pytest.mark.parametrize("name", ["out.h5", "out.parquet", "out/"])
def test_the_target_of_a_link_is_written(text, tmp_path, elmo, name):
    target = tmp_path / "disk" / "target"
    link = tmp_path / name
    target.parent.mkdir()
    link.symlink_to(target)
    for force in (False, True):
        embed_file(text, f"{tmp_path}/{name}", EmbedOptions(BILM), elmo=elmo, force=force)
    assert link.is_symlink() and names_in(target.parent) == ["target"]


def test_a_damaged_part_is_named_and_files_of_others_are_kept(text, tmp_path, elmo, monkeypatch):
    options = EmbedOptions(BILM, part_lines=5)
    output = tmp_path / "out.h5"
    interrupted_job(text, output, options, monkeypatch)
    part = tmp_path / "out.h5.parts" / "part-00000000.npz"
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    with pytest.raises(ValueError, match=r"part-00000000\.npz, .*remove it"):
        embed_file(text, output, options, elmo=elmo)
    (part.parent / "notes.txt").touch()
    with pytest.raises(FileExistsError, match="notes"):
        embed_file(text, output, options, elmo=elmo, force=True)
    assert part.exists()


def test_a_second_job_with_the_same_output_is_refused(text, tmp_path, elmo, monkeypatch):
    output = tmp_path / "out.h5"

    def embed(sentences, **options):
        for force in (False, True):
            with pytest.raises(BlockingIOError, match=r"another process.*out\.h5"):
                embed_file(text, output, EmbedOptions(BILM), force=force, elmo=elmo)
        return Elmo.embed(elmo, sentences, **options)

    monkeypatch.setattr(elmo, "embed", embed)
    assert embed_file(text, output, EmbedOptions(BILM), elmo=elmo) == len(LINES)
    assert names_in(tmp_path) == ["out.h5", text.name]


@pytest.mark.parametrize(
    ("new_text", "new_options", "message"),
    [
        (None, {"gamma": 2.0}, r"gamma was 1\.0, now 2\.0"),
        (None, {"tokenize": "de"}, "tokenize was"),
        ("a\n", {}, "corpus was"),
    ],
)
def test_parts_of_a_different_job_are_refused_by_name(
    text, tmp_path, elmo, monkeypatch, new_text, new_options, message
):
    output = tmp_path / "out.h5"
    interrupted_job(text, output, EmbedOptions(BILM, part_lines=5), monkeypatch)
    if new_text is not None:
        text.write_text(new_text)
    options = EmbedOptions(BILM, part_lines=5, **new_options)
    with pytest.raises(ValueError, match=message):
        embed_file(text, output, options, elmo=elmo)
    n_lines = len(text.read_text().splitlines())
    assert embed_file(text, output, options, force=True, elmo=elmo) == n_lines
    assert not output.with_name("out.h5.parts").exists()


def test_cut_words_are_counted_in_one_line(tmp_path, elmo, caplog):
    text = tmp_path / "text.txt"
    text.write_text(f"{'x' * 48} {'x' * 49}\n\n{'눈' * 17} a\n")
    embed_file(text, tmp_path / "out.h5", EmbedOptions(BILM, part_lines=1), elmo=elmo)
    # A biLM that reads characters instead of bytes cuts none of them here.
    bilm_of_characters = str(write_model(tmp_path / "model", max_characters=60))
    embed_file(text, tmp_path / "characters.h5", EmbedOptions(bilm_of_characters))
    (message,) = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert message.startswith("2 words")


@pytest.mark.parametrize("is_alone", [True, False])
def test_an_error_names_its_text(text, tmp_path, elmo, monkeypatch, is_alone):
    def fail(sentences, **options):
        if ["The", "dog", "sleeps", "."] in sentences and (is_alone or len(sentences) > 1):
            raise ValueError("out of luck")
        return Elmo.embed(elmo, sentences, **options)

    monkeypatch.setattr(elmo, "embed", fail)
    texts = "text 3$" if is_alone else "texts 1 to 5$"
    with pytest.raises(ValueError, match=rf"out of luck: .*text\.txt, {texts}"):
        embed_file(text, tmp_path / "out.h5", EmbedOptions(BILM, part_lines=5), elmo=elmo)


def test_a_limit_is_detected_before_anything_is_computed(text, tmp_path, elmo, monkeypatch):
    monkeypatch.setattr(elmo, "embed", None)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=1000))
    with pytest.raises(OSError, match=r"out\.h5"):
        embed_file(text, tmp_path / "out.h5", EmbedOptions(BILM), elmo=elmo)


def test_many_sentences_are_attributes_of_hdf5(tmp_path, elmo):
    """More than the 64 KB that attributes had in early versions of the format."""
    lines = [f"line {number}" for number in range(5000)]
    (tmp_path / "text.txt").write_text("\n".join(lines))
    options = EmbedOptions(BILM, pool="mean")
    assert embed_file(tmp_path / "text.txt", tmp_path / "out.h5", options, elmo=elmo) == len(lines)
    with h5py.File(tmp_path / "out.h5") as file:
        assert file.attrs["sentences"].tolist() == lines
        assert len(file) - 1 == len(lines)


@pytest.fixture
def limit_of_files():
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda n_bytes: resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("is_known_before", [True, False])
def test_a_limit_for_files_is_one_sentence(
    tmp_path, elmo, monkeypatch, limit_of_files, is_known_before
):
    long = "word " * 2000
    (tmp_path / "text.txt").write_text(f"{long}\nb\n")
    options = EmbedOptions(BILM, pool="mean", part_lines=1)
    if is_known_before:
        monkeypatch.setattr(elmo, "embed", None)
    limit_of_files(1_000 if is_known_before else 20_000)
    with pytest.raises(OSError, match=r"limit for files of .* bytes \(ulimit -f\), got .*out\.h5"):
        embed_file(tmp_path / "text.txt", tmp_path / "out.h5", options, elmo=elmo)
    assert not (tmp_path / "out.h5").exists()
    if not is_known_before:
        limit_of_files(10_000_000)
        monkeypatch.setattr(elmo, "embed", None)
        assert embed_file(tmp_path / "text.txt", tmp_path / "out.h5", options, elmo=elmo) == 2


def test_the_parts_of_an_earlier_release_are_used(text, tmp_path, elmo, monkeypatch):
    """It had fewer settings."""
    options = EmbedOptions(BILM, part_lines=5)
    output = tmp_path / "out.h5"
    interrupted_job(text, output, options, monkeypatch)
    job = tmp_path / "out.h5.parts" / "_job.json"
    settings = json.loads(job.read_text())
    del settings["sheet"]
    del settings["header_row"]
    job.write_text(json.dumps(settings))
    assert embed_file(text, output, options, elmo=elmo) == len(LINES)


@pytest.mark.parametrize(
    ("name", "content", "options", "sentences"),
    [
        (
            "a.conllu",
            "1\tquan trọng" + "\t_" * 8 + "\n2\t." + "\t_" * 8 + "\n",
            {},
            [["quan trọng", "."]],
        ),
        ("a.fasta", ">P1\nMK\nQ\n>P2\nA\n", {"tokenize": "letters"}, [["M", "K", "Q"], ["A"]]),
    ],
)
def test_words_and_letters_are_read_as_they_are(tmp_path, elmo, name, content, options, sentences):
    (tmp_path / name).write_text(content, encoding="utf-8")
    embed_file(tmp_path / name, tmp_path / "out.h5", EmbedOptions(BILM, **options), elmo=elmo)
    with h5py.File(tmp_path / "out.h5") as file:
        for number, array in enumerate(elmo.embed(sentences)):
            assert np.array_equal(file[str(number)][()], array)


@pytest.mark.parametrize("name", ["out.h5", "out.parquet", "out/"])
def test_rows_of_a_table_have_names_and_columns(tmp_path, elmo, name):
    pandas = pytest.importorskip("pandas")
    (tmp_path / "a.csv").write_text("ID;year;body\n7;1999;A dog  barks .\n;2000;\n")
    command = ["embed", f"{tmp_path}/a.csv", f"{tmp_path}/{name}", "--bilm", BILM]
    command += ["--part-lines", "1", "--text-column", "body", "--keep", "all"]
    assert main(command) == 0
    expected = elmo.embed([["A", "dog", "barks", "."], []])
    if name == "out.h5":
        with h5py.File(tmp_path / name) as file:
            assert file.attrs["documents"].tolist() == ["7", "2"]
            assert file.attrs["sentences"].tolist() == ["A dog barks .", ""]
            kept = [json.loads(columns) for columns in file.attrs["kept"]]
            assert kept == [{"year": "1999"}, {"year": "2000"}]
            arrays = [file[str(number)][()] for number in range(2)]
    else:
        table = pandas.read_parquet(tmp_path / name)
        columns = ["index", "document", "year", "sentence", "shape", "vectors"]
        assert list(table.columns) == columns
        assert table.iloc[:, :4].to_numpy().tolist() == [
            [0, "7", "1999", "A dog barks ."],
            [1, "2", "2000", ""],
        ]
        arrays = [np.array(row.vectors).reshape(row.shape) for row in table.itertuples()]
    for array, vectors in zip(arrays, expected, strict=True):
        np.testing.assert_allclose(array, vectors, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [{"workers": 2}, {"workers": 1, "ray": "local"}], ids=["processes", "ray"]
)
def test_workers_write_the_same_vectors(text, tmp_path, elmo, arguments):
    if "ray" in arguments:
        pytest.importorskip("ray")
    options = EmbedOptions(BILM, part_lines=3, device="cpu")
    embed_file(text, tmp_path / "one.h5", options, elmo=elmo)
    embed_file(text, tmp_path / "workers.h5", options, **arguments)
    assert (tmp_path / "one.h5").read_bytes() == (tmp_path / "workers.h5").read_bytes()


@pytest.mark.parametrize(
    ("content", "output", "options", "names"),
    [
        (b"a b\n\xff\n", "out.h5", {}, "line 2"),
        (b"a\n", "out.h5", {"bilm": "smal-open"}, "small-open"),
        (b"a\n", "out.h5", {"layers": 7}, "7"),
        (b"a\n", "out.h5", {"pool": "median"}, "median"),
        (b"a\n", "out.npz", {}, r"\.h5, \.hdf5, \.parquet, /"),
        (b"a\n", "out", {}, r"\.h5, \.hdf5, \.parquet, /"),
    ],
)
def test_an_error_names_bad_input(tmp_path, content, output, options, names):
    text = tmp_path / "text.txt"
    text.write_bytes(content)
    with pytest.raises(ValueError, match=names):
        embed_file(text, tmp_path / output, EmbedOptions(**{"bilm": BILM, **options}))


def test_the_command_line(text, tmp_path, capsys):
    output = tmp_path / "out.h5"
    command = ["embed", str(text), str(output), "--bilm", BILM, "--layers", "all"]
    assert main([*command, "--dtype", "float16"]) == 0
    assert f"{len(LINES)} lines" in capsys.readouterr().out
    with h5py.File(output) as file:
        assert file["0"].shape[:2] == (3, 4)
        assert file["0"].dtype == np.float16
