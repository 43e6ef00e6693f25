"""The services that messages go through: Apprise and the heartbeat. Their addresses are secrets and stay in here."""

from __future__ import annotations

import logging
import re
import urllib.error
import urllib.request
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from monitoring_platform.config import Settings
from monitoring_platform.health.notify.texts import harmless

if TYPE_CHECKING:
    from apprise import NotifyBase

Urgency = Literal["info", "success", "warning", "failure"]

_HEARTBEAT_SECONDS = 5.0
_PAUSE = 1.0  # seconds between messages to a service; `max_per_hour` keeps them few
_SPARE = 200  # letters that escapes and ends of lines may add


class Channel:
    """One channel of the configuration."""

    def __init__(self, name: str, settings: Settings) -> None:
        address = settings.notifications.channels.get(name)
        self.name = name
        self._address = address.get_secret_value() if address else None

    @cached_property
    def _service(self) -> NotifyBase | None:
        from apprise import Apprise, AppriseAsset, OverflowMode

        with _Overheard():
            asset = AppriseAsset(
                app_id="monitoring_platform",
                app_desc="monitoring_platform",
                app_url="",
                image_url_mask="",
                image_url_logo="",
                async_mode=False,
            )
            service: NotifyBase | None = Apprise.instantiate(self._address, asset=asset) if self._address else None
        if service is not None:
            service.overflow_mode = OverflowMode.TRUNCATE  # a message that is refused for its length is never taken
            service.request_rate_per_sec = min(service.request_rate_per_sec, _PAUSE)
        return service

    @property
    def kind(self) -> str | None:
        """The service by name; None if the address is not understood."""
        return str(self._service.service_name) if self._service else None

    def send(self, title: str, text: str, urgency: Urgency, footer: Iterable[str] = ()) -> str | None:
        """Send a message; None if the service took it, else why not, without the address or any part of it.

        Title and text are made harmless, and cut if they are too long for the service; lines of the footer are our own.
        """
        if self._address is None:
            return "the configuration has no such channel"
        if self._service is None:
            return "the address is not understood"
        from apprise import Apprise, NotifyFormat, NotifyType

        scheme = self._address.split(":", 1)[0].strip().lower()
        title, end = harmless(title, scheme), "".join(f"\n{line}" for line in footer)
        room = self._service.body_maxlen - len(title) - 2 * len(end) - _SPARE
        body = harmless(text, scheme)
        body = (body if len(body) <= room else body[: max(room, 0)] + "…") + end
        if str(self._service.notify_format.value) == "markdown":
            body = body.replace("\n", "  \n")  # else its lines become one paragraph
        with _Overheard() as overheard:
            sender = Apprise(asset=self._service.asset)
            sender.add(self._service)
            is_taken = sender.notify(
                body=body, title=title, notify_type=NotifyType(urgency), body_format=NotifyFormat.TEXT
            )
        return None if is_taken else overheard.reason


class _Overheard(logging.Filter):
    """What Apprise logs while the context is open is heard here and goes no further: it may name addresses.

    Of its words only what cannot hold a secret is kept.
    """

    _loggers = tuple(map(logging.getLogger, ("apprise", "urllib3.connectionpool")))

    def __init__(self) -> None:
        super().__init__()
        self.reason = "the service did not take it"

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage() if record.levelno >= logging.WARNING else ""
        if status := re.search(r"error=(\d{3})\b", text):
            self.reason = f"the service answered {status[1]}"
        elif "onnection error" in text:
            self.reason = "the service cannot be reached, or did not answer in time"
        return False

    def __enter__(self) -> _Overheard:
        for logger in self._loggers:
            logger.addFilter(self)
        return self

    def __exit__(self, *_: object) -> None:
        for logger in self._loggers:
            logger.removeFilter(self)


def try_channels(settings: Settings, names: Iterable[str]) -> dict[str, str | None]:
    """Send a message to each of these channels; why it failed, None = it was taken."""
    text = "If you can read this, the channel works. Nothing else has happened."
    return {name: Channel(name, settings).send("Test of monitoring_platform", text, "info") for name in names}


def beat(settings: Settings) -> str | None:
    """Call the watchdog's address, if there is one; why it failed, None = it did not."""
    url = settings.notifications.heartbeat_url
    if url is None:
        return None
    request = urllib.request.Request(url.get_secret_value(), headers={"User-Agent": "monitoring_platform"})
    try:
        with urllib.request.urlopen(request, timeout=_HEARTBEAT_SECONDS):
            return None
    except urllib.error.HTTPError as error:
        return f"the heartbeat was answered with {error.code}"
    except (OSError, ValueError):  # an address that cannot be one is a ValueError
        return "the heartbeat could not be sent"
