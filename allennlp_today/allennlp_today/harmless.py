"""
What an archive that is not trusted may name: classes, arguments and strings.

The lists are data: `harmless.toml` for AllenNLP, and for plugins and other packages their dictionary `HARMLESS`, with
the same tables. `check_config` walks a config as AllenNLP would build it, along the registry and the annotations of the
constructors, and raises a `ConfigurationError` before anything is built.
"""

import re
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from allennlp.common import Lazy, Params, Registrable
from allennlp.common.checks import ConfigurationError
from allennlp.common.from_params import infer_constructor_params
from allennlp.common.params import remove_keys_from_params
from allennlp.data import DatasetReader, Vocabulary
from allennlp.data.data_loaders import DataLoader
from allennlp.evaluation import Evaluator
from allennlp.models import Model
from spacy.util import is_package

from allennlp_today.entry_points import entry_points

__all__ = ["check_config", "harmless_classes", "is_inside", "listed"]

# A repository on the hub, and a pipeline of spaCy. Neither can be a path or an address.
_REPOSITORY = re.compile(r"(?!\.)[\w.-]+(/(?!\.)[\w.-]+)?")
_PIPELINE = re.compile(r"\w+")

# What `load_archive` builds, and from `data_loader` on what `allennlp evaluate` builds after it.
_BUILT = {
    "dataset_reader": DatasetReader,
    "validation_dataset_reader": DatasetReader,
    "model": Model,
    "data_loader": DataLoader,
    "validation_data_loader": DataLoader,
    "evaluation": Evaluator,
}

_Table = Mapping[str, Any]


@cache
def listed() -> _Table:
    """The tables of `harmless.toml`."""
    return tomllib.loads(Path(__file__).with_name("harmless.toml").read_text("utf-8"))


def harmless_classes() -> list[_Table]:
    """The tables of plugins, and of packages and modules with registered classes, and then AllenNLP's."""
    modules = [entry.load() for entry in entry_points("allennlp.plugins")]
    of_classes = {cls.__module__ for names in Registrable._registry.values() for cls, _ in names.values()}
    of_classes |= {name.partition(".")[0] for name in of_classes}
    modules += [sys.modules[name] for name in sorted(of_classes) if name in sys.modules]
    tables = [getattr(module, "HARMLESS", None) for module in modules]
    return [*filter(None, tables), listed()]


def check_config(config: Mapping[str, Any], folder: Path) -> None:
    """
    Raises a `ConfigurationError` if a part of the config that `load_archive` or `allennlp evaluate` builds names
    anything that is not listed. `folder` has the files of the archive.
    """
    walk = _Walk(folder, harmless_classes())
    copy = Params(dict(config)).duplicate()
    # As AllenNLP does, before it builds the model of an archive.
    remove_keys_from_params(copy.get("model", None))
    parts: dict[str, Any] = copy.as_dict(quiet=True)
    vocabulary = parts.get("vocabulary", {})
    try:
        # Of the vocabulary, only the class and two strings are used.
        walk.found(Vocabulary, vocabulary, "vocabulary")
        for key in ("padding_token", "oov_token"):
            walk.argument(vocabulary.get(key), str, f"vocabulary.{key}", listed())
        for name, base in _BUILT.items():
            walk.argument(parts.get(name), base, name, listed())
    except _MismatchError as error:
        raise ConfigurationError(str(error)) from None


class _MismatchError(Exception):
    """A value that does not have the type of an annotation, which may be one of several in a `Union`."""


class _Found(NamedTuple):
    cls: type
    constructor: Any
    table: _Table
    entry: Any
    is_named: bool


