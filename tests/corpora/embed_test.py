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

LINES = [
    "A dog barks .",
    "",
    "The  dog sleeps .",
    *(f"line {n} has words" for n in range(9)),
    "A dog barks .",
]
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
    assert embed_file(
        text, tmp_path / "out.h5", EmbedOptions(BILM, part_lines=4, **arguments), elmo=elmo
    ) == len(LINES)
    expected = elmo.embed([line.split() for line in LINES], **arguments)
    with h5py.File(tmp_path / "out.h5") as file:
        # In line order: 0, 1, 2, not 0, 1, 10.
        assert list(file)[: len(LINES)] == [str(index) for index in range(len(LINES))]
        # Programs for files of `allennlp elmo` take all members but one for arrays.
        assert list(file)[len(LINES) :] == ["sentence_to_index"]
        assert file.attrs["sentences"].tolist() == [" ".join(line.split()) for line in LINES]
        index = json.loads(file["sentence_to_index"].asstr()[0])
        assert index["The dog sleeps ."] == "2" and index["A dog barks ."] == str(len(LINES) - 1)
        for number, array in enumerate(expected):
            np.testing.assert_allclose(file[str(number)][()], array, atol=1e-6)
    assert not (tmp_path / "out.h5.parts").exists()


def test_parquet_has_the_vectors_of_embed(text, tmp_path, elmo):
    parquet = pytest.importorskip("pyarrow.parquet")
    embed_file(
        text, tmp_path / "out.parquet", EmbedOptions(BILM, part_lines=5, dtype="float16"), elmo=elmo
    )
    rows = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert [row["index"] for row in rows] == list(range(len(LINES)))
    for row, array in zip(rows, elmo.embed([line.split() for line in LINES]), strict=True):
        found = np.array(row["vectors"], np.float16).reshape(row["shape"])
        np.testing.assert_allclose(found, array, rtol=1e-3, atol=1e-6)


def test_a_folder_of_parquet_files_has_the_vectors_of_embed(text, tmp_path, elmo):
    pandas, dataset = pytest.importorskip("pandas"), pytest.importorskip("pyarrow.dataset")
    output = tmp_path / "out"
    for force in (False, True):
        embed_file(text, f"{output}/", EmbedOptions(BILM, part_lines=5), elmo=elmo, force=force)
        assert sorted(path.name for path in output.iterdir()) == [
            f"part-{n:08}.parquet" for n in range(3)
        ]
    expected = elmo.embed([line.split() for line in LINES])
    for rows in (
        pandas.read_parquet(output).to_dict("records"),
        dataset.dataset(output).to_table().to_pylist(),
    ):
        assert [row["index"] for row in rows] == list(range(len(LINES)))
        for row, line, array in zip(rows, LINES, expected, strict=True):
            assert row["sentence"] == " ".join(line.split())
            np.testing.assert_allclose(
                np.array(row["vectors"]).reshape(row["shape"]), array, atol=1e-6
            )
    with pytest.raises(FileExistsError):
        embed_file(text, f"{output}/", EmbedOptions(BILM), elmo=elmo)
    (output / "notes.txt").touch()
    before = set(output.iterdir())
    with pytest.raises(FileExistsError, match="notes"):
        embed_file(text, f"{output}/", EmbedOptions(BILM), elmo=elmo, force=True)
    assert set(output.iterdir()) == before


def interrupted_job(
    text: Path, output: Path, options: EmbedOptions, monkeypatch: pytest.MonkeyPatch, end=""
) -> None:
    """Runs a job that Ctrl-C interrupts after its first part."""
    elmo, parts = Elmo.from_pretrained(BILM), []

    def embed(*arguments, **keywords):
        if parts:
            raise KeyboardInterrupt
        parts.append(1)
        return Elmo.embed(elmo, *arguments, **keywords)

    monkeypatch.setattr(elmo, "embed", embed)
    with pytest.raises(KeyboardInterrupt, match="continues"):
        embed_file(text, f"{output}{end}", options, elmo=elmo)
    assert len(list(output.with_name(f"{output.name}.parts").glob("part-*"))) == 1


@pytest.mark.parametrize("end", ["", "/"])
def test_after_ctrl_c_only_missing_parts_are_computed(text, tmp_path, elmo, monkeypatch, end):
    options, output = EmbedOptions(BILM, part_lines=5), tmp_path / "out.h5"
    interrupted_job(text, output, options, monkeypatch, end)
    # Of a killed worker.
    (tmp_path / "out.h5.parts" / "_tmp-0123456789ab-part-00000001.parquet").touch()
    embedded = []
    monkeypatch.setattr(
        elmo,
        "embed",
        lambda part, **kwargs: embedded.extend(part) or Elmo.embed(elmo, part, **kwargs),
    )
    embed_file(text, f"{output}{end}", options, elmo=elmo)
    assert [" ".join(words) for words in embedded] == [" ".join(line.split()) for line in LINES[5:]]
    assert not end or [path.name for path in sorted(output.iterdir())] == [
        f"part-{n:08}.parquet" for n in range(3)
    ]
    with pytest.raises(FileExistsError, match=r"out\.h5 exists"):
        embed_file(text, f"{output}{end}", options, elmo=elmo)


