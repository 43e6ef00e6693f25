"""Secrets and personal data are replaced before anything is stored.

Two nets: by key (settings known to hold secrets, and any key that looks like one) and by value (patterns of tokens,
signed URLs, connection strings, e-mail addresses, …). Keys and structure stay, values become `MARK`, JSON stays valid.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import Any, NamedTuple

MARK = "[REDACTED]"


class Policy(NamedTuple):
    """What is a setting: mask references such as `{{secrets/scope/key}}`; replace persons by stable pseudonyms."""

    mask_references: bool = False
    pseudonymise_persons: bool = False


_SECRET_WORD = (
    r"passw(?:or)?d|passphrase|secret|token|credential|api[_.-]?key|access[_.-]?key|account[_.-]?key|"
    r"private[_.-]?key|storage[_.-]?key|shared[_.-]?access|client[_.-]?key|authorization|"
    r"connection[_.-]?string|webhook|(?<![a-z])(?:pwd|sas|sig|signature)(?![a-z])"
)
_SECRET_KEY = re.compile(rf"(?i){_SECRET_WORD}")
#: Keys of free-form settings that may hold more than harmless words.
_DOUBTFUL_KEY = re.compile(r"(?i)pass|pwd|\bpw\b|secret|token|key|cred|auth|sas|sig|cert|private|account|conn|jdbc|ur[li]|"
                           r"user|login|bearer|header|dsn|email|host")
_PLAIN_SETTING = re.compile(r"(?i:true|false)|-?\d{1,9}(?:\.\d+)?|[a-z][a-z0-9._-]{0,31}|[A-Z][A-Z_]{0,31}")
_REFERENCE = re.compile(r"\{\{\s*secrets/[^{}]+\}\}")
_USER_PATH = re.compile(r"(?i)^(/?(?:Workspace/)?Users/)[^/]+")

#: Members whose values are free-form settings, and members that are secret as a whole.
_SETTINGS = frozenset({"configuration", "spark_env_vars", "spark_conf", "options"})
_WHOLE = frozenset({"init_scripts", "instance_profile_arn", "email_notifications", "encryption_key", "ssh_public_keys"})
_PERSON = frozenset({"user_name", "user_id", "run_as", "run_as_user_name", "run_as_user_id", "creator_user_name", "creator"})

_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S), MARK),
    (re.compile(r"(?i)https?://(?:hooks\.|[^\s\"'\\/]*webhook)[^\s\"'\\]+|https?://[^\s\"'\\]*/(?:api/)?webhooks?/[^\s\"'\\]+"), MARK),
    (re.compile(r"(://[^/\s:@\"'\\]{0,256}):[^/\s@\"'\\]{1,512}@"), rf"\1:{MARK}@"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}"), rf"\1 {MARK}"),
    (
        re.compile(
            # A key that looks secret, "=" or ":", then the quoted text (to its end if never closed) or one word.
            rf"(?i)((?:{_SECRET_WORD})[A-Za-z0-9_.-]{{0,64}}\\?[\"']?\s{{0,4}}[=:]\s{{0,4}})(\\?[\"'])?"
            r"(?!\[REDACTED\]|\{\{)(?(2).*?(?=\2|\Z)|(?:(?:bearer|basic)\s+)?[^\s\"'&;,\\}]+)", re.S
        ),
        rf"\g<1>\g<2>{MARK}",
    ),
    (re.compile(r"\b(?:dapi|dkea|dsapi)[0-9a-f]{16,}(?:-\d+)?"), MARK),
    (re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"), MARK),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]{4,}\.?[\w-]*"), MARK),
    (re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|xox[abeprs]-[\w-]{8,}|AIza[\w-]{30,}|sk-[\w-]{20,})"), MARK),
    (re.compile(r"(?i)([?&](?:sig|signature|x-amz-[\w-]+|x-goog-[\w-]+|token|code|se|sv|sp)=)(?!\[REDACTED\])[^&\s\"'\\]+"), rf"\1{MARK}"),
    (re.compile(r"[A-Za-z0-9_.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,5}"), MARK),
    (re.compile(r"(?i)\b(?:adb-\d+\.\d+\.azuredatabricks\.net|[\w-]{1,63}(?:\.[\w-]{1,63}){0,3}\.(?:cloud|gcp)\.databricks\.com)"), MARK),
)
#: One cheap look at the lower-cased text; only text with one of these goes through the patterns.
_NEEDLES = tuple(
    "passw passphrase pwd secret token credential key sas sig authorization shared connection webhook hooks. bearer "
    "basic @ dapi dkea akia asia eyj ghp_ gho_ ghu_ ghs_ ghr_ github_pat xox aiza sk- x-amz x-goog code= se= sv= sp= "
    "databricks".split()
)
_STRING = re.compile(r'(:\s*\\?")(?:[^"\\]|\\(?!"\s*[,}]))*')
_SETTINGS_TEXT = re.compile(
    r'(\\?"(?:configuration|spark_env_vars|spark_conf|options)\\?"\s*:\s*\{)([^{}]*(?:\{\{[^{}]*\}\}[^{}]*)*)'
)


def redact_text(text: str | None, policy: Policy = Policy()) -> str | None:
    """Replace secrets in free text (messages, stacks, URLs). None stays None."""
    if not text or not _doubtful(text):
        return text if text is None or not policy.mask_references else _REFERENCE.sub(MARK, text)
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return _REFERENCE.sub(MARK, text) if policy.mask_references else text


def redact_broken(text: str, policy: Policy = Policy()) -> str:
    """Replace secrets in text that should have been JSON but is not: settings are masked whole."""
    masked = _SETTINGS_TEXT.sub(lambda m: m.group(1) + _STRING.sub(rf"\g<1>{MARK}", m.group(2)), text)
    return redact_text(masked, policy) or ""


def redact_value(value: Any, policy: Policy = Policy()) -> Any:
    """A copy of parsed JSON with secrets replaced. Depth is bounded by the parser that made `value`."""
    return _walk(value, policy)


#: For whole columns (RE2 over Arrow text): rows that do not match hold neither a suspicious word nor a masked member.
DOUBTFUL = "(?i)" + "|".join(re.escape(w) for w in (*_NEEDLES, *sorted(_SETTINGS | _WHOLE | _PERSON), "Users/", "{{", "\\u"))


def _doubtful(text: str) -> bool:
    lowered = text.lower()
    return any(needle in lowered for needle in _NEEDLES)


@lru_cache(maxsize=4096)
def _is_secret_key(key: str) -> bool:
    return _SECRET_KEY.search(key) is not None


def _walk(value: Any, policy: Policy) -> Any:
    if isinstance(value, dict):
        return {key: _member(key, item, policy) for key, item in value.items()}
    if isinstance(value, list):
        return [_walk(item, policy) for item in value]
    return _string(value, policy) if isinstance(value, str) else value


def _member(key: str, item: Any, policy: Policy) -> Any:
    if item is None or item == "" or item == {} or item == []:
        return item
    if key in _WHOLE:
        return _mask_all(item)
    if key in _SETTINGS:
        return _settings(item, policy)
    if key in _PERSON and policy.pseudonymise_persons:
        return _pseudonym(item)
    if key in _PERSON and not isinstance(item, (dict, list)):
        return item
    if _is_secret_key(key) and not isinstance(item, (bool, int, float)):
        return _mask_secret(item, policy)
    return _walk(item, policy)


def _settings(value: Any, policy: Policy) -> Any:
    """Free-form settings: a map, or the list of {key, value} that flow_definition.spark_conf uses."""
    if isinstance(value, dict):
        return {key: _setting(key, item, policy) for key, item in value.items()}
    if isinstance(value, list):
        return [
            {**item, "value": _setting(str(item.get("key")), item["value"], policy)}
            if isinstance(item, dict) and "value" in item
            else _mask_all(item)
            for item in value
        ]
    return _mask_all(value)


def _setting(key: str, item: Any, policy: Policy) -> Any:
    if item is None or isinstance(item, (bool, int, float)):
        return item
    if isinstance(item, str):
        if _REFERENCE.fullmatch(item.strip()):
            return MARK if policy.mask_references else item
        if not _DOUBTFUL_KEY.search(key) and _PLAIN_SETTING.fullmatch(item):
            return redact_text(item, policy)
    return _mask_all(item)


def _mask_secret(item: Any, policy: Policy) -> Any:
    if isinstance(item, str) and _REFERENCE.fullmatch(item.strip()) and not policy.mask_references:
        return item
    return _mask_all(item)


def _mask_all(item: Any) -> Any:
    if isinstance(item, dict):
        return {key: _mask_all(child) for key, child in item.items()}
    if isinstance(item, list):
        return [_mask_all(child) for child in item]
    return MARK


def _pseudonym(item: Any) -> Any:
    if isinstance(item, (dict, list)):
        return _mask_all(item)
    return "person-" + hashlib.sha256(str(item).encode()).hexdigest()[:12]


def _string(text: str, policy: Policy) -> str:
    return redact_text(_USER_PATH.sub(rf"\g<1>{MARK}", text), policy) or ""