class _Walk:
    """Checks values of a config against annotations. `place` is where they are, such as `model.encoder`."""

    def __init__(self, folder: Path, tables: Sequence[_Table]) -> None:
        self._folder, self._tables = folder, tables

    def argument(self, value: Any, annotation: Any, place: str, table: _Table) -> None:
        """Checks an argument, or a part of one; `table` belongs to the class that takes it."""
        origin, args = get_origin(annotation), get_args(annotation)
        if value is None:
            return
        if isinstance(value, Mapping) and "_pretrained" in value:
            raise _refusal("no module of a different archive", place)
        if origin is Union:
            self._one_of(value, args, place, table)
        elif origin is Lazy:
            self.argument(value, args[0], place, table)
        elif isinstance(annotation, type) and hasattr(annotation, "from_params"):
            self._built(value, annotation, place)
        elif isinstance(origin, type) and issubclass(origin, Iterable) and args and args[-1] is not Any:
            if issubclass(origin, Mapping):
                items = list(_typed(value, Mapping, "a dictionary", place).values())
            else:
                items = _typed(value, list, "a list", place)
            is_pair = origin is tuple and args[-1] is not ...
            kinds = args if is_pair else [args[0 if origin is tuple else -1]] * len(items)
            if len(kinds) != len(items):
                raise _MismatchError(f"expected {len(kinds)} values, got {len(items)}: {place}")
            for each, kind in zip(items, kinds, strict=True):
                self.argument(each, kind, place, table)
        elif annotation in (bool, int, float):
            _typed(value, int | float, annotation.__name__, place)
        elif origin is Literal:
            if value not in args:
                raise _MismatchError(f"expected one of {args}, got {value!r:.100}: {place}")
        elif not isinstance(value, int | float):
            self._words(value, place, table)

    def found(self, base: type, value: Any, place: str) -> _Found:
        """The class that AllenNLP would build for an annotation, if it is listed."""
        if registered := Registrable._registry.get(base):
            default: Any = base.default_implementation
            name = _typed(value, Mapping, f"a {base.__name__}", place).get("type", default)
            for table in self._tables:
                if isinstance(name, str) and name in registered and name in table.get(base.__name__, {}):
                    cls, constructor = registered[name]
                    method = getattr(cls, constructor) if constructor else cls.__init__
                    return _Found(cls, method, table, table[base.__name__][name], True)
            known = "listed" if str(name) in registered else "registered"
            raise _refusal(f"a {known} {base.__name__}, got {name!r:.100}", place)
        for name, kind in [(base.__name__, "FromParams"), *_names_of(base)]:
            for table in self._tables:
                if name in table.get(kind, {}):
                    return _Found(base, base.__init__, table, table[kind][name], False)  # type: ignore[misc]
        raise _refusal(f"a listed class, got {base.__name__}", place)

    def _built(self, value: Any, base: type, place: str) -> None:
        """Checks what AllenNLP would build an object from: the name of a class, or a dictionary of arguments."""
        value = {"type": value} if isinstance(value, str) else _typed(value, Mapping, f"a {base.__name__}", place)
        found = self.found(base, value, place)
        parameters: dict[str, Any] = dict(infer_constructor_params(found.cls, found.constructor))
        if isinstance(found.entry, Mapping):
            other, name = found.entry["passes_to"]
            passed_to = self.found(_base_named(other), {"type": name}, place)
            parameters |= infer_constructor_params(passed_to.cls, passed_to.constructor)
        unknown = []
        for name, argument in value.items():
            parameter = parameters.get(name)
            if parameter is not None and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                self.argument(argument, parameter.annotation, f"{place}.{name}", found.table)
            elif any(name in listed()["old_arguments"].get(each.__name__, ()) for each in (found.cls, base)):
                if not isinstance(argument, int) and argument not in ("IOB1", "BIOUL"):
                    raise _refusal(f"a number or a coding scheme, got {argument!r:.100}", f"{place}.{name}")
            elif name != "type" or not found.is_named:
                unknown.append(name)
        # They would be passed on to a library, or are the arguments of a different class.
        if unknown:
            raise _MismatchError(f"expected arguments of {found.cls.__name__}, got {unknown[0]!r:.100}: {place}")

    def _one_of(self, value: Any, annotations: Sequence[Any], place: str, table: _Table) -> None:
        """AllenNLP builds the first that it can, so all that fit must be listed."""
        mismatches = []
        annotations = [annotation for annotation in annotations if annotation is not type(None)]
        for annotation in annotations:
            try:
                self.argument(value, annotation, place, table)
            except _MismatchError as error:
                mismatches.append(error)
        if len(mismatches) == len(annotations):
            raise mismatches[-1]

    def _words(self, value: Any, place: str, table: _Table) -> None:
        """Checks what has no type by the name of its argument: strings, and dictionaries for libraries."""
        argument = place.rpartition(".")[2]
        kind = table.get("arguments", {}).get(argument) or listed()["arguments"].get(argument)
        if kind is None:
            raise _refusal(f"a listed argument, got {argument} = {value!r:.100}", place)
        if kind == "data":
            return
        if isinstance(kind, list):
            passed_on = value if isinstance(value, Mapping) else {str(value): value}
            unknown = [name for name, each in passed_on.items() if name not in kind or isinstance(each, Mapping)]
            if unknown:
                raise _refusal(f"one of the listed words, got {unknown[0]!r:.100}", place)
        elif isinstance(value, list):
            for each in value:
                self.argument(each, str, place, table)
        elif not isinstance(value, str):
            raise _refusal(f"a string, got {value!r:.100}", place)
        elif kind == "path" and not is_inside(value, self._folder):
            raise _refusal(f"a file in the archive, got {value!r:.200}", place)
        elif kind == "transformer" and (not _REPOSITORY.fullmatch(value) or Path(value).exists()):
            raise _refusal(f"the name of a repository, and no local path, got {value!r:.200}", place)
        elif kind == "spacy" and not (_PIPELINE.fullmatch(value) and is_package(value)):
            raise _refusal(f"an installed pipeline of spaCy, got {value!r:.200}", place)


def is_inside(path: Any, folder: Path) -> bool:
    """Whether something is the local path of a file in a folder."""
    text = str(path)
    return "://" not in text and "\0" not in text and Path(text).resolve().is_relative_to(folder)


def _refusal(message: str, place: str) -> ConfigurationError:
    return ConfigurationError(f"expected {message}: {place}")


def _typed(value: Any, kind: Any, name: str, place: str) -> Any:
    if not isinstance(value, kind):
        raise _MismatchError(f"expected {name}, got {value!r:.100}: {place}")
    return value


def _base_named(name: str) -> type:
    return next(base for base in Registrable._registry if base.__name__ == name)


def _names_of(cls: type) -> list[tuple[str, str]]:
    """The registered names of a class, each with the name of its base class."""
    registry = Registrable._registry.items()
    return [(name, base.__name__) for base, names in registry for name, (each, _) in names.items() if each is cls]
