"""How the service says no."""

from __future__ import annotations


class Refusal(Exception):
    """An answer that is an error: HTTP status, error code and message as the service words them."""

    def __init__(self, status: int, code: str | int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.headers = status, code, message, headers or {}


class SqlError(Exception):
    """A statement that failed: it is part of a successful answer."""

    def __init__(self, message: str, code: str = "BAD_REQUEST") -> None:
        super().__init__(message)
        self.code, self.message = code, message


def invalid(message: str) -> Refusal:
    """A parameter that the service does not take."""
    return Refusal(400, "INVALID_PARAMETER_VALUE", message)
