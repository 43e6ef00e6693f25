"""What the sections of the configuration are made of: values with rules, and where they came from."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, TypeAlias
from zoneinfo import available_timezones

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo
from pydantic_core import PydanticCustomError

KeyPath: TypeAlias = tuple[str | int, ...]
"""Where a value stands in the file: `("sources", 0, "path")`."""


@dataclass(frozen=True)
class Origin:
    """Where settings came from. It is the pydantic validation context."""

    path: Path
    """The file, absolute."""
    raw: Mapping[KeyPath, str] = field(default_factory=dict)
    """Scalars that refer to environment variables, as they stand in the file."""


class Section(dict[str, Any]):
    """A mapping read from a file that remembers how its scalars were spelled."""

    def __init__(self) -> None:
        super().__init__()
        self.text: dict[str, str] = {}
        """With variables filled in, so that a tag `1.10` or `0042` does not become 1.1 or 34."""
        self.raw: dict[str, str] = {}
        """As in the file, without the values of variables."""


def wrong(problem: str, *inner: str | int) -> PydanticCustomError:
    """The error to raise for a bad value; `inner` leads from the validated value to the culprit within it.

    `problem` must not quote the value: it may come from the environment and be a secret.
    """
    return PydanticCustomError("setting", "{problem}", {"problem": problem, "inner": inner})


_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # two characters at least: `C:/logs` is a path


def origin_of(context: Any) -> Origin:
    """Settings built in code count as if written in a file in the current folder."""
    return context if isinstance(context, Origin) else Origin(Path("monitoring.yaml").absolute())


def absolute(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, str) or _ADDRESS.match(value):
        return value
    if not value:
        raise wrong("must not be empty. Write a path")
    return os.path.normpath(origin_of(info.context).path.parent / value)


def local(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, str) and _ADDRESS.match(value):
        raise wrong("must be a local folder. For tables kept elsewhere set 'catalog' and 'schema' instead")
    return absolute(value, info)


def folder_of_records(value: Any, info: ValidationInfo) -> Any:
    """A folder in which jobs record their runs. What they record in a catalog or an object store cannot be read."""
    if isinstance(value, str) and _ADDRESS.match(value):
        raise wrong(
            "must be a folder: records in an object store are not read. Let the jobs record in a mounted folder"
        )
    if isinstance(value, str) and value and not re.search(r"[/\\]", value):
        raise wrong(
            "must be a path with a slash: without one it names a schema of a catalog, where records are not read. "
            "Let the jobs record in a folder or a volume, and write its path: ./records, /Volumes/…"
        )
    return absolute(value, info)


def readable_file(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, str) and _ADDRESS.match(value):
        raise wrong("must be a local file. Write its path")
    return absolute(value, info)


def with_sql(value: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
    """An entry that names a file in `sql_path`, with its text as `sql`."""
    path = origin_of(info.context).path.parent / str(value["sql_path"])
    try:
        return {**value, "sql_path": str(path), "sql": path.read_text(encoding="utf-8")}
    except (OSError, UnicodeDecodeError) as error:
        problem = f"cannot be read ({type(error).__name__}). Write the path of a file with one SELECT"
        raise wrong(problem, "sql_path") from None


def _zone(value: str) -> str:
    if value not in available_timezones():
        near = get_close_matches(value, available_timezones(), 1)
        raise wrong(f"is no time zone. Write its IANA name, for example {near[0] if near else 'Europe/Berlin'}")
    return value


def _as_spelled(value: Any) -> Any:
    return {**value, **value.text} if isinstance(value, Section) else value


Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[dict[str, str], BeforeValidator(_as_spelled)]
Bool = Annotated[bool, Field(strict=True)]
Int = Annotated[int, Field(strict=True)]
Float = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Zone = Annotated[str, AfterValidator(_zone)]


class Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True)


def matches(globs: Iterable[str], *names: str | None) -> bool:
    """Whether some glob matches some name; None = there is no such name."""
    return any(fnmatchcase(name, glob) for glob in globs for name in names if name is not None)
