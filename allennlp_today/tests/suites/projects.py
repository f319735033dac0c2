"""
Runs the tests of public projects for AllenNLP with the installed packages, and prints how many
pass, as in the table in README.md of allennlp_today.

    python allennlp_today/tests/suites/projects.py FOLDER [NAME...]

FOLDER has the sources of the projects in `projects.txt`, each at its commit, in folders with names
like `owner+name`. What a project needs besides AllenNLP is installed next to them, without its own
dependencies. Transformers are stand-ins, and archives are trusted, as in `allennlp_suite.py`.
"""

import subprocess
import sys
from collections import Counter
from pathlib import Path

from allennlp_suite import HERE, results_of, run


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    (folder / "results").mkdir(exist_ok=True)
    if not (folder / "hub").exists():
        from stand_ins import write_stand_ins_of_projects

        write_stand_ins_of_projects(folder / "hub", folder)
    lines = (HERE / "projects.txt").read_text(encoding="utf-8").splitlines()
    for line in lines:
        name, commit, tests, packages = (field.strip() for field in line.split("|"))
        if line.startswith("#") or (len(sys.argv) > 2 and name not in sys.argv[2:]):
            continue
        log = folder / "results" / f"{name.replace('/', '+')}.jsonl"
        installed = folder / "packages" / name
        if packages and not installed.exists():
            options = ["--quiet", "--no-deps", "--target", str(installed)]
            command = [sys.executable, "-m", "pip", "install", *options, *packages.split()]
            subprocess.run(command, check=True, cwd=folder)
        if not log.exists():
            run(folder, name, tests.split() or ["."], log, (installed, folder / name))
        rows = results_of(log)
        counts = Counter(row["outcome"] for row in rows)
        print(
            f"{name} {commit}: {counts['passed']} of {counts.total()} pass, "
            f"{counts['skipped']} are skipped"
        )
        for row in rows:
            if row["outcome"] == "failed":
                print(f"    {row['test']}: {' '.join(row['error'].split())[:200]}")


if __name__ == "__main__":
    main()
