"""Hostile text has no effect where it is shown."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitoring_platform.health.notify.texts import harmless, line, plain, some

HOSTILE = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "<!channel>",
                "<!here|x>",
                "<@U1>",
                "@everyone",
                "@here",
                "<b>",
                "</script>",
                "[x](y)",
                "![i](u)",
                "`c`",
                "&lt;!channel&gt;",
                "http://e.example",
                "<https://e.example|ok>",
                "mailto:a@b.c",
                "www.e.example",
                "javascript:x",
                "<a\thref=",
                "&#64;here",
                "\u202e",
                "\u2066",
                "\x1b[31m",
                "\x00",
                "\u200b",
                "\r\n",
                "@\u200bhere",
                "<\u200b!channel>",
                "h\u200bttp://e",
            ]
        ),
        st.text(max_size=20),
    ),
    max_size=20,
).map("".join)


@given(HOSTILE)
def test_no_mention_tag_or_link(text: str) -> None:
    """R-ALERT-04: neither mention nor tag, code or link is left of it, in any order of its parts."""
    shown = harmless(text, "slack")
    assert not set(shown) & set("<>@[]`")
    assert not re.search(r"(?i)://\S|(mailto|tel):\S|www\.\S", shown)
    assert harmless(shown, "slack") == shown


@given(HOSTILE)
def test_nothing_invisible(text: str) -> None:
    """Neither control characters nor marks of direction reach any service; visible text stays as it is."""
    shown = plain(text)
    assert all(sign == "\n" or unicodedata.category(sign) not in ("Cc", "Cf", "Cs") for sign in shown)
    assert harmless(text, "json") == shown
    letters = [sign for sign in text if unicodedata.category(sign)[0] in "LNPS"]
    assert [sign for sign in shown if unicodedata.category(sign)[0] in "LNPS"] == letters


@given(HOSTILE)
def test_what_slack_is_sent(text: str) -> None:
    """Apprise takes escapes of mentions back on the way to Slack, which is why they are replaced."""
    from apprise import Apprise, NotifyFormat
    from apprise.plugins.slack import NotifySlack

    posted: list[str] = []
    service = Apprise.instantiate("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ")
    assert isinstance(service, NotifySlack)
    service._send = lambda url, payload, **_: posted.append(payload["attachments"][0]["text"]) or True  # type: ignore[assignment]
    sender = Apprise()
    sender.add(service)
    if sender.notify(body=harmless(text, "slack") or "-", body_format=NotifyFormat.TEXT):
        assert not set(posted[0]) & set("<>")


@pytest.mark.parametrize(
    ("given", "shown"),
    [("a\n\tb", "a b"), ("x" * 300, "x" * 199 + "…"), ("a\u2028b", "a b"), ("é\u0000ü", "éü")],
)
def test_one_line(given: str, shown: str) -> None:
    assert line(given) == shown


def test_some_of_many() -> None:
    assert some(["a", "b", "c"]) == "a, b, c"
    assert some(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
