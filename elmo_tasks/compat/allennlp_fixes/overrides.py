"""Overrides of a config that name nothing, or are no overrides, in AllenNLP 2.10.1."""

import difflib
import inspect
from collections.abc import Iterator, Mapping
from functools import wraps
from typing import Any, get_args, get_origin

from elmo_tasks.compat.import_hooks import Module
from elmo_tasks.printable import one_line

__all__ = ["refuse_unknown_overrides", "say_what_overrides_must_be"]

# Keys at the top of a config that other functions take out before `TrainModel` is made of it.
_TOP_LEVEL = {"random_seed", "numpy_seed", "pytorch_seed", "distributed", "include_in_archive", "evaluation", "type"}
_MOST_LISTED = 40
# Of `TrainModel`: arguments that `allennlp train` gives, and no config has.
_GIVEN = {"self", "serialization_dir", "local_rank"}
# What has not all of these is no config of a training.
_TRAINING = {"dataset_reader", "model", "trainer"}


def refuse_unknown_overrides(params: Module) -> None:
    """
    Symptom: `allennlp train -o '{"trainer.num_epoch": 1}'` trains for all epochs of the config.

    Cause: `with_overrides` adds whatever key it is given, and a constructor with `**kwargs` drops what it does not
    know. A key that is neither in the config nor in the signature of the class that its place is for is now an error.
    Where the class cannot be told (a dictionary of the user's own, a class that takes any keyword), the key is let
    through.
    """
    original = params.with_overrides

    @wraps(original)
    def with_overrides(original_config: Any, overrides: Any, prefix: str = "") -> Any:
        if not prefix and isinstance(original_config, Mapping) and original_config.keys() >= _TRAINING:
            for key in overrides:
                _check(original_config, key)
        return original(original_config, overrides, prefix)

    params.with_overrides = with_overrides


def say_what_overrides_must_be(params: Module) -> None:
    """
    Symptom: `allennlp train -o '{trainer.num_epochs: 1}'`, whose key has no quotation marks, ends with the traceback of
    a syntax error that does not name `-o`, and `allennlp predict` says it of the archive.

    Cause: `parse_overrides` catches no error of Jsonnet, nor does it look at what the text is.
    """
    original = params.parse_overrides

    @wraps(original)
    def parse_overrides(serialized_overrides: str, ext_vars: Any = None) -> Any:
        try:
            parsed = original(serialized_overrides, ext_vars=ext_vars)
            reason = "" if isinstance(parsed, dict) else f"it is a {type(parsed).__name__}"
        except (RuntimeError, ValueError) as error:
            reason = one_line(error)
        if reason:
            from allennlp.common.checks import ConfigurationError

            raise ConfigurationError(
                "--overrides must be a JSON object whose keys are in quotation marks, such as "
                f"'{{\"trainer.num_epochs\": 1}}', but is {serialized_overrides!r:.200} ({reason})"
            )
        return parsed

    params.parse_overrides = parse_overrides


def _check(config: Mapping[str, Any], key: str) -> None:
    place = "the config"
    for part, node, names in _walk(config, key.split(".")):
        if isinstance(node, Mapping) and part not in node and names is not None and part not in names:
            from allennlp.common.checks import ConfigurationError

            known = sorted({*names, *node})
            nearest = difflib.get_close_matches(part, known, n=1)
            remedy = f"did you mean {nearest[0]!r}?" if nearest else f"it takes {', '.join(known[:_MOST_LISTED])}"
            raise ConfigurationError(
                f"the override {key!r} must name a setting of {place}, but {part!r} is unknown: {remedy}"
            )
        place = f"'{part}'"


def _walk(config: Mapping[str, Any], parts: list[str]) -> Iterator[tuple[str, Any, set[str] | None]]:
    """For each part of a key: the part, the node that it is looked up in, and the settings that this node may have."""
    from allennlp.commands.train import TrainModel

    node: Any = config
    expected: Any = TrainModel
    for part in parts:
        parameters = _parameters(expected, node)
        names = None if parameters is None else set(parameters) | {"type"}
        if names is not None and expected is TrainModel:
            names = (names | _TOP_LEVEL) - _GIVEN
        yield part, node, names
        if isinstance(node, Mapping) and part in node:
            expected = (
                _unwrapped(parameters[part].annotation) if parameters and part in parameters else _values_of(expected)
            )
            node = node[part]
        elif isinstance(node, list) and part.isdigit() and int(part) < len(node):
            expected, node = _values_of(expected), node[int(part)]
        else:
            return


def _parameters(expected: Any, node: Any) -> dict[str, Any] | None:
    """The parameters of the class that a node of the config describes; `None` if that is not known."""
    from allennlp.common.from_params import FromParams, infer_constructor_params, infer_method_params
    from allennlp.common.registrable import Registrable

    if not isinstance(expected, type) or not issubclass(expected, FromParams) or not isinstance(node, Mapping):
        return None
    constructor = "from_partial_objects" if expected.__name__ == "TrainModel" else None
    found: Any = expected
    if issubclass(expected, Registrable) and expected in Registrable._registry:
        name = node.get("type") or expected.default_implementation
        if name is None or name not in Registrable._registry[expected]:
            return None
        found, constructor = Registrable._registry[expected][name]
    if not isinstance(found, type):
        return None
    # What a named constructor does not take itself it passes on to `__init__`.
    parameters = infer_constructor_params(found)
    if constructor:
        parameters |= infer_method_params(found, getattr(found, constructor))
    if _takes_anything(found):
        return None
    return {name: parameter for name, parameter in parameters.items() if not parameter.kind.name.startswith("VAR_")}


def _takes_anything(found: type) -> bool:
    """Whether no class above it says which keywords there are."""
    from allennlp.common.from_params import FromParams

    own = [vars(base)["__init__"] for base in found.mro() if issubclass(base, FromParams) and "__init__" in vars(base)]
    return all(
        inspect.Parameter.VAR_KEYWORD in {parameter.kind for parameter in inspect.signature(init).parameters.values()}
        for init in own
    )


def _unwrapped(annotation: Any) -> Any:
    """The class in `Lazy[X]` or `Optional[X]`; other annotations as they are."""
    while (arguments := get_args(annotation)) and get_origin(annotation) not in (list, dict, tuple):
        some = [argument for argument in arguments if argument is not type(None)]
        if len(some) != 1:
            return None
        annotation = some[0]
    return annotation


def _values_of(annotation: Any) -> Any:
    """The class in `List[X]` and `Dict[str, X]`."""
    arguments = get_args(annotation)
    return _unwrapped(arguments[-1]) if get_origin(annotation) in (list, dict, tuple) and arguments else None
