"""
Compares the config of an archive that is not trusted with the lists of what is harmless, before
anything is built.

The walk follows a config as AllenNLP would build it, along the registry and the annotations of the
constructors. A class may be built if it is listed, or if it comes from the user's own code: it was
registered before the archive was opened, by a package of which nothing is listed. Arguments have
the types of their annotations, and strings, numbers and paths are listed by the names of their
arguments.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from inspect import Parameter
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from allennlp.common import FromParams, Lazy, Params, Registrable
from allennlp.common.checks import ConfigurationError
from allennlp.common.from_params import infer_constructor_params
from allennlp.common.params import remove_keys_from_params
from allennlp.data import DatasetReader, Vocabulary
from allennlp.data.data_loaders import DataLoader
from allennlp.evaluation import Evaluator
from allennlp.models import Model

from allennlp_today.trust.allowed import (
    Table,
    Tables,
    harmless_tables,
    harmless_toml,
    machine_arguments,
)

__all__ = ["PARTS", "harmless_config", "is_inside"]

# A repository on the hub, and a pipeline of spaCy. Neither can be a path or an address.
_REPOSITORY = re.compile(r"(?!\.)[\w.-]+(/(?!\.)[\w.-]+)?")
_PIPELINE = re.compile(r"\w+")
# What could be a path, an address, or a second line.
_NOT_A_WORD = re.compile(r"[/\\~\x00-\x1f\x7f]|\.\.")

PARTS = {
    "dataset_reader": DatasetReader,
    "validation_dataset_reader": DatasetReader,
    "model": Model,
    "data_loader": DataLoader,
    "validation_data_loader": DataLoader,
    "evaluation": Evaluator,
}
"""
What `load_archive` builds, and from `data_loader` on what `allennlp evaluate` builds after it.
"""

_VARIABLE = (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
# Of the classes that are not listed, because they are the user's. It is recognised by identity.
_TABLE_OF_USER_CLASSES: Table = {}


def harmless_config(config: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """
    A copy of a config in which the arguments that a class would run as a command are null. Raises
    a `ConfigurationError` if a part that `load_archive` or `allennlp evaluate` builds names
    anything that is not listed. `folder` has the files of the archive.
    """
    copy = Params(dict(config)).duplicate()
    # As AllenNLP does, before it builds the model of an archive.
    remove_keys_from_params(copy.get("model", None))
    parts: dict[str, Any] = copy.as_dict(quiet=True)
    walk = _Walk(folder, harmless_tables())
    vocabulary = parts.get("vocabulary", {})
    try:
        # Of the vocabulary, only the class and two strings are used.
        walk.class_for(Vocabulary, vocabulary, "vocabulary")
        for key in ("padding_token", "oov_token"):
            walk.check_argument(vocabulary.get(key), str, f"vocabulary.{key}", harmless_toml())
        for name, base in PARTS.items():
            walk.check_argument(parts.get(name), base, name, harmless_toml())
    except _MismatchError as error:
        raise ConfigurationError(str(error)) from None
    return parts


class _MismatchError(Exception):
    """
    A value that does not have the type of an annotation, which may be one of several in a `Union`.
    """


@dataclass(frozen=True)
class _AllowedClass:
    """A class that may be built."""

    cls: type
    constructor: Any
    table: Table
    """The table that lists the class and the names of its arguments."""
    entry: Any
    """What the table says about the class: a reason, or a dictionary with one."""
    has_type: bool
    """Whether `type` in the config is its registered name."""


class _Walk:
    """
    Checks values of a config against annotations. `location` is where they are, such as
    `model.encoder`.
    """

    def __init__(self, folder: Path, tables: Tables) -> None:
        self._folder = folder
        self._packages_with_tables = tables.keys()
        self._tables: list[Table] = []
        for declared in tables.values():
            self._tables += [table for table in declared if table not in self._tables]
        self._machine = machine_arguments(tables)

    def check_argument(self, value: Any, annotation: Any, location: str, table: Table) -> None:
        """Checks an argument, or a part of one; `table` belongs to the class that takes it."""
        if value is None:
            return
        origin = get_origin(annotation)
        args = get_args(annotation)
        if isinstance(value, Mapping) and "_pretrained" in value:
            raise _refusal("no module of a different archive", location)
        if origin is Union:
            self._check_union(value, args, location, table)
        elif origin is Lazy:
            self.check_argument(value, args[0], location, table)
        elif isinstance(annotation, type) and hasattr(annotation, "from_params"):
            self._check_object(value, annotation, location)
        elif _has_items(origin) and args and args[-1] is not Any:
            self._check_items(value, origin, args, location, table)
        elif annotation in (bool, int, float):
            _of_type(value, int | float, annotation.__name__, location)
            self._check_number(value, location, table)
        elif origin is Literal:
            if value not in args:
                raise _MismatchError(f"expected one of {args}, got {value!r:.100}: {location}")
        elif annotation is str and not isinstance(value, str):
            raise _MismatchError(f"expected a string, got {value!r:.100}: {location}")
        elif isinstance(value, int | float):
            self._check_number(value, location, table)
        elif table is _TABLE_OF_USER_CLASSES:
            self._check_for_user_class(value, location)
        else:
            self._check_by_name(value, location, table)

    def class_for(self, base: type, value: Any, location: str) -> _AllowedClass:
        """The class that AllenNLP would build for an annotation, if it may be built."""
        if Registrable._registry.get(base):
            return self._registered_class(base, value, location)
        constructor = base.__init__  # type: ignore[misc]
        for base_name, name in [("FromParams", base.__name__), *_names_of(base)]:
            for table in self._tables:
                entries = table.get(base_name, {})
                if name in entries:
                    return _AllowedClass(base, constructor, table, entries[name], has_type=False)
        if self._is_of_the_user(base):
            return _AllowedClass(base, constructor, _TABLE_OF_USER_CLASSES, "", has_type=False)
        raise _refusal(f"a listed class, got {base.__name__}", location)

    def _registered_class(self, base: Any, value: Any, location: str) -> _AllowedClass:
        """The class that a config names by its `type`."""
        arguments = _of_type(value, Mapping, f"a {base.__name__}", location)
        name = arguments.get("type", base.default_implementation)
        registered = Registrable._registry[base]
        if not isinstance(name, str) or name not in registered:
            raise _refusal(f"a registered {base.__name__}, got {name!r:.100}", location)
        cls, constructor_name = registered[name]
        constructor = getattr(cls, constructor_name or "__init__")
        for table in self._tables:
            entries = table.get(base.__name__, {})
            if name in entries:
                return _AllowedClass(cls, constructor, table, entries[name], has_type=True)
        if self._is_of_the_user(cls):
            return _AllowedClass(cls, constructor, _TABLE_OF_USER_CLASSES, "", has_type=True)
        raise _refusal(f"a listed {base.__name__}, got {name!r:.100}", location)

    def _is_of_the_user(self, cls: type) -> bool:
        """
        Whether a class is of code that runs already, and is built along the annotations of its
        constructor. The walk itself imports nothing, and nothing has been imported that the archive
        names.
        """
        package = cls.__module__.partition(".")[0]
        if package in self._packages_with_tables:
            return False
        method = getattr(cls, "from_params", None)
        return getattr(method, "__func__", None) is FromParams.from_params.__func__

    def _check_object(self, value: Any, base: type, location: str) -> None:
        """
        Checks what AllenNLP would build an object from: the name of a class, or a dictionary of
        arguments. In the dictionary, sets the arguments that the table requires for the class.
        """
        if isinstance(value, str):
            arguments: dict[str, Any] = {"type": value}
        else:
            arguments = _of_type(value, dict, f"a {base.__name__}", location)
        allowed = self.class_for(base, arguments, location)
        parameters: dict[str, Any] = {}
        parameters |= infer_constructor_params(allowed.cls, allowed.constructor)
        if isinstance(allowed.entry, Mapping) and "passes_to" in allowed.entry:
            base_name, other_name = allowed.entry["passes_to"]
            passed_to = self.class_for(_base_named(base_name), {"type": other_name}, location)
            parameters |= infer_constructor_params(passed_to.cls, passed_to.constructor)
        unknown = []
        for name, argument in arguments.items():
            parameter = parameters.get(name)
            if parameter is not None and parameter.kind not in _VARIABLE:
                inner_location = f"{location}.{name}"
                self.check_argument(argument, parameter.annotation, inner_location, allowed.table)
            elif name != "type" or not allowed.has_type:
                unknown.append(name)
        # Afterwards, because a mismatch lets AllenNLP try a different class, and a refusal does
        # not.
        for name in unknown:
            self._check_unknown_argument(name, arguments[name], allowed.cls, base, location)
        if isinstance(allowed.entry, Mapping):
            if isinstance(value, str) and "without" in allowed.entry:
                raise _refusal(f"a dictionary of arguments, got {value!r:.100}", location)
            arguments.update(dict.fromkeys(allowed.entry.get("without", ())))
            arguments.update(allowed.entry.get("with", {}))

    def _check_unknown_argument(
        self,
        name: str,
        value: Any,
        cls: type,
        base: type,
        location: str,
    ) -> None:
        """
        Checks that an argument is one of an earlier version. Others would be passed on to a
        library, or belong to a different class.
        """
        old_arguments = harmless_toml()["old_arguments"]
        if not any(name in old_arguments.get(owner.__name__, ()) for owner in (cls, base)):
            expected = f"expected arguments of {cls.__name__}"
            raise _MismatchError(f"{expected}, got {name!r:.100}: {location}")
        if not isinstance(value, int) and value not in ("IOB1", "BIOUL"):
            raise _refusal(f"a number or a coding scheme, got {value!r:.100}", f"{location}.{name}")

    def _check_items(
        self,
        value: Any,
        origin: type,
        args: tuple[Any, ...],
        location: str,
        table: Table,
    ) -> None:
        """Checks the values of a dictionary, or the items of a list or a tuple."""
        if issubclass(origin, Mapping):
            items = list(_of_type(value, Mapping, "a dictionary", location).values())
            if table is _TABLE_OF_USER_CLASSES:
                self._check_for_user_class(list(value), location)
        else:
            items = _of_type(value, list, "a list", location)
        if origin is not tuple:
            annotations = [args[-1]] * len(items)
        elif args[-1] is ...:
            annotations = [args[0]] * len(items)
        else:
            annotations = list(args)
        if len(annotations) != len(items):
            expected = f"expected {len(annotations)} values"
            raise _MismatchError(f"{expected}, got {len(items)}: {location}")
        for item, annotation in zip(items, annotations, strict=True):
            self.check_argument(item, annotation, location, table)

    def _check_union(
        self, value: Any, annotations: Sequence[Any], location: str, table: Table
    ) -> None:
        """
        Checks a value of a `Union`. AllenNLP builds the first that it can, so all that fit must be
        listed.
        """
        mismatches = []
        annotations = [annotation for annotation in annotations if annotation is not type(None)]
        for annotation in annotations:
            try:
                self.check_argument(value, annotation, location, table)
            except _MismatchError as error:
                mismatches.append(error)
        if len(mismatches) == len(annotations):
            raise mismatches[-1]

    def _check_number(self, value: float, location: str, table: Table) -> None:
        """
        Numbers are listed by name, because one may be the size of a cache. Arguments that describe
        a machine are the user's overrides here: those of the archive have been removed.
        """
        name = location.rpartition(".")[2]
        if "numbers" not in table or name in self._machine:
            return
        if name not in table["numbers"] and name not in harmless_toml()["numbers"]:
            raise _refusal(f"a listed argument, got {name} = {value!r:.100}", location)

    def _check_by_name(self, value: Any, location: str, table: Table) -> None:
        """
        Checks what has no type by the name of its argument: strings, and dictionaries for
        libraries.
        """
        argument = location.rpartition(".")[2]
        if argument in self._machine:
            return
        rules_of_allennlp = harmless_toml()["arguments"]
        rule = table.get("arguments", {}).get(argument) or rules_of_allennlp.get(argument)
        if rule is None:
            raise _refusal(f"a listed argument, got {argument} = {value!r:.100}", location)
        if rule == "data":
            return
        if isinstance(rule, list):
            _check_listed_keys(value, rule, location)
        elif isinstance(value, list):
            for item in value:
                self.check_argument(item, Any, location, table)
        elif not isinstance(value, str):
            raise _refusal(f"a string, got {value!r:.100}", location)
        elif rule == "path" and not is_inside(value, self._folder):
            raise _refusal(f"a file in the archive, got {value!r:.200}", location)
        elif rule == "transformer" and not _is_repository(value):
            expected = "the name of a repository, not a local path"
            raise _refusal(f"{expected}, got {value!r:.200}", location)
        elif rule == "spacy" and not _is_installed_pipeline(value):
            raise _refusal(f"an installed pipeline of spaCy, got {value!r:.200}", location)

    def _check_for_user_class(self, value: Any, location: str) -> None:
        """
        Checks an argument of a class of the user's own, of which nobody has listed what it does
        with its strings: they are words, or files in the archive. A dictionary for a class must be
        at an argument that is annotated with it.
        """
        if isinstance(value, Mapping):
            if "type" in value:
                expected = "no class in an argument that is not annotated with one"
                raise _refusal(f"{expected}, got {value['type']!r:.100}", location)
            for key, item in value.items():
                self._check_for_user_class(key, location)
                self._check_for_user_class(item, location)
        elif isinstance(value, list):
            for item in value:
                self._check_for_user_class(item, location)
        elif isinstance(value, str):
            is_file = os.path.lexists(value) and not os.path.isdir(value)
            is_word = _NOT_A_WORD.search(value) is None and not is_file
            if not is_word and not is_inside(value, self._folder):
                raise _refusal(f"a word or a file in the archive, got {value!r:.200}", location)


def _check_listed_keys(value: Any, words: Sequence[str], location: str) -> None:
    """Checks a word, or the keys of a dictionary that is passed on to a library."""
    passed_on = value if isinstance(value, Mapping) else {str(value): value}
    for name, item in passed_on.items():
        if name not in words or isinstance(item, Mapping):
            raise _refusal(f"one of the listed words, got {name!r:.100}", location)


def _has_items(origin: Any) -> bool:
    return isinstance(origin, type) and issubclass(origin, Iterable)


def is_inside(path: Any, folder: Path) -> bool:
    """Whether something is the local path of a file in a folder."""
    text = str(path)
    if "://" in text or "\0" in text:
        return False
    return Path(text).resolve().is_relative_to(folder)


def _is_repository(name: str) -> bool:
    """Whether a name can only be that of a repository on the hub."""
    return _REPOSITORY.fullmatch(name) is not None and not Path(name).exists()


def _is_installed_pipeline(name: str) -> bool:
    """
    Whether spaCy would load an installed package of a pipeline. It imports any package of this
    name, and calls its function `load`.
    """
    if not _PIPELINE.fullmatch(name):
        return False
    try:
        distribution = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    points = distribution.entry_points
    if any(point.group == "spacy_models" and point.name == name for point in points):
        return True
    spec = find_spec(name)
    folder = Path(str(distribution.locate_file(name)))
    is_of_distribution = spec is not None and spec.origin == str(folder / "__init__.py")
    return is_of_distribution and (folder / "meta.json").is_file()


def _refusal(message: str, location: str) -> ConfigurationError:
    return ConfigurationError(f"expected {message}: {location}")


def _of_type(value: Any, expected_type: Any, description: str, location: str) -> Any:
    if not isinstance(value, expected_type):
        raise _MismatchError(f"expected {description}, got {value!r:.100}: {location}")
    return value


def _base_named(name: str) -> type:
    return next(base for base in Registrable._registry if base.__name__ == name)


def _names_of(cls: type) -> list[tuple[str, str]]:
    """The registered names of a class, each after the name of its base class."""
    names = []
    for base, classes in Registrable._registry.items():
        for name, (registered, _) in classes.items():
            if registered is cls:
                names.append((base.__name__, name))
    return names
