"""
Vectors and trained tasks work where Python lacks what only POSIX systems have, as on Windows, which
no machine here runs.
"""

import subprocess
import sys

import pytest

PROGRAM = """
import multiprocessing, os, signal, sys
# It has a lock for Windows, too; without `fcntl`, it would wait for files that other locks left.
import filelock
import torch  # It asks for the name of the system.

# Worker processes import this file, too.
sys.modules.update(dict.fromkeys(["fcntl", "grp", "pwd", "resource", "termios"]))
names_of_os = "fork forkpty getpgid getuid killpg mkfifo register_at_fork sched_getaffinity"
for module, names in (
    (os, names_of_os.split()),
    (signal, ["SIGALRM", "SIGHUP", "SIGKILL", "alarm", "setitimer"]),
):
    for name in names:
        delattr(module, name)
for method in ("fork", "forkserver"):
    del multiprocessing.context._concrete_contexts[method]

if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    import spacy
    from elmo_tasks import Elmo, TrainedTask
    from elmo_tasks.__main__ import main

    text = "Angela Merkel visited Paris ."
    print(Elmo.from_pretrained().embed([text.split()])[0].shape)
    print([entity["text"] for entity in TrainedTask("ner")(text)])
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo_ner")
    print([entity.text for entity in nlp(text).ents])
    with open("text.txt", "w", encoding="utf-8") as file:
        file.write(text)
    print(main(["embed", "text.txt", "vectors.h5", "--workers", "1"]))
    print(main(["annotate", "ner", "text.txt", "names.jsonl"]))
"""
EXPECTED = """(5, 256)
['Angela Merkel', 'Paris']
['Angela Merkel', 'Paris']
0
0
"""


@pytest.mark.weekly
def test_vectors_and_trained_tasks_need_nothing_of_posix(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    process = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True
    )
    lines = [line for line in process.stdout.splitlines() if not line.startswith("wrote ")]
    assert lines == EXPECTED.splitlines(), process.stderr
