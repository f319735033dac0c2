"""
Runs the tests of AllenNLP and allennlp-models 2.10.1 against the installed packages, and compares
the failures with `allennlp_suite.txt`, which gives a reason for each. It takes about an hour on two
cores, and continues where it was stopped.

    python allennlp_today/tests/suites/allennlp_suite.py FOLDER

FOLDER has the sources of both at v2.10.1, with the names `allennlp` and `allennlp-models`. Nothing
is downloaded: the transformers that the tests download are replaced by stand-ins. The tests also
need the packages in `allennlp_suite_requirements.txt`, and spaCy's en_core_web_sm.
"""

import argparse
import fnmatch
import json
import os
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from urllib3.util.retry import Retry

HERE = Path(__file__).resolve().parent
SOURCES = {"allennlp": "allennlp", "models": "allennlp-models"}
FILES_PER_CHUNK = 15
SECONDS_PER_TEST = 300
# Files and tests that are not run: the first download large models, and the last takes 40 seconds
# in each of 30 forms.
NOT_RUN = ("tests/training_config_test.py", "tests/pretrained_test.py")
ONE_OF_MANY = "test_train_model_distributed_with_gradient_accumulation"
COLUMNS = {
    "passed": "pass",
    "skipped": "skipped",
    "download": "need a download",
    "environment": "need a GPU, images or a large file",
    "stand-in": "compare with real weights",
    "detail": "test a detail of an old library",
    "broken": "broken by today's libraries",
    "unexpected": "unexpected",
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--only", default="*", help="run the chunks with names like this: 'allennlp-*', '*-coref-0'"
    )
    parser.add_argument(
        "--again", action="store_true", help="run again the chunks with unexpected failures"
    )
    arguments = parser.parse_args()
    work = arguments.folder.resolve() / "work"
    prepare(arguments.folder, work)
    expected = read_expected(HERE / "allennlp_suite.txt")
    for name in SOURCES:
        for chunk, files in chunks(work / name):
            log = work / "results" / f"{name}-{chunk}.jsonl"
            if not fnmatch.fnmatch(log.stem, arguments.only):
                continue
            if not log.exists() or (arguments.again and has_unexpected(log, expected)):
                run(work, name, files, log)
    results: dict[str, list[dict[str, Any]]] = {}
    for name in SOURCES:
        results[name] = []
        for log in sorted((work / "results").glob(f"{name}-*.jsonl")):
            results[name] += results_of(log)
    return report(results, expected)


def prepare(folder: Path, work: Path) -> None:
    """
    Copies the sources without the packages, so the tests import the installed ones, and writes the
    stand-ins.
    """
    for name, source in SOURCES.items():
        if not (work / name).exists():
            copy = work / f"{name}.part"
            shutil.copytree(folder / source, copy, dirs_exist_ok=True)
            package = copy / source.replace("-", "_")
            # Tests use the Perl scripts in the packages.
            for module in package.rglob("*.py"):
                module.unlink()
            copy.rename(work / name)
    if not (work / "hub").exists():
        from stand_ins import write_stand_ins

        shutil.rmtree(work / "hub.part", ignore_errors=True)
        write_stand_ins(work / "hub.part", work)
        (work / "hub.part").rename(work / "hub")
        # cached-path looks for models of the hub in its own folder.
        (work / "allennlp_cache").mkdir(exist_ok=True)
        (work / "allennlp_cache" / "cache").symlink_to(work / "hub")
    (work / "results").mkdir(exist_ok=True)


def chunks(source: Path) -> Iterator[tuple[str, list[str]]]:
    """
    The files of tests that run in one process: those of a folder, if they are few. With a name for
    each chunk.
    """
    files_in: dict[str, list[str]] = defaultdict(list)
    for path in sorted(source.glob("tests/**/*_test.py")):
        file = path.relative_to(source)
        folder = file.parts[1] if len(file.parts) > 2 else "top"
        if str(file) not in NOT_RUN:
            files_in[folder].append(str(file))
    for folder, files in files_in.items():
        for i in range(0, len(files), FILES_PER_CHUNK):
            yield f"{folder}-{i // FILES_PER_CHUNK}", files[i : i + FILES_PER_CHUNK]


