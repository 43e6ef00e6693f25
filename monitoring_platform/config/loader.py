"""Reads the configuration file: YAML with line numbers, `${NAME}` from the environment, all problems at once."""

import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

import yaml
from annotated_types import Ge, Gt, Le
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from monitoring_platform.config.model import KeyPath, Origin, Section, Settings


class ConfigError(Exception):
    """The configuration is wrong. Its text has one line per problem: `FILE:LINE: KEY: what is wrong. What to do`.

    It never contains the value of an environment variable.
    """


def load(path: Path | str, environ: Mapping[str, str] | None = None) -> Settings:
    """Read and check a configuration file, without touching anything that it points to.

    `environ` is what `${NAME}` and `${NAME:-default}` are filled from; by default the environment of the process.

    Raises ConfigError, with all problems, when the file cannot be read or anything in it is wrong.
    """
    reader = _Reader(str(path), os.environ if environ is None else environ)
    data = reader.read()
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
    return settings


_VARIABLE = re.compile(r"\$\$\{|\$\{(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-[^{}]*)?\})?")


class _Reader:
    """Turns one file into plain data, and remembers lines, variables and problems by key path."""

    def __init__(self, file: str, environ: Mapping[str, str]) -> None:
        self.raw: dict[KeyPath, str] = {}
        self.problems: dict[KeyPath, tuple[int, str]] = {}
        self._file = file
        self._environ = environ
        self._lines: dict[KeyPath, int] = {}

    def read(self) -> Section:
        """The content of the file. Raises ConfigError if it is not a YAML mapping."""
        try:
            text = Path(self._file).read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            raise ConfigError(f"{self._file}: file not found. Check the path, or create the file") from None
        except UnicodeDecodeError:
            raise ConfigError(f"{self._file}: not a text file. Save it as UTF-8") from None
        except OSError as error:
            raise ConfigError(
                f"{self._file}: cannot be read: {error.strerror}. Check the path and its rights"
            ) from None
        try:
            self._yaml = yaml.SafeLoader(text)
            root = self._yaml.get_single_node()
            if root is None:
                raise ConfigError(f"{self._file}:1: the file is empty. Write at least 'warehouse' and 'sources'")
            if not isinstance(root, yaml.MappingNode):
                line = root.start_mark.line + 1
                raise ConfigError(f"{self._file}:{line}: the file is not a mapping. Write 'key: value' lines")
            self._lines[()] = root.start_mark.line + 1
            return self._mapping(root, ())
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            where = f"{mark.line + 1}: column {mark.column + 1}" if mark else "1"
            raise ConfigError(
                f"{self._file}:{where}: invalid YAML: {f'{error.context}, ' if error.context else ''}{error.problem}. "
                "Check the indentation, and put values that start with a character such as * or { in quotes"
            ) from None
        except yaml.reader.ReaderError as error:
            before = text[: error.position]
            line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
            raise ConfigError(
                f"{self._file}:{line}: column {column}: invalid YAML: unprintable character. Remove it"
            ) from None
        except RecursionError:
            raise ConfigError(f"{self._file}:1: an alias contains itself, or nesting is too deep. Remove it") from None

    def report(self, at: KeyPath, problem: str) -> None:
        """Note what is wrong with a key. The first problem is the cause, others of the same value would repeat it."""
        if any(at[:length] in self.problems and at[:length] in self.raw for length in range(len(at))):
            return
        known = next(at[:length] for length in range(len(at), -1, -1) if at[:length] in self._lines)
        line = self._lines[known]
        self.problems.setdefault(at, (line, f"{self._file}:{line}: {_key(at)}: {problem}"))

    def _value(self, node: yaml.Node, at: KeyPath) -> Any:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, at)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, at)[0]
        return [self._item(item, (*at, index)) for index, item in enumerate(node.value)]

    def _mapping(self, node: yaml.MappingNode, at: KeyPath) -> Section:
        section = Section()
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            # Keys are taken as text, whatever YAML makes of `on` or `2024`.
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else "?"
            here = (*at, key)
            first = self._lines.get(here)
            self._lines[here] = line
            if not isinstance(key_node, yaml.ScalarNode):
                self.report(here, "this key is a list or a mapping. Write plain text before the colon")
            elif first is not None:
                self.report(here, f"duplicate key, first used in line {first}. Remove one of them")
            elif isinstance(value_node, yaml.ScalarNode):
                section[key], text = self._scalar(value_node, here)
                section.raw[key] = value_node.value
                if section[key] is not None:
                    section.text[key] = text
            else:
                section[key] = self._value(value_node, here)
        return section

    def _item(self, node: yaml.Node, at: KeyPath) -> Any:
        self._lines[at] = node.start_mark.line + 1
        return self._value(node, at)

    def _scalar(self, node: yaml.ScalarNode, at: KeyPath) -> tuple[Any, str]:
        """The value of a scalar and its text, both with variables filled in."""
        text, tag = node.value, node.tag
        if _VARIABLE.search(text):
            self.raw[at] = text
            text = _VARIABLE.sub(lambda match: self._fill(match, at), text)
            if node.style is None:  # not quoted: `${N:-5}` is a number
                tag = self._yaml.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
        try:
            return self._yaml.construct_object(yaml.ScalarNode(tag, text, node.start_mark, node.end_mark)), text
        except (yaml.YAMLError, ValueError):
            self.report(at, "cannot be read. Put it in quotes if it is meant as text")
            return text, text

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
    if field is not None and field.annotation in (int, float):
        expected = ("a whole number" if field.annotation is int else "a number") + _bounds(field)
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


def _bounds(field: FieldInfo) -> str:
    limits = {type(limit): limit for limit in field.metadata}
    low, above, high = limits.get(Ge), limits.get(Gt), limits.get(Le)
    if low and high:
        return f" from {low.ge} to {high.le}"
    if low:
        return f" of at least {low.ge}"
    return f" greater than {above.gt}" if above else ""


def _key(at: KeyPath) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in at).removeprefix(".")
