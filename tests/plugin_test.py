"""Tests of the module that AllenNLP imports."""

import re
import subprocess
import sys
from pathlib import Path

from allennlp.common import Registrable

import elmo_tasks.plugin

_REGISTERED = re.compile(r'^@(\w+)\.register\(\s*"([^"]+)"', re.MULTILINE)


class TestPlugin:
    def test_it_registers_all_our_classes(self):
        package = Path(elmo_tasks.plugin.__file__).parent
        expected = {
            (base, name, ".".join(("elmo_tasks", *path.relative_to(package).with_suffix("").parts)))
            for path in package.rglob("*.py")
            for base, name in _REGISTERED.findall(path.read_text(encoding="utf-8"))
        }
        bases = {base.__name__: base for base in Registrable.__subclasses__()}
        registered = {(base, name, bases[base].by_name(name).__module__) for base, name, _ in expected}
        assert ("Subcommand", "elmo-export", "elmo_tasks.commands.export") in expected
        assert registered == expected

    def test_loading_an_archive_from_python_finds_it(self, tmp_path):
        code = (
            "from allennlp.models import Model, load_archive\n"
            "try: load_archive('none.tar.gz')\nexcept FileNotFoundError: assert 'elmo_ner' in Model.list_available()"
        )
        subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