def run(work: Path, name: str, files: list[str], log: Path, path: tuple[Path, ...] = ()) -> None:
    """Runs the tests in the files; `path` has folders with packages that are not installed."""
    print(f"{log.stem}: {files[0]} ... {files[-1]}", flush=True)
    part = log.with_suffix(".part")
    part.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "ALLENNLP_SUITE_LOG": str(part),
        "ALLENNLP_SRC_DIR": str(work / "allennlp"),
        "ALLENNLP_CACHE_ROOT": str(work / "allennlp_cache"),
        "CACHED_PATH_CACHE_ROOT": str(work / "cached_path"),
        "HF_HUB_CACHE": str(work / "hub"),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        # Tests start `python`.
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join(map(str, (HERE, *path))),
        "TOKENIZERS_PARALLELISM": "false",
        "WANDB_MODE": "offline",
    }
    options = ["-q", "--tb=no", "--continue-on-collection-errors", f"--timeout={SECONDS_PER_TEST}"]
    for plugin in ("allennlp_suite", "no:cacheprovider", "no:xdist", "no:hypothesispytest"):
        options += ["-p", plugin]
    with log.with_suffix(".txt").open("w") as output:
        # A process that ends without a word is found, because its tests are missing.
        subprocess.run(
            [sys.executable, "-m", "pytest", *options, *files],
            cwd=work / name,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
    part.touch()
    part.rename(log)


# What follows is the pytest plugin of the processes that run the tests.


def _write(result: dict[str, Any]) -> None:
    with open(os.environ["ALLENNLP_SUITE_LOG"], "a", encoding="utf-8") as file:
        file.write(json.dumps(result) + "\n")


def pytest_configure(config: Any) -> None:
    """Nothing can be downloaded, so nothing waits half a minute before it tries again."""
    Retry.sleep = lambda self, response=None: None  # type: ignore[method-assign]


def _trust_archives() -> None:
    """Their archives name any class, as the archives of AllenNLP's users do."""
    import torch  # noqa: F401

    from allennlp_today.import_hooks import after_import

    @after_import("allennlp.models.archival")
    def trust(archival: Any) -> None:
        archival.load_archive = partial(archival.load_archive, trusted=True)


if "ALLENNLP_SUITE_LOG" in os.environ:
    _trust_archives()


# Last, when those that a project's options leave out are gone.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """
    Keeps one form of the test that has many; writes the names first, so a test that ends the
    process is found.
    """
    forms = [item for item in items if ONE_OF_MANY in item.nodeid]
    for form in forms[1:]:
        items.remove(form)
    error = "the process ended, or the test was not reached"
    for item in items:
        _write({"test": item.nodeid, "outcome": "failed", "error": error})


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Iterator[None]:
    outcome = yield
    report = outcome.get_result()
    if report.when == "call" or report.outcome != "passed":
        error = "" if call.excinfo is None else f"{call.excinfo.typename}: {call.excinfo.value}"
        _write(
            {
                "test": item.nodeid,
                "outcome": report.outcome,
                "error": error[:1000],
                "seconds": report.duration,
            }
        )


def pytest_collectreport(report: Any) -> None:
    if report.failed:
        _write({"test": report.nodeid, "outcome": "failed", "error": str(report.longrepr)[-1000:]})


# What follows reads the results.


def results_of(log: Path) -> list[dict[str, Any]]:
    """The last line about each test; an error after its end is a failure too."""
    results: dict[str, dict[str, Any]] = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        result = json.loads(line)
        results[result["test"]] = result
    package, _, _ = log.stem.partition("-")
    return [{**result, "test": f"{package}/{test}"} for test, result in results.items()]


class Expected(NamedTuple):
    """Failures of tests, by a piece of their names."""

    column: str
    """Of the table."""
    names: str
    reason: str


def read_expected(path: Path) -> list[Expected]:
    expected = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            column, names, reason = line.split(maxsplit=2)
            expected.append(Expected(column, names, reason))
    return expected


def column_of(result: dict[str, Any], expected: list[Expected]) -> str:
    if result["outcome"] != "failed":
        return str(result["outcome"])
    for failures in expected:
        if failures.names in result["test"]:
            return failures.column
    return "unexpected"


def has_unexpected(log: Path, expected: list[Expected]) -> bool:
    return any(column_of(result, expected) == "unexpected" for result in results_of(log))


def report(results: dict[str, list[dict[str, Any]]], expected: list[Expected]) -> int:
    """Prints the table of README.md of allennlp_today, and each failure that has no reason."""
    print("| | " + " | ".join(["tests", *COLUMNS.values()]) + " |")
    print("|---" * (len(COLUMNS) + 2) + "|")
    total: Counter[str] = Counter()
    unexpected = []
    for name, rows in results.items():
        counts: Counter[str] = Counter()
        for row in rows:
            column = column_of(row, expected)
            counts[column] += 1
            if column == "unexpected":
                unexpected.append(row)
        cells = [SOURCES[name], f"{len(rows):,}", *(f"{counts[column]:,}" for column in COLUMNS)]
        print(f"| {' | '.join(cells)} |")
        total += counts
    n_decided = sum(total[column] for column in ("passed", "detail", "broken", "unexpected"))
    n_passed = total["passed"]
    print(
        f"\nOf {n_decided:,} tests that can be decided here, {n_passed:,} pass: "
        f"{n_passed / n_decided:.1%}."
    )
    for row in unexpected:
        print(f"unexpected: {row['test']}: {' '.join(row['error'].split())[:300]}")
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
