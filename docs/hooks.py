"""
Pages of the reference that are made from the code. mkdocs calls `on_files` at every build; `tests/docs` checks what the
pages hold.
"""

import argparse
import ast
import dataclasses
import inspect
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, is_typeddict
from unittest.mock import patch

__all__ = ["PAGES", "on_files", "parser_of"]

# Help texts are as wide as this, whatever the terminal; without colours, which Python has from 3.14 on.
_WIDTH = {"COLUMNS": "100", "NO_COLOR": "1", "PYTHON_COLORS": "0"}

# Pages of the API: their titles, and the modules whose `__all__` they show.
API = {
    "vectors": (
        "Vectors",
        [
            "elmo_tasks.vectors.elmo",
            "elmo_tasks.vectors.elmo_embedder",
            "elmo_tasks.vectors.sklearn_vectorizer",
            "elmo_tasks.vectors.spacy_component",
            "elmo_tasks.vectors.documents",
            "elmo_tasks.vectors.pretrained",
        ],
    ),
    "embed": ("Embed", ["elmo_tasks.embed"]),
    **{
        part: (title, [f"elmo_tasks.{part}"])
        for part, title in {
            "bilm": "BiLM",
            "modules": "Modules",
            "data": "Data",
            "models": "Models",
            "predictors": "Predictors",
            "training": "Training",
            "analysis": "Analysis",
        }.items()
    },
}


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages to those of the folder."""
    from mkdocs.structure.files import File

    for path, page in PAGES.items():
        files.append(File.generated(config, path, content=page()))
    return files


# --- Registered names


def registered_names() -> str:
    """Every class of ours in AllenNLP's registry: name, kind, class, and the first sentence of its docstring."""
    lines = [
        "# Registered names",
        "",
        'What a config can name as `"type"`, and the subcommands of `allennlp`. All are known once the package is',
        "installed. No name of AllenNLP's own is replaced.",
        "",
        "| name | kind | class | what it is |",
        "|---|---|---|---|",
    ]
    for name, kind, entry in sorted(registered(), key=lambda row: (row[1], row[0])):
        lines.append(f"| `{name}` | {kind} | {_linked(entry)} | {_cell(_first_sentence(entry))} |")
    lines += [
        "",
        'spaCy knows the pipeline component `elmo` (`nlp.add_pipe("elmo")`): see [spaCy](../vectors/spacy.md).',
        "",
    ]
    return "\n".join(lines)


def registered() -> Iterator[tuple[str, str, type]]:
    """Name, kind and class of what `elmo_tasks` registers."""
    from allennlp.common import Registrable

    import_module("elmo_tasks.plugin")
    for base, names in Registrable._registry.items():
        for name, (entry, _) in names.items():
            if entry.__module__.startswith("elmo_tasks."):
                yield name, base.__name__, entry


def _linked(entry: type) -> str:
    for page, (_, modules) in API.items():
        if entry.__name__ in {name for module in modules for name in import_module(module).__all__}:
            return f"[`{entry.__name__}`](api/{page}.md#{entry.__name__.lower()})"
    return f"`{entry.__module__}.{entry.__name__}`"


def _first_sentence(entry: type) -> str:
    paragraph = " ".join(inspect.cleandoc(entry.__doc__ or "").split("\n\n")[0].split())
    # Neither within code nor after the abbreviations that the docstrings have.
    sentence = re.match(r"(?:`[^`]*`|.)*?(?<!al)(?<!Eq)[.:](?=\s+[A-Z]|$)", paragraph)
    return (sentence[0] if sentence else paragraph).rstrip(":")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


# --- Commands


class _Parser(Exception):
    """Carries a parser out of a function that would only use it."""


def parser_of(main: Callable[..., Any]) -> argparse.ArgumentParser:
    """The parser that a `main` function makes and parses with."""

    def caught(self: argparse.ArgumentParser, *_: Any, **__: Any) -> Any:
        raise _Parser(self)

    with patch.object(argparse.ArgumentParser, "parse_args", caught), patch.object(sys, "argv", ["program"]):
        try:
            main()
        except _Parser as found:
            parser: argparse.ArgumentParser = found.args[0]
            return parser
    raise ValueError(f"{main} parses nothing")


