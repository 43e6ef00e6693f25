"""Text from logs made harmless for people and for the services that show it."""

from __future__ import annotations

import re
import unicodedata

#: Services that show text as it is, or for which Apprise escapes it. All others may have markup and mentions.
_LITERAL = frozenset(["json", "jsons", "xml", "xmls", "form", "forms", "mailto", "mailtos"])
#: Signs of markup and mentions, by those that look alike. Escapes are no use: each service has other ones, and Apprise
#: takes some of them back (`&lt;!channel&gt;` on its way to Slack).
_LOOK_ALIKE = str.maketrans({"<": "‹", ">": "›", "@": "＠", "[": "［", "]": "］", "`": "'"})
#: What services make links of although it has no markup; a space after it keeps them from it.
_ADDRESS = re.compile(r"(?i)(://|(?:mailto|tel):|www\.)(?=\S)")
_HIDDEN = frozenset(["Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"])


def plain(text: str) -> str:
    """The text without control characters, marks that turn the direction of writing, and other invisible ones."""
    return "".join(_visible(sign) for sign in text)


def _visible(sign: str) -> str:
    if sign == "\n" or unicodedata.category(sign) not in _HIDDEN:
        return sign
    return " " if sign in "\t\r\u2028\u2029" else ""


def line(text: str, longest: int = 200) -> str:
    """The text in one line, cut where it is longer."""
    joined = " ".join(plain(text).split())
    return joined if len(joined) <= longest else joined[: longest - 1].rstrip() + "…"


def harmless(text: str, service: str) -> str:
    """The text for a service (scheme of its address): nothing in it becomes a mention, a tag or a link there."""
    clean = plain(text)
    if service in _LITERAL:
        return clean
    return _ADDRESS.sub(r"\1 ", clean.translate(_LOOK_ALIKE))


def some(names: list[str], shown: int = 3) -> str:
    """The first few by name, and how many more there are."""
    told = ", ".join(line(name, 80) for name in names[:shown])
    return told if len(names) <= shown else f"{told} and {len(names) - shown} more"
