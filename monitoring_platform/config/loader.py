"""Reads the configuration file: YAML with line numbers, `${NAME}` from the environment, all problems at once."""

import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

from annotated_types import Ge, Gt, Le
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from monitoring_platform.config import plumber
from monitoring_platform.config.base import KeyPath, Origin
from monitoring_platform.config.model import Settings
from monitoring_platform.config.reading import ConfigError, Reader


def load(path: Path | str, environ: Mapping[str, str] | None = None) -> Settings:
    """Read and check a configuration file, and the Lakehouse Plumber files if it names some.

    Nothing else that it points to is touched.

    `environ` is what `${NAME}` and `${NAME:-default}` are filled from; by default the environment of the process.

    Raises ConfigError, with all problems, when the file cannot be read or anything in it is wrong.
    """
    environ = os.environ if environ is None else environ
    reader = _ConfigFile(str(path), environ)
    data = reader.read("Write at least 'warehouse' and 'sources'")
    origin = Origin(Path(os.path.abspath(path)), reader.raw)
    settings = None
    try:
        settings = Settings.model_validate(data, context=origin)
    except ValidationError as error:
        for details in error.errors(include_url=False):
            reader.report(*_explain(details))
    # Raised here and not above: the pydantic error, which holds the values, must not appear in a traceback.
    if reader.problems or settings is None:
        raise ConfigError("\n".join(line for _, line in sorted(reader.problems.values())))
    return plumber.apply(settings, reader.file, environ)


_VARIABLE = re.compile(r"\$\$\{|\$\{(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-[^{}]*)?\})?")


class _ConfigFile(Reader):
    """The configuration file: `${NAME}` and `${NAME:-default}` are filled in from the environment."""

    def __init__(self, file: str, environ: Mapping[str, str]) -> None:
        super().__init__(file)
        self._environ = environ

    def fill(self, text: str, at: KeyPath) -> str:
        """The text with variables filled in."""
        if not _VARIABLE.search(text):
            return text
        self.raw[at] = text
        return _VARIABLE.sub(lambda match: self._fill(match, at), text)

    def _fill(self, match: re.Match[str], at: KeyPath) -> str:
        name, default = match["name"], match["default"]
        if match[0] == "$${":
            return "${"
        if name is None:
            self.report(
                at, "'${' without a variable's name. Write ${NAME} or ${NAME:-default}, or $${ for the characters"
            )
        elif default is not None:
            return self._environ.get(name) or str(default[2:])
        elif name in self._environ:
            return self._environ[name]
        else:
            self.report(at, f"environment variable {name} is not set. Set it, or write ${{{name}:-default}}")
        return match[0]


_KINDS = {
    "bool_type": "true or false",
    "string_type": "text",
    "path_type": "text",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}


def _explain(error: ErrorDetails) -> tuple[KeyPath, str]:
    """The key that a pydantic error is about, and the problem in our words, which never quote the value."""
    at, parent, field = _locate(error["loc"])
    kind, context = error["type"], error.get("ctx", {})
    if kind == "setting":
        return (*at, *context["inner"]), context["problem"]
    if kind == "missing":
        return at, "required key is missing. Add it"
    if kind == "extra_forbidden":
        valid = [known.alias or name for name, known in parent.model_fields.items()]
        near = get_close_matches(str(at[-1]), valid, n=1)
        return at, f"unknown key '{at[-1]}'" + (
            f", did you mean '{near[0]}'?" if near else f". Valid keys: {', '.join(valid)}"
        )
    if kind == "union_tag_not_found":
        return (*at, "type"), "required key is missing. Add it"
    if kind == "union_tag_invalid":
        return (*at, "type"), f"must be {context['expected_tags'].replace(', ', ' or ')}"
    if kind == "literal_error":
        return at, f"must be {context['expected']}"
    if kind == "string_too_short":
        return at, "must not be empty. Write a value, or remove the key"
    if field is not None and (number := _number(field.annotation)):
        expected = ("a whole number" if number is int else "a number") + _bounds(field)
    else:
        expected = _KINDS.get(kind, f"valid ({kind})")
    if error["input"] is None:
        return at, f"has no value. It must be {expected}"
    quotable = expected == "text" and not isinstance(error["input"], list | dict)
    return at, f"must be {expected}" + (". Put it in quotes" if quotable else "")


def _locate(loc: tuple[str | int, ...]) -> tuple[KeyPath, type[BaseModel], FieldInfo | None]:
    """The key path of a pydantic location (which also names the chosen type of a source), its model and its field."""
    at: list[str | int] = []
    models: list[type[BaseModel]] = [Settings]
    parent: type[BaseModel] = Settings
    field: FieldInfo | None = None
    for part in loc:
        if len(models) > 1 and isinstance(part, str):
            models = [model for model in models if part in get_args(model.model_fields["type"].annotation)]
            continue
        at.append(part)
        if models and isinstance(part, str):
            parent = models[0]
            field = next((info for name, info in parent.model_fields.items() if part == (info.alias or name)), None)
            models = _models(field.annotation) if field else []
        elif not models:
            field = None
    return tuple(at), parent, field


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) for model in _models(inner)]


def _number(annotation: Any) -> type | None:
    """The kind of number that a value must be, if it must be one and nothing else; it may be left out."""
    if annotation in (int, float):
        return int if annotation is int else float
    inner = get_args(annotation)
    return _number(get_args(inner[0])[0]) if len(inner) == 2 and inner[1] is type(None) and get_args(inner[0]) else None


def _bounds(field: FieldInfo) -> str:
    limits = {type(limit): limit for limit in field.metadata}
    low, above, high = limits.get(Ge), limits.get(Gt), limits.get(Le)
    if low and high:
        return f" from {low.ge} to {high.le}"
    if low:
        return f" of at least {low.ge}"
    return f" greater than {above.gt}" if above else ""