def parsers() -> Iterator[argparse.ArgumentParser]:
    """One for each command of ours, and for its actions where it has some."""
    import_module("elmo_tasks.plugin")
    allennlp = _subparsers(parser_of(lambda: import_module("allennlp.commands").main(prog="allennlp")))
    commands = [parser for name, parser in sorted(allennlp.items()) if name.partition("-")[0] == "elmo"]
    own = _subparsers(parser_of(import_module("elmo_tasks.__main__").main))
    for parser in [*own.values(), *commands]:
        yield parser
        yield from _subparsers(parser).values()


def _subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    return {
        name: found
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for name, found in action.choices.items()
    }


def commands() -> str:
    """The help of every command."""
    lines = [
        "# Commands",
        "",
        "`python -m elmo_tasks` needs no AllenNLP; the subcommands of `allennlp` come with the plugin. Each ends with",
        "status 0, with 1 and one line after an error, and with 130 and one line after Ctrl-C; those of `allennlp`",
        "with 143 and one line after SIGTERM.",
        "",
    ]
    with patch.dict(os.environ, _WIDTH):
        for parser in parsers():
            lines += [f"## {parser.prog}", "", "```text", parser.format_help().rstrip(), "```", ""]
    return "\n".join(lines)


# --- Configs


def configs() -> str:
    """The arguments of the templates in `training_configs/lib`."""
    from elmo_tasks.shipped import TRAINING_CONFIGS

    lines = [
        "# Configs",
        "",
        "Every config in `training_configs/` is one call of a template in `training_configs/lib/`. A variant is a call",
        "with other arguments, in a file of your own next to ours:",
        "",
        "```jsonnet",
        "// training_configs/snli_top.jsonnet",
        "local snli = import 'lib/snli.libsonnet';",
        "snli(elmo_at=['input'], elmo={ layers: 'top', layer_norm: null })",
        "```",
        "",
        "| config | what it trains |",
        "|---|---|",
    ]
    for path in sorted(Path(TRAINING_CONFIGS).glob("*.jsonnet")):
        comment = re.match(r"((?://.*\n)+)", path.read_text(encoding="utf-8"))
        lines.append(f"| `{path.name}` | {_cell(_comment(comment[1]) if comment else '')} |")
    lines += [
        "",
        "Widths are computed from the arguments; no number stands in two places. Where a template departs from the",
        "paper, a comment begins with `Differs from the paper:`.",
        "",
    ]
    for path in sorted(Path(TRAINING_CONFIGS, "lib").glob("*.libsonnet")):
        arguments = list(template_arguments(path.read_text(encoding="utf-8")))
        if arguments:
            lines += [f"## {path.name}", "", "| argument | default | what it is |", "|---|---|---|"]
            lines += [
                f"| `{name}` | {f'`{_cell(default)}`' if default else 'required'} | {_cell(comment)} |"
                for name, default, comment in arguments
            ]
            lines.append("")
    return "\n".join(lines)


def template_arguments(text: str) -> Iterator[tuple[str, str, str]]:
    """Name, default and comment of the arguments of the last function of a file in jsonnetfmt's form."""
    found = re.search(r"^function\(\n(.*?)^\)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        return
    comment: list[str] = []
    for line in found[1].splitlines():
        if line.strip().startswith("//"):
            comment.append(line)
            continue
        argument = re.fullmatch(r"  (\w+)(?:=(.*))?,", line)
        if argument is None:
            raise ValueError(f"an argument must stand in one line, but one is {line!r}")
        yield argument[1], argument[2] or "", _comment("\n".join(comment))
        comment = []


def _comment(text: str) -> str:
    return " ".join(line.strip().removeprefix("//").strip() for line in text.splitlines())


# --- API


def api_page(page: str) -> str:
    """The public names of some modules, with their signatures and docstrings."""
    title, modules = API[page]
    lines = [f"# {title}", ""]
    for module in modules:
        for name in import_module(module).__all__:
            entry = getattr(import_module(module), name)
            if inspect.isclass(entry) or inspect.isfunction(entry):
                lines += _entry(entry, f"from {module} import {name}")
    return "\n".join(lines)


def _entry(entry: Any, import_line: str) -> list[str]:
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(entry))).body
    assert isinstance(tree, ast.ClassDef | ast.FunctionDef)
    lines = [f"## {tree.name}", "", "```text", import_line, *_signatures(tree, entry), "```", ""]
    lines += [rendered(ast.get_docstring(tree) or ""), ""]
    if isinstance(tree, ast.FunctionDef):
        return lines
    for method in tree.body:
        if isinstance(method, ast.FunctionDef) and not method.name.startswith("_") and ast.get_docstring(method):
            lines += [f"### {tree.name}.{method.name}", ""]
            if "property" not in {ast.unparse(decorator) for decorator in method.decorator_list}:
                lines += ["```text", _signature(method, method.name), "```", ""]
            lines += [rendered(ast.get_docstring(method) or ""), ""]
    return lines


