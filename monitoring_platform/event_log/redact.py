"""Secrets and personal data are replaced before anything is stored.

Two nets: by key (settings known to hold secrets, and any key that looks like one) and by value (patterns of tokens,
signed URLs, connection strings, e-mail addresses, …). Keys and structure stay, values become `MARK`, JSON stays valid,
also JSON inside a JSON string. Text that is no JSON goes through both nets too, as far as its keys can be made out.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache, partial
from typing import Any, NamedTuple

from monitoring_platform.event_log import jsontext

MARK = "[REDACTED]"


class Policy(NamedTuple):
    """What is a setting: mask references such as `{{secrets/scope/key}}`; replace persons by stable pseudonyms."""

    mask_references: bool = False
    pseudonymise_persons: bool = False


DEFAULT = Policy()

_SECRET_WORD = (
    r"passw(?:or)?d|passphrase|secret|token|credential|api[_.-]?key|access[_.-]?key|account[_.-]?key|"
    r"private[_.-]?key|storage[_.-]?key|shared[_.-]?access|client[_.-]?key|authorization|"
    r"connection[_.-]?string|webhook|(?<![a-z])(?:pwd|sas|sig|signature)(?![a-z])"
)
_SECRET_KEY = re.compile(rf"(?i){_SECRET_WORD}")
#: Secret keys whose number is a secret as well; a number under any other (`total_tokens`) is a count.
_PASSWORD_KEY = re.compile(r"(?i)passw|passphrase|(?<![a-z])(?:pwd|pin)(?![a-z])")
#: Keys of free-form settings that may hold more than harmless words.
_DOUBTFUL_KEY = re.compile(
    r"(?i)pass|pwd|\bpw\b|secret|token|key|cred|auth|sas|sig|cert|private|account|conn|jdbc|ur[li]|"
    r"user|login|bearer|header|dsn|email|host"
)
_PLAIN_SETTING = re.compile(r"(?i:true|false)|-?\d{1,9}(?:\.\d+)?|[a-z][a-z0-9._-]{0,31}|[A-Z][A-Z_]{0,31}")
_RANDOM = re.compile(r"(?=[a-z]*\d)[a-z0-9]{12}")
_REFERENCE = re.compile(r"\{\{\s*secrets/[^{}]+\}\}")
_PSEUDONYM = re.compile(r"person-[0-9a-f]{12}")

#: Members whose values are free-form settings, members that are secret as a whole, and members that name persons.
_SETTINGS = ("configuration", "spark_env_vars", "spark_conf", "options")
_WHOLE = ("init_scripts", "instance_profile_arn", "email_notifications", "encryption_key", "ssh_public_keys")
_PERSON = (
    "user_name", "user_id", "run_as", "run_as_user_name", "run_as_user_id", "creator_user_name", "creator"
)  # fmt: skip
_KINDS = {
    name.replace("_", ""): kind
    for kind, names in (("settings", _SETTINGS), ("whole", _WHOLE), ("person", _PERSON))
    for name in names
}

_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(
            r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)", re.S
        ),
        MARK,
    ),
    (
        re.compile(
            r"(?i)https?://(?:hooks\.|[^\s\"'\\/]{0,256}webhook)[^\s\"'\\]+|"
            r"https?://[^\s\"'\\]{0,256}/(?:api/)?webhooks?/[^\s\"'\\]+"
        ),
        MARK,
    ),
    (re.compile(r"(://[^/\s:@\"'\\]{0,256}):[^/\s\"'\\]{1,512}@"), rf"\1:{MARK}@"),
    (re.compile(r"(?i)(jdbc:oracle:[a-z]{1,8}:[^/\s\"'\\]{1,128})/[^@\s\"'\\]{1,512}@"), rf"\1/{MARK}@"),
    # "Bearer" and "basic" are words as well: what follows must not read like one.
    (
        re.compile(
            r"(?i)\b(bearer)\s+(?!(?:authentication|authorization|credentials?|tokens?)\b)[A-Za-z0-9._~+/=-]{6,}|"
            r"\b(basic)\s+(?=[a-z+/]*(?:[0-9=]|(?-i:[a-z][A-Z])))[A-Za-z0-9+/]{8,}={0,2}"
        ),
        rf"\1\2 {MARK}",
    ),
    (
        re.compile(
            # A key that looks secret, "=" or ":", then the quoted text (to its end if never closed) or one word.
            rf"(?i)((?:{_SECRET_WORD})[A-Za-z0-9_.-]{{0,64}}\\*[\"']?\s{{0,4}}[=:]\s{{0,4}})(\\*[\"'])?"
            r"(?!\[REDACTED\]|\{\{\s*secrets/)(?(2).*?(?=(?<!\\)\2|\Z)|"
            r"(?:(?:bearer|basic|digest|negotiate|apikey|token)\s+)?[^\s\"'&;,\\}]+)",
            re.S,
        ),
        rf"\g<1>\g<2>{MARK}",
    ),
    (re.compile(r"\b(?:dapi|dkea|dsapi|dose)[0-9a-f]{16,}(?:-\d+)?"), MARK),
    (re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"), MARK),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]{4,}\.?[\w-]*"), MARK),
    (
        re.compile(
            r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|xox[abeprs]-[\w-]{8,}|AIza[\w-]{30,}|sk-[\w-]{20,})"
        ),
        MARK,
    ),
    (
        re.compile(
            r"(?i)([?&](?:sig|signature|x-amz-[\w-]+|x-goog-[\w-]+|token|code|se|sv|sp)=)(?!\[REDACTED\])[^&\s\"'\\]+"
        ),
        rf"\1{MARK}",
    ),
    # E-mail addresses, but not the container of an Azure storage path (abfss://container@account.dfs.core.windows.net).
    (
        re.compile(
            r"(?<![\w.+-])(?<!abfs://)(?<!abfss://)(?<!wasb://)(?<!wasbs://)"
            r"[\w.+-]{1,256}@[\w-]{1,63}(?:\.[\w-]{1,63}){0,4}\.[^\W\d_]{2,63}"
        ),
        MARK,
    ),
    (
        re.compile(r"(?i)^(/?(?:Workspace/)?Users/)[^/\"'\\]+|(?<![\w.\]-])((?:/Workspace)?/Users/)[^/\s\"'\\]+"),
        rf"\1\2{MARK}",
    ),
    (
        re.compile(
            r"(?i)(?<![\w-])[\w-]{1,63}(?:\.[\w-]{1,63}){0,3}\."
            r"(?:azuredatabricks\.net|(?:cloud|gcp)\.databricks\.(?:com|us)|databricks\.azure\.(?:us|cn))\b"
        ),
        MARK,
    ),
)
#: One cheap look at the lower-cased text; only text with one of these words goes further.
_WORDS = tuple(
    dict.fromkeys(
        [
            "passw",
            "passphrase",
            "pwd",
            "secret",
            "token",
            "credential",
            "key",
            "sas",
            "sig",
            "authorization",
            "shared",
            "connection",
            "webhook",
            "hooks.",
            "bearer",
            "basic",
            "@",
            "dapi",
            "dkea",
            "dsapi",
            "dose",
            "akia",
            "asia",
            "eyj",
            "ghp_",
            "gho_",
            "ghu_",
            "ghs_",
            "ghr_",
            "github_pat",
            "xox",
            "aiza",
            "sk-",
            "x-amz",
            "x-goog",
            "code=",
            "se=",
            "sv=",
            "sp=",
            "databricks",
            "users/",
            "{{",
        ]
    )
) + tuple(sorted({*_KINDS, *_SETTINGS, *_WHOLE, *_PERSON}))
#: The same for whole columns of JSON text (RE2 over Arrow): also what may be hidden behind an escape.
DOUBTFUL = "(?i)" + "|".join((*map(re.escape, _WORDS), r"users\\/", r"\\u"))
#: Escapes of printable ASCII, and of the slash, at any level; quotes and backslashes stay what they are.
_ESCAPE = re.compile(r"(?<!\\)\\+(?:u00(?!22|5[cC])([2-7][0-9a-fA-F])|/)")
_KEY = re.compile(r'(?<!\\)(\\*)"([^"\\\n]{1,128})\1"\s{0,4}:\s{0,4}')


def redact_text(text: str | None, policy: Policy = DEFAULT) -> str | None:
    """Replace secrets in free text (messages, stacks, URLs, broken JSON). None stays None."""
    if not text:
        return text
    plain = _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else "/", text) if "\\" in text else text
    if not _doubtful(plain):
        return text
    clean = _mask_members(plain, policy) if '"' in plain else plain
    for pattern, replacement in _PATTERNS:
        clean = pattern.sub(replacement, clean)
    if policy.mask_references:
        clean = _REFERENCE.sub(MARK, clean)
    return text if clean == plain else clean


def redact_value(value: Any, policy: Policy = DEFAULT) -> Any:
    """A copy of parsed JSON with secrets replaced. Raises RecursionError for values nested too deep."""
    if isinstance(value, dict):
        return {key: _member(key, item, policy) for key, item in value.items()}
    if isinstance(value, list):
        return [redact_value(item, policy) for item in value]
    return _string(value, policy) if isinstance(value, str) else value


def redact_json(text: str, parsed: Any, policy: Policy = DEFAULT) -> tuple[str, Any]:
    """JSON text and what it holds with secrets replaced; both as they are if there are none.

    Raises RecursionError.
    """
    clean = redact_value(parsed, policy)
    # Fewer quotes than in the text: a repeated member is hidden behind its last occurrence.
    if clean == parsed and "\\u0022" not in text and text.count('"') == jsontext.dumps(parsed).count('"'):
        return text, parsed
    return jsontext.dumps(clean), clean


def _doubtful(text: str) -> bool:
    lowered = text.lower()
    return any(word in lowered for word in _WORDS)


@lru_cache(maxsize=4096)
def _kind(key: str) -> str | None:
    """What a key says about its value: settings, whole, person, password, secret, or nothing."""
    known = _KINDS.get(key.lower().replace("_", ""))
    if known is not None:
        return known
    if _PASSWORD_KEY.search(key):
        return "password"
    return "secret" if _SECRET_KEY.search(key) else None


def _member(key: str, item: Any, policy: Policy) -> Any:
    if item is None or item == "" or item == {} or item == []:
        return item
    kind = _kind(key)
    if kind is None:
        return redact_value(item, policy)
    if kind == "whole":
        return _mask_all(item)
    if kind == "settings":
        return _settings(item, policy)
    if kind == "person":
        if policy.pseudonymise_persons:
            return _pseudonym(item)
        return redact_value(item, policy) if isinstance(item, (dict, list)) else item
    return _secret(kind, item, policy)


def _settings(value: Any, policy: Policy) -> Any:
    """Free-form settings: a map, or the list of {key, value} that flow_definition.spark_conf uses."""
    if isinstance(value, dict):
        return {key: _setting(key, item, policy) for key, item in value.items()}
    if isinstance(value, list):
        return [
            {**redact_value(item, policy), "value": _setting(str(item.get("key")), item["value"], policy)}
            if isinstance(item, dict) and "value" in item
            else _mask_all(item)
            for item in value
        ]
    return _mask_all(value)


def _setting(key: str, item: Any, policy: Policy) -> Any:
    if item is None or item == "":
        return item
    if isinstance(item, str) and not _DOUBTFUL_KEY.search(key) and _PLAIN_SETTING.fullmatch(item):
        return MARK if _RANDOM.search(item) else redact_text(item, policy)
    return _secret("password" if _kind(key) == "password" else "secret", item, policy)


def _secret(kind: str, item: Any, policy: Policy) -> Any:
    """The value of a secret: booleans and counts are none, references are by setting."""
    if isinstance(item, bool) or (isinstance(item, (int, float)) and kind != "password"):
        return item
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
    text = str(item)
    if text == MARK or _PSEUDONYM.fullmatch(text):
        return item
    return "person-" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _string(text: str, policy: Policy) -> str:
    return _short(text, policy) if len(text) <= 128 else _long(text, policy)


def _long(text: str, policy: Policy) -> str:
    """Text, or JSON inside a JSON string: it is redacted as what it holds and stays JSON."""
    if text.lstrip()[:1] in ("{", "[", '"') and ("\\" in text or _doubtful(text)):
        try:
            return redact_json(text, jsontext.loads(text), policy)[0]
        except jsontext.INVALID:
            pass
    return redact_text(text, policy) or ""


_short = lru_cache(maxsize=8192)(_long)


def _mask_members(text: str, policy: Policy) -> str:
    """Values of secret members in text that is no JSON, at any level of escaping, each up to its closing bracket."""
    parts: list[str] = []
    done = 0
    for key in _KEY.finditer(text):
        kind = _kind(key[2])
        if key.start() < done or kind is None or (kind == "person" and not policy.pseudonymise_persons):
            continue
        depth, end, tokens = 0, len(text), _tokens(key[1] + '"')
        for token in tokens.finditer(text, key.end()):
            depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
            if depth <= 0:
                end = token.end() if depth == 0 else token.start()
                break
        mask = partial(_masked, quote=key[1] + '"', policy=policy)
        parts += text[done : key.end()], tokens.sub(mask, text[key.end() : end])
        done = end
    return "".join(parts) + text[done:]


def _masked(token: re.Match[str], quote: str, policy: Policy) -> str:
    value = token[0]
    if value in ("{", "}", "[", "]", "null", "true", "false") or token["key"]:
        return value
    if _REFERENCE.fullmatch(value.strip('\\" ')) and not policy.mask_references:
        return value
    return f"{quote}{MARK}{quote}"


@lru_cache(maxsize=16)
def _tokens(quote: str) -> re.Pattern[str]:
    """Brackets, bare values, and texts in quotes of one level (deeper ones have more backslashes)."""
    q = re.escape(quote)
    return re.compile(rf'(?<!\\){q}.*?(?:(?<!\\){q}(?P<key>\s*:)?|\Z)|[\[\]{{}}]|[^\s\[\]{{}},:"\\]+', re.S)
