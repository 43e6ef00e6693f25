"""Reads YAML files with line numbers, so that every problem can say where it is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from monitoring_platform.config.base import KeyPath, Section


class ConfigError(Exception):
    """The configuration is wrong. Its text has one line per problem: `FILE:LINE: KEY: what is wrong. What to do`.

    It never contains the value of an environment variable.
    """


class Unreadable(ConfigError):
    """The file is not there, or no text."""


class InvalidYaml(ConfigError):
    """The file is no YAML."""


class Reader:
    """Turns one file into plain data, and remembers lines and problems by key path.

    `shown` is how messages name the file; by default its path.
    """

    def __init__(self, file: str, shown: str | None = None) -> None:
        self.raw: dict[KeyPath, str] = {}
        """Scalars whose text was filled in, as they stand in the file."""
        self.problems: dict[KeyPath, tuple[int, str]] = {}
        self.file = shown or file
        self._path = file
        self._lines: dict[KeyPath, int] = {}

    def read(self, empty: str = "Write 'key: value' lines") -> Section:
        """The content of the file. Raises ConfigError if it is not a YAML mapping; `empty` is what to do if it is."""
        nodes = self._nodes(lambda loader: [loader.get_single_node()])
        if nodes[0] is None:
            raise ConfigError(f"{self.file}:1: the file is empty. {empty}")
        line = self._lines[()] = nodes[0].start_mark.line + 1
        if not isinstance(nodes[0], yaml.MappingNode):
            raise ConfigError(f"{self.file}:{line}: the file is not a mapping. Write 'key: value' lines")
        content: Section = self._content(lambda: self._mapping(nodes[0], ()))
        return content

    def documents(self) -> list[Any]:
        """The documents of the file, or the entries of a list in them, each under its index. Raises ConfigError."""
        nodes = [
            item
            for node in self._nodes(_all_nodes)
            for item in (node.value if isinstance(node, yaml.SequenceNode) else [node])
        ]
        self._lines[()] = 1
        content: list[Any] = self._content(lambda: [self._item(node, (i,)) for i, node in enumerate(nodes)])
        return content

    def report(self, at: KeyPath, problem: str) -> None:
        """Note what is wrong with a key. The first problem is the cause, others of the same value would repeat it."""
        if any(at[:length] in self.problems and at[:length] in self.raw for length in range(len(at))):
            return
        known = next(at[:length] for length in range(len(at), -1, -1) if at[:length] in self._lines)
        line = self._lines[known]
        self.problems.setdefault(at, (line, f"{self.file}:{line}: {_key(at)}: {problem}"))

    def fill(self, text: str, at: KeyPath) -> str:
        """The text of a scalar with what it refers to filled in. Here: as it stands."""
        return text

    def _nodes(self, compose: Callable[[yaml.SafeLoader], list[Any]]) -> list[Any]:
        try:
            text = Path(self._path).read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            raise Unreadable(f"{self.file}: file not found. Check the path, or create the file") from None
        except UnicodeDecodeError:
            raise Unreadable(f"{self.file}: not a text file. Save it as UTF-8") from None
        except OSError as error:
            raise Unreadable(f"{self.file}: cannot be read: {error.strerror}. Check the path and its rights") from None
        try:
            self._yaml = yaml.SafeLoader(text)
            return compose(self._yaml)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            where = f"{mark.line + 1}: column {mark.column + 1}" if mark else "1"
            raise InvalidYaml(
                f"{self.file}:{where}: invalid YAML: {f'{error.context}, ' if error.context else ''}{error.problem}. "
                "Check the indentation, and put values that start with a character such as * or { in quotes"
            ) from None
        except yaml.reader.ReaderError as error:
            before = text[: error.position]
            line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
            raise InvalidYaml(
                f"{self.file}:{line}: column {column}: invalid YAML: unprintable character. Remove it"
            ) from None
        except RecursionError:
            raise self._too_deep() from None

    def _content(self, build: Callable[[], Any]) -> Any:
        try:
            return build()
        except RecursionError:
            raise self._too_deep() from None

    def _too_deep(self) -> InvalidYaml:
        return InvalidYaml(f"{self.file}:1: an alias contains itself, or nesting is too deep. Remove it")

    def _value(self, node: yaml.Node, at: KeyPath) -> Any:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, at)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, at)[0]
        return [self._item(item, (*at, index)) for index, item in enumerate(node.value)]

    def _mapping(self, node: yaml.MappingNode, at: KeyPath) -> Section:
        section = Section()
        shared: list[yaml.Node] = []
        for key_node, value_node in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":  # `<<: *name`
                shared += value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
                continue
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
        for other in shared:
            if isinstance(other, yaml.MappingNode):
                given = self._mapping(other, (*at, "<<"))
                for mine, theirs in ((section, given), (section.text, given.text), (section.raw, given.raw)):
                    mine.update({key: value for key, value in theirs.items() if key not in mine})
            else:
                self.report(at, "'<<' must name a mapping. Write '<<: *name' with the anchor of one")
        return section

    def _item(self, node: yaml.Node, at: KeyPath) -> Any:
        self._lines[at] = node.start_mark.line + 1
        return self._value(node, at)

    def _scalar(self, node: yaml.ScalarNode, at: KeyPath) -> tuple[Any, str]:
        """The value of a scalar and its text, both filled in."""
        text, tag = self.fill(node.value, at), node.tag
        if at in self.raw and node.style is None:  # not quoted: `${N:-5}` is a number
            tag = self._yaml.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
        try:
            return self._yaml.construct_object(yaml.ScalarNode(tag, text, node.start_mark, node.end_mark)), text
        except (yaml.YAMLError, ValueError):
            self.report(at, "cannot be read. Put it in quotes if it is meant as text")
            return text, text


def _all_nodes(loader: yaml.SafeLoader) -> list[Any]:
    nodes = []
    while loader.check_node():
        nodes.append(loader.get_node())
    return nodes


def _key(at: KeyPath) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in at).removeprefix(".")