def _signatures(tree: ast.ClassDef | ast.FunctionDef, entry: Any) -> list[str]:
    if isinstance(tree, ast.FunctionDef):
        return [_signature(tree, tree.name)]
    written = [method for method in tree.body if isinstance(method, ast.FunctionDef) and method.name == "__init__"]
    if not written and (dataclasses.is_dataclass(entry) or hasattr(entry, "_fields") or is_typeddict(entry)):
        return [_signature(_init_of_fields(tree), tree.name)]
    return [_signature(method, tree.name) for method in written]


def _init_of_fields(tree: ast.ClassDef) -> ast.FunctionDef:
    """The `__init__` that a dataclass, a named tuple or a typed dictionary has from its fields."""
    init = ast.parse("def __init__(self): pass").body[0]
    assert isinstance(init, ast.FunctionDef)
    for field in tree.body:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            init.args.args.append(ast.arg(field.target.id, field.annotation))
            if field.value is not None:
                init.args.defaults.append(field.value)
    return init


def _signature(function: ast.FunctionDef, name: str) -> str:
    """In one line where it fits, and otherwise an argument a line."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    shown = [
        _argument(given, default)
        for given, default in zip(positional, defaults, strict=True)
        if given.arg not in ("self", "cls")
    ]
    if arguments.vararg:
        shown.append(f"*{_argument(arguments.vararg, None)}")
    elif arguments.kwonlyargs:
        shown.append("*")
    shown += [
        _argument(given, default) for given, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    if arguments.kwarg:
        shown.append(f"**{_argument(arguments.kwarg, None)}")
    returns = f" -> {ast.unparse(function.returns)}" if function.returns and name != "__init__" else ""
    line = f"{name}({', '.join(shown)}){'' if returns == ' -> None' else returns}"
    if len(line) <= 100:
        return line
    inside = "".join(f"    {argument},\n" for argument in shown)
    return f"{name}(\n{inside}){'' if returns == ' -> None' else returns}"


def _argument(given: ast.arg, default: ast.expr | None) -> str:
    text = given.arg + (f": {ast.unparse(given.annotation)}" if given.annotation else "")
    if default is None:
        return text
    return f"{text}{' = ' if given.annotation else '='}{ast.unparse(default)}"


def rendered(docstring: str) -> str:
    """A docstring in AllenNLP's dialect (`# Parameters`, then a name and indented lines) as Markdown."""
    lines = docstring.splitlines()
    out: list[str] = []
    in_section = False
    for number, line in enumerate(lines):
        heading = re.fullmatch(r"# (\w[\w ]*)", line)
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if heading:
            in_section = True
            out += [f"**{heading[1]}**", ""]
        elif in_section and line and not line.startswith(" ") and following.startswith(" "):
            name, separator, rest = line.partition(" : ")
            name = name.removesuffix(" :").strip("`")
            out += ["", f"- `{name}`{f': {rest}' if separator else ''}", ""]
        else:
            out.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip()


PAGES: dict[str, Callable[[], str]] = {
    "reference/registered-names.md": registered_names,
    "reference/commands.md": commands,
    "reference/configs.md": configs,
    **{f"reference/api/{page}.md": (lambda page=page: api_page(page)) for page in API},
}