@pytest.mark.parametrize("name", ["out.h5", "out.parquet", "out/"])
def test_the_target_of_a_link_is_written(text, tmp_path, elmo, name):
    target, link = tmp_path / "disk" / "target", tmp_path / name
    target.parent.mkdir()
    link.symlink_to(target)
    for force in (False, True):
        embed_file(text, f"{tmp_path}/{name}", EmbedOptions(BILM), elmo=elmo, force=force)
    assert link.is_symlink() and [path.name for path in target.parent.iterdir()] == ["target"]


def test_a_damaged_part_is_named_and_files_of_others_are_kept(text, tmp_path, elmo, monkeypatch):
    options, output = EmbedOptions(BILM, part_lines=5), tmp_path / "out.h5"
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
    def embed(*arguments, **keywords):
        for force in (False, True):
            with pytest.raises(BlockingIOError, match=r"another process.*out\.h5"):
                embed_file(text, tmp_path / "out.h5", EmbedOptions(BILM), force=force, elmo=elmo)
        return Elmo.embed(elmo, *arguments, **keywords)

    monkeypatch.setattr(elmo, "embed", embed)
    assert embed_file(text, tmp_path / "out.h5", EmbedOptions(BILM), elmo=elmo) == len(LINES)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.h5", text.name]


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ({"gamma": 2.0}, r"gamma was 1\.0, now 2\.0"),
        ({"tokenize": "de"}, "tokenize was"),
        ("a\n", "corpus was"),
    ],
)
def test_parts_of_a_different_job_are_refused_by_name(
    text, tmp_path, elmo, monkeypatch, changed, names
):
    output = tmp_path / "out.h5"
    interrupted_job(text, output, EmbedOptions(BILM, part_lines=5), monkeypatch)
    if isinstance(changed, str):
        text.write_text(changed)
    options = EmbedOptions(
        **{"bilm": BILM, "part_lines": 5, **(changed if isinstance(changed, dict) else {})}
    )
    with pytest.raises(ValueError, match=names):
        embed_file(text, output, options, elmo=elmo)
    assert embed_file(text, output, options, force=True, elmo=elmo) == len(
        text.read_text().splitlines()
    )
    assert not output.with_name("out.h5.parts").exists()


def test_cut_words_are_counted_in_one_line(tmp_path, elmo, caplog):
    (tmp_path / "text.txt").write_text(f"{'x' * 48} {'x' * 49}\n\n{'눈' * 17} a\n")
    embed_file(
        tmp_path / "text.txt", tmp_path / "out.h5", EmbedOptions(BILM, part_lines=1), elmo=elmo
    )
    # A biLM that reads characters instead of bytes cuts none of them here.
    of_characters = write_model(tmp_path / "model", max_characters=60)
    embed_file(tmp_path / "text.txt", tmp_path / "characters.h5", EmbedOptions(str(of_characters)))
    (message,) = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert message.startswith("2 words")


@pytest.mark.parametrize("is_alone", [True, False])
def test_an_error_names_its_text(text, tmp_path, elmo, monkeypatch, is_alone):
    def fail(sentences, **options):
        if ["The", "dog", "sleeps", "."] in sentences and (is_alone or len(sentences) > 1):
            raise ValueError("out of luck")
        return Elmo.embed(elmo, sentences, **options)

    monkeypatch.setattr(elmo, "embed", fail)
    place = "text 3$" if is_alone else "texts 1 to 5$"
    with pytest.raises(ValueError, match=rf"out of luck: .*text\.txt, {place}"):
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
    options, output = EmbedOptions(BILM, part_lines=5), tmp_path / "out.h5"
    interrupted_job(text, output, options, monkeypatch)
    job = tmp_path / "out.h5.parts" / "_job.json"
    settings = json.loads(job.read_text())
    earlier = {
        name: value for name, value in settings.items() if name not in ("sheet", "header_row")
    }
    assert len(settings) == len(earlier) + 2
    job.write_text(json.dumps(earlier))
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
    command = [
        "embed",
        str(tmp_path / "a.csv"),
        f"{tmp_path}/{name}",
        "--bilm",
        BILM,
        "--part-lines",
        "1",
    ]
    assert main([*command, "--text-column", "body", "--keep", "all"]) == 0
    expected = elmo.embed([["A", "dog", "barks", "."], []])
    documents, sentences = ["7", "2"], ["A dog barks .", ""]
    if name == "out.h5":
        with h5py.File(tmp_path / name) as file:
            assert file.attrs["documents"].tolist() == documents
            assert file.attrs["sentences"].tolist() == sentences
            assert list(map(json.loads, file.attrs["kept"])) == [{"year": "1999"}, {"year": "2000"}]
            arrays = [file[str(number)][()] for number in range(2)]
    else:
        table = pandas.read_parquet(tmp_path / name)
        assert [*table.columns] == ["index", "document", "year", "sentence", "shape", "vectors"]
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
    (tmp_path / "text.txt").write_bytes(content)
    with pytest.raises(ValueError, match=names):
        embed_file(
            tmp_path / "text.txt", tmp_path / output, EmbedOptions(**{"bilm": BILM, **options})
        )


def test_the_command_line(text, tmp_path, capsys):
    output = tmp_path / "out.h5"
    command = ["embed", str(text), str(output), "--bilm", BILM, "--layers", "all", "--weights"]
    assert main([*command[:-1], "--dtype", "float16"]) == 0
    assert f"{len(LINES)} lines" in capsys.readouterr().out
    with h5py.File(output) as file:
        assert file["0"].shape[:2] == (3, 4)
        assert file["0"].dtype == np.float16
