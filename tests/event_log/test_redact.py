"""event_log.md 10: secrets and personal data are replaced before anything is stored. All secrets here are fakes."""

from __future__ import annotations

import json
import time
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monitoring_platform.event_log import jsontext
from monitoring_platform.event_log.normalise import Delivered, Normalised, Place, Unreadable, normalise
from monitoring_platform.event_log.redact import DEFAULT, MARK, Policy, redact_json, redact_text, redact_value
from tests.conftest import event

NOW = datetime(2026, 1, 2, tzinfo=timezone.utc)
PLACE = Place("files", "logs/a.jsonl")
MASKED = Policy(mask_references=True)
NAMELESS = Policy(pseudonymise_persons=True)
SECRET = "Zq7FAKEsecret41"
PATTERNS = {
    "databricks token": ("token dapi0123456789abcdef0123456789abcdef-2 ok", "dapi0123456789abcdef0123456789abcdef"),
    "databricks app token": ("dsapi0123456789abcdef0123456789abcdef", "0123456789abcdef"),
    "oauth secret": ("client dose0123456789abcdef0123456789abcdef", "0123456789abcdef"),
    "aws key": ("using AKIAABCDEFGHIJKLMNOP now", "ABCDEFGHIJKLMNOP"),
    "github token": ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "abcdefghij"),
    "slack token": ("xoxb-123456789012-abcdefghijkl", "123456789012"),
    "json web token": ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl", "c2lnbmF0dXJl"),
    "password": (f"login failed: password={SECRET}", SECRET),
    "quoted password": (f'cannot parse password: "{SECRET}"', SECRET),
    "quote in password": (f'password: "ab\\"{SECRET}" given', SECRET),
    "api key": (f"X-Api-Key: {SECRET}", SECRET),
    "account key": (f"AccountName=a;AccountKey={SECRET}==;EndpointSuffix=x", SECRET),
    "odbc": (f"Driver=x;UID=app;PWD={SECRET};", SECRET),
    "azure signature": (f"https://a.blob.example.com/c/f.csv?sv=2024-01-01&sp=r&sig={SECRET}%3D", SECRET),
    "aws signature": (f"https://b.s3.example.com/f?X-Amz-Credential={SECRET}&X-Amz-Signature={SECRET}", SECRET),
    "google signature": (f"https://s.example.com/f?X-Goog-Signature={SECRET}", SECRET),
    "jdbc": (f"jdbc:postgresql://db.example.com:5432/x?user=app&password={SECRET}&ssl=true", SECRET),
    "jdbc sql server": (f"jdbc:sqlserver://db.example.com:1433;user=app;password={SECRET};encrypt=true", SECRET),
    "jdbc oracle": (f"jdbc:oracle:thin:scott/{SECRET}@//db.example.com:1521/x", SECRET),
    "url with password": (f"amqp://app:{SECRET}@mq.example.com/x", SECRET),
    "at sign in password": (f"amqp://app:p@{SECRET}@mq.example.com/x", SECRET),
    "bearer": (f"Authorization: Bearer {SECRET}", SECRET),
    "bare bearer": (f"curl said bearer {SECRET}", SECRET),
    "basic": ("sent Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA"),
    "other scheme": (f"authorization: ApiKey {SECRET}", SECRET),
    "private key": (f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n-----END RSA PRIVATE KEY----- done", SECRET),
    "private key cut off": (f"-----BEGIN PRIVATE KEY-----\n{SECRET}", SECRET),
    "slack webhook": (f"post to https://hooks.slack.com/services/T0/B0/{SECRET} failed", SECRET),
    "teams webhook": (f"https://acme.webhook.office.com/webhookb2/{SECRET}", SECRET),
    "discord webhook": (f"https://discord.example.com/api/webhooks/1/{SECRET}", SECRET),
    "e-mail": ("run as jane.o+x@mail.example.com.", "jane.o"),
    "e-mail with umlaut": ("run as jürgen@example.com", "jürgen"),
    "azure host": ("see https://adb-1234567890123456.7.azuredatabricks.net/#joblist", "1234567890123456"),
    "aws host": ("see dbc-a1b2c3d4-e5f6.cloud.databricks.com", "a1b2c3d4"),
    "google host": ("see 1234567890123456.7.gcp.databricks.com", "1234567890123456"),
    "user folder": ("cannot import /Workspace/Users/jane/lib/x.py", "jane"),
    "user folder with scheme": ("dbfs:/Users/jane/lib.jar is missing", "jane"),
}  # fmt: skip
ORDINARY = [
    "Flow 'orders' is RUNNING.",
    "Flow `main`.`sales`.`orders` has COMPLETED.",
    "Update 175b9d started by USER_ACTION.",
    "primary_key: id",
    "design: x",
    "signal=7 basically unsigned: 5",
    "basic statistics collected, basic column statistics too",
    "Bearer tokens expire",
    "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column cannot be resolved. Did you mean: `a`, `b`? SQLSTATE: 42703",
    "Expected 'version@v1.2' but found orders@5",
    "abfss://raw@acct.dfs.core.windows.net/landing/2026/01/01",
    "s3://bucket/users/2026/part-0.parquet",
    "GET /api/2.0/users/5 gave 404",
    "https://docs.databricks.com/error-messages/index.html",
    "com.example.Foo@1f2e3d",
    "keys: a, b; code = 5",
    'C:\\u0041 \\/ "a" : b',
    "",
]
CREATE_UPDATE: dict[str, Any] = {
    "create_update": {
        "cause": "API_CALL",
        "config": {
            "id": "p-1",
            "name": "orders",
            "storage": "dbfs:/pipelines/p-1",
            "serverless": False,
            "continuous": "true",
            "development": True,
            "photon": False,
            "edition": "ADVANCED",
            "channel": "CURRENT",
            "catalog": "main",
            "schema": "sales",
            "target": "sales",
            "configuration": {
                "source.password": SECRET,
                "my.setting": "9f8e7d6c5b4a3f2e1d",
                "pin.password": 12345678,
                "ref": "{{secrets/a/b}}",
                "api.token": "{{secrets/a/c}}",
                "spark.sql.shuffle.partitions": "200",
                "compression": "gzip",
                "nothing": "",
            },
            "clusters": [
                {
                    "label": "default",
                    "autoscale": {"min_workers": 1, "max_workers": 4},
                    "spark_env_vars": {"DB": f"x {SECRET}", "AWS_SECRET_ACCESS_KEY": SECRET},
                    "spark_conf": {"spark.hadoop.header": f"Authorization: Bearer {SECRET}"},
                    "init_scripts": [{"dbfs": {"destination": f"dbfs:/init/{SECRET}.sh"}}],
                    "aws_attributes": {"instance_profile_arn": f"arn:aws:iam::1:instance-profile/{SECRET}"},
                }
            ],
            "libraries": [
                {"notebook": {"path": "/Users/jane doe/project/dlt.py"}},
                {"glob": {"include": "/Workspace/Users/jane@example.com/**"}},
                {"file": {"path": "/Repos/team/x.py"}},
            ],
            "email_notifications": {"recipients": [f"{SECRET}@example.com"]},
        },
        "run_as": "jane",
    }
}


def run(*rows: Any, policy: Policy = DEFAULT) -> Normalised:
    """Rows (members or text that is none) through the normaliser."""
    delivered = [
        Unreadable("invalid JSON", row, f"line {number}") if isinstance(row, str) else Delivered(row, f"line {number}")
        for number, row in enumerate(rows, 1)
    ]
    out = normalise(delivered, PLACE, now=NOW, policy=policy)
    assert out.events.num_rows + out.quarantine.num_rows == len(rows)
    return out


def stored(out: Normalised) -> str:
    """Everything that would be stored, as one text."""
    return str(out.events.to_pylist()) + str(out.quarantine.to_pylist())


# Free text


@pytest.mark.parametrize("name", PATTERNS)
def test_secret_in_text(name: str) -> None:
    """event_log.md 10, text fields: the secret goes, the words around it stay."""
    text, secret = PATTERNS[name]
    clean = redact_text(f"before. {text}, after")
    assert clean is not None
    assert secret not in clean
    assert MARK in clean
    assert clean.startswith("before. ")


@pytest.mark.parametrize("name", PATTERNS)
def test_secret_in_every_text_column(name: str) -> None:
    """event_log.md 10: message, exception message, stack, details, extra columns, quarantined text."""
    text, secret = PATTERNS[name]
    error = {"fatal": True, "exceptions": [{"class_name": "E", "message": text, "stack": [{"method_name": text}]}]}
    row = event("1", body={"note": text, "list": [text]}, message=text, error=error)
    out = run({**row, "new_column": {"a": text}}, {**row, "timestamp": text}, {**row, "error": text}, "{" + text)
    assert secret not in stored(out)
    assert out.quarantine.num_rows == 2


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_unchanged(text: str) -> None:
    """event_log.md 10: redaction must not eat what people have to read."""
    assert redact_text(text) == text
    assert redact_value({"a": [text]}, MASKED) == {"a": [text]}


def test_surroundings_stay_readable() -> None:
    """event_log.md 10: structure is kept, the value becomes the fixed marker."""
    assert redact_text(f"jdbc:mysql://h/x?user=app&password={SECRET}&ssl=true") == (
        f"jdbc:mysql://h/x?user=app&password={MARK}&ssl=true"
    )
    assert redact_text(f"https://h/f?sv=1&sig={SECRET}&x=2") == f"https://h/f?sv={MARK}&sig={MARK}&x=2"
    assert redact_text(f"amqp://app:{SECRET}@h/x") == f"amqp://app:{MARK}@h/x"
    assert redact_text("/Workspace/Users/jane/x.py") == f"/Workspace/Users/{MARK}/x.py"


# Settings and keys


@pytest.mark.parametrize("as_text", [False, True], ids=["object", "text"])
def test_create_update(as_text: bool) -> None:
    """event_log.md 10, create_update.config in object and text form: values go, keys and safe settings stay."""
    details = json.dumps(CREATE_UPDATE) if as_text else CREATE_UPDATE
    (row,) = run({**event("1", event_type="create_update"), "details": details}).events.to_pylist()
    assert SECRET not in str(row)
    assert "jane" not in row["details"].replace('"run_as":"jane"', "")
    config = json.loads(row["details"])["create_update"]["config"]
    assert config["configuration"] == {
        "source.password": MARK,
        "my.setting": MARK,
        "pin.password": MARK,
        "ref": "{{secrets/a/b}}",
        "api.token": "{{secrets/a/c}}",
        "spark.sql.shuffle.partitions": "200",
        "compression": "gzip",
        "nothing": "",
    }
    (cluster,) = config["clusters"]
    assert cluster == {
        "label": "default",
        "autoscale": {"min_workers": 1, "max_workers": 4},
        "spark_env_vars": {"DB": MARK, "AWS_SECRET_ACCESS_KEY": MARK},
        "spark_conf": {"spark.hadoop.header": MARK},
        "init_scripts": [{"dbfs": {"destination": MARK}}],
        "aws_attributes": {"instance_profile_arn": MARK},
    }
    assert config["libraries"] == [
        {"notebook": {"path": f"/Users/{MARK}/project/dlt.py"}},
        {"glob": {"include": f"/Workspace/Users/{MARK}/**"}},
        {"file": {"path": "/Repos/team/x.py"}},
    ]
    assert config["email_notifications"] == {"recipients": [MARK]}
    safe = "name storage serverless continuous development photon edition channel catalog schema target"
    assert {name: config[name] for name in safe.split()} == {
        name: CREATE_UPDATE["create_update"]["config"][name] for name in safe.split()
    }
    assert (row["serverless"], row["continuous"], row["development"], row["photon"]) == (False, True, True, False)
    assert (row["edition"], row["channel"]) == ("ADVANCED", "CURRENT")
    assert (row["default_catalog"], row["default_schema"]) == ("main", "sales")


def test_references_are_masked_by_setting() -> None:
    """event_log.md 10: a reference is no secret but names its scope; masking is a setting."""
    given = {"configuration": {"ref": "{{secrets/a/b}}"}, "password": "{{secrets/a/b}}", "x": "use {{secrets/a/b}} now"}
    assert redact_value(given) == given
    assert redact_value(given, MASKED) == {"configuration": {"ref": MARK}, "password": MARK, "x": f"use {MARK} now"}
    assert redact_text("password={{secrets/a/b}}") == "password={{secrets/a/b}}"
    assert redact_text(f"password={{{{{SECRET}") == f"password={MARK}"  # only looks like a reference
    row = event("1", event_type="create_update", body={"config": {"configuration": {"a": "{{secrets/a/b}}"}}})
    assert "{{secrets/a/b}}" in run(row).events["details"][0].as_py()
    assert "secrets" not in stored(run({**row, "message": "{{secrets/a/b}}"}, "{ {{secrets/a/b}}", policy=MASKED))


@pytest.mark.parametrize("key", ["spark_conf", "options", "sparkConf", "SPARK_CONF"])
def test_settings_as_map_and_as_list(key: str) -> None:
    """event_log.md 10: sink_definition.options and flow_definition.spark_conf, the latter a list of {key, value}."""
    pairs = [
        {"key": "a.b", "value": f"x {SECRET}", "note": f"password={SECRET}"},
        {"key": "ok", "value": "true"},
        SECRET,
    ]
    assert redact_value({key: {"a.b": f"x {SECRET}", "ok": "true", "deep": {"c": [SECRET]}}}) == {
        key: {"a.b": MARK, "ok": "true", "deep": {"c": [MARK]}}
    }
    assert redact_value({key: pairs}) == {
        key: [{"key": "a.b", "value": MARK, "note": f"password={MARK}"}, {"key": "ok", "value": "true"}, MARK]
    }
    assert redact_value({key: f"a={SECRET}"}) == {key: MARK}
    sink = event("1", event_type="sink_definition", body={"format": "kafka", key: {"kafka.sasl.jaas.config": SECRET}})
    flow = event("2", event_type="flow_definition", body={"output_dataset": "a.b.c", key: pairs})
    out = run(sink, flow)
    assert SECRET not in stored(out)
    assert out.events["output_dataset"].to_pylist() == [None, "a.b.c"]


@pytest.mark.parametrize(
    "key",
    [
        "password",
        "db_passwd",
        "pwd",
        "DB_PWD",
        "passphrase",
        "client_secret",
        "clientSecret",
        "api_token",
        "apiKey",
        "x-api-key",
        "access_key",
        "account.key",
        "private_key",
        "sas",
        "sasToken",
        "sig",
        "credentials",
        "authorization",
        "connectionString",
        "webhook_url",
    ],
)
def test_secret_key(key: str) -> None:
    """event_log.md 10, redact by key name: text, lists and maps below it are masked, structure stays."""
    assert redact_value({key: SECRET}) == {key: MARK}
    assert redact_value({"a": [{key: [SECRET, {"b": SECRET}]}]}) == {"a": [{key: [MARK, {"b": MARK}]}]}
    assert redact_value({key: None}) == {key: None}
    assert redact_value({key: ""}) == {key: ""}


@pytest.mark.parametrize(
    "key", ["primary_key", "key", "keys", "design", "signal", "assign", "basis", "passed_records", "name", "sasquatch"]
)
def test_harmless_key(key: str) -> None:
    """event_log.md 10: keys that merely contain such letters hold no secret."""
    assert redact_value({key: "value"}) == {key: "value"}


def test_number_under_a_secret_key() -> None:
    """event_log.md 10: a password may be a number; a count of tokens is none."""
    assert redact_value({"password": 12345678, "total_tokens": 500, "use_token": True}) == {
        "password": MARK,
        "total_tokens": 500,
        "use_token": True,
    }


def test_persons_by_policy() -> None:
    """event_log.md 10: persons stay by default; by setting they get a stable pseudonym, so that audit still groups."""
    row = event("1", event_type="user_action", body={"action": "START", "user_name": "jane", "user_id": 7}, user_id=7)
    again = event(
        "2", event_type="user_action", body={"action": "STOP", "user_name": "jane", "user_id": 7}, user_id="7"
    )
    other = event("3", event_type="user_action", body={"action": "STOP", "user_name": "joe"}, user_id="joe")
    kept = run(row, again, other).events.to_pylist()
    assert kept[0]["origin"]["user_id"] == kept[1]["origin"]["user_id"] == 7
    assert json.loads(kept[0]["details"])["user_action"]["user_name"] == "jane"
    out = run(row, again, other, '{"user_name": "jane", "user_id": 7, half', policy=NAMELESS)
    assert "jane" not in stored(out)
    assert "joe" not in stored(out)
    first, second, third = out.events.to_pylist()
    names = [json.loads(r["details"])["user_action"]["user_name"] for r in (first, second, third)]
    assert names[0] == names[1] != names[2]
    assert first["origin"]["user_id"] == second["origin"]["user_id"] != 7
    assert third["origin"]["user_id"] != first["origin"]["user_id"]
    assert '"user_id": "[REDACTED]"' in out.quarantine["raw"][0].as_py()


# Where secrets hide


def test_json_inside_a_json_string() -> None:
    """event_log.md 10, stream_progress.progress_json: redacted as what it holds, and it stays JSON."""
    inner = {
        "runId": "r",
        "token": 5,
        "options": {"plain": SECRET},
        "credentials": {"user": [SECRET]},
        "n": [1, {"a": "b"}],
    }
    nested = json.dumps({"again": json.dumps(inner)})
    body = {"progress_json": json.dumps(inner), "nested": nested, "cut": json.dumps(inner)[:-9]}
    for details in ({"stream_progress": body}, json.dumps({"stream_progress": body})):
        (row,) = run({**event("1", event_type="stream_progress"), "details": details}).events.to_pylist()
        assert SECRET not in row["details"]
        found = json.loads(row["details"])["stream_progress"]
        expected = {**inner, "options": {"plain": MARK}, "credentials": {"user": [MARK]}}
        assert json.loads(found["progress_json"]) == expected
        assert json.loads(json.loads(found["nested"])["again"]) == expected


def test_json_inside_a_json_string_without_secrets_is_verbatim() -> None:
    """R-UNI-08: schema_json with a column called password is no secret and keeps its spelling."""
    schema = '{ "fields": [ {"name": "password", "type": "string"} ] }'
    details = json.dumps({"flow_definition": {"schema_json": schema, "explain_text": "Project [key#1]"}}, indent=1)
    assert run({**event("1"), "details": details}).events["details"].to_pylist() == [details]


@pytest.mark.parametrize(
    "details",
    [
        '{"flow_progress": {"note": "\\u0070assword=SECRET"}}',
        '{"\\u0070assword": "SECRET"}',
        '{"a": "jane\\u0040example.com"}',
        '{"a": "https:\\/\\/hooks.slack.com\\/services\\/SECRET"}',
        '{"path": "\\/Users\\/jane\\/x"}',
        '{"a": "AccountKey\\u003dSECRET"}',
        '{"a": {"password": "SECRET", "password": ""}}',
        '"{\\"password\\": \\"SECRET\\"}"',
        '[{"api_key": ["SECRET"]}]',
    ],
)
def test_escapes_and_repeated_keys(details: str) -> None:
    """event_log.md 10: escapes, a member that is hidden behind its repetition, text in text."""
    details = details.replace("SECRET", SECRET)
    (row,) = run({**event("1"), "details": details}).events.to_pylist()
    assert SECRET not in str(row)
    assert "jane" not in str(row)
    json.loads(row["details"])
    out = run({**event("2"), "details": details[:-1]}, details[:-1])
    assert SECRET not in stored(out)
    assert "jane" not in stored(out)


@pytest.mark.parametrize("as_text", [False, True], ids=["object", "text"])
@pytest.mark.parametrize("cut", [1, 30, 200, 400])
def test_quarantined_half_line(as_text: bool, cut: int) -> None:
    """event_log.md 10, same rule for quarantine: settings in a line that ends early, at any level of escaping."""
    sink = {"sink_definition": {"options": [{"key": "a", "value": SECRET}], "progress_json": json.dumps(CREATE_UPDATE)}}
    for body in (CREATE_UPDATE, sink):
        line = json.dumps({**event("1"), "details": json.dumps(body) if as_text else body})
        (row,) = run(line[:-cut]).quarantine.to_pylist()
        assert SECRET not in row["raw"]
        assert "my.setting" in line
        assert "9f8e7d6c5b4a3f2e1d" not in row["raw"]
        assert row["raw"].startswith('{"id": "1", "timestamp": "2026-01-01T00:00:00.000Z"')


def test_refused_row() -> None:
    """event_log.md 10, same rule for quarantine: a row without time is redacted by key on every level, id and all."""
    row = {
        "id": "1",
        "timestamp": {"password": ["x", SECRET]},
        "origin": {"pipeline_id": "p"},
        "api_token": SECRET,
        "details": json.dumps(CREATE_UPDATE),
        "message": {"secret": SECRET},
    }
    (kept,) = run(row).quarantine.to_pylist()
    assert SECRET not in str(kept)
    assert (kept["pipeline_id"], kept["event_id"]) == ("p", "1")
    assert json.loads(kept["raw"])["api_token"] == MARK
    assert run({**row, "timestamp": "password=" + SECRET}).quarantine["reason"].to_pylist() == [
        f"unreadable timestamp 'password={MARK}'"
    ]


def test_mark_is_no_error_code() -> None:
    """event_log.md 6.9: a message that begins with the marker has no error class."""
    error = {"exceptions": [{"message": "jane@example.com may not read this"}]}
    (row,) = run(event("1", error=error)).events.to_pylist()
    assert (row["exception_message"], row["error_class"]) == (f"{MARK} may not read this", None)


@pytest.mark.parametrize(
    "unit",
    [
        "\\",
        '\\"',
        '"',
        "http://",
        "a@",
        "token",
        "token: '",
        '{"password": ',
        "://a:",
        "?sig",
        "-----BEGIN ",
        "eyJ",
        "basic ",
    ]
    + ["a.", "/Users/", "key=", '"key":', "{{secrets/", "bearer    ", "jdbc:oracle:thin:a", "x-amz-", "\\u00", " "],
)
def test_hostile_text_takes_no_time(unit: str) -> None:
    """event_log.md 9: megabytes of anything are read in time that grows with their length only."""
    text = unit * (30_000 // len(unit)) + " secret databricks"
    begin = time.process_time()
    redact_text(text)
    redact_value({"a": text, "b": "{" + text})
    assert time.process_time() - begin < 1


# Properties

WORDS = st.sampled_from(
    [
        *("password=", "token: ", '"', "'", "\\", '\\"', "{", "}", "[", "]", ":", ",", " ", MARK, "{{secrets/a/b}}"),
        *(
            "@x.io",
            "Bearer ",
            "basic ",
            "https://",
            "jdbc:oracle:thin:a/",
            "/Users/",
            "?sig=",
            "configuration",
            "options",
        ),
        *("user_name", "-----BEGIN PRIVATE KEY-----", "abcDEF123456", "\\u0040", "é", "\ud800", "\n", "null", "7"),
    ]
)
TEXT = st.lists(WORDS | st.text(max_size=5), max_size=12).map("".join)
KEYS = st.sampled_from(["password", "options", "spark_conf", "user_name", "init_scripts", "a", "key", "value"]) | TEXT
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3) | inner.map(json.dumps),
    max_leaves=8,
)
POLICIES = st.builds(Policy, st.booleans(), st.booleans())


@given(TEXT, POLICIES)
def test_text_is_redacted_once(text: str, policy: Policy) -> None:
    """event_log.md 10: redacting again changes nothing, so that re-reading our own exports is stable."""
    once = redact_text(text, policy)
    assert redact_text(once, policy) == once


@given(VALUES, POLICIES)
def test_value_is_redacted_once_and_stays_json(value: Any, policy: Policy) -> None:
    """event_log.md 10: keys and structure stay, JSON stays valid, also inside strings."""
    once = redact_value(value, policy)
    assert redact_value(once, policy) == once
    assert _shape(once) == _shape(value)
    text, clean = redact_json(json.dumps(value), value, policy)
    assert json.loads(text) == clean == once


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shape(item) for key, item in value.items()}
    return [_shape(item) for item in value] if isinstance(value, list) else None


SECRETS = st.from_regex(r"[A-Za-z0-9]{12,24}", fullmatch=True).map(lambda text: "Zx9" + text)
SECRET_KEYS = st.sampled_from(
    ["password", "client_secret", "api_token", "accessKey", "credentials", "connection_string"]
)


@st.composite
def planted(draw: st.DrawFn) -> tuple[str, Any]:
    """A secret, and a value that holds it under a secret key, in any nesting of objects, lists and JSON text."""
    secret = draw(SECRETS)
    value: Any = secret
    for wrap in draw(st.lists(st.sampled_from(["map", "list"]), max_size=2)):
        value = {"inner": value} if wrap == "map" else ["x", value]
    value = {draw(SECRET_KEYS): value, "note": "n"}
    for wrap in draw(st.lists(st.sampled_from(["map", "list", "text"]), max_size=4)):
        value = {"a": 1, "b": value} if wrap == "map" else [value, None] if wrap == "list" else json.dumps(value)
    return secret, value


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60)
@given(
    planted(),
    st.sampled_from([*event("1"), "extra_column", "origin.new", "origin.flow_name", "raw", "half"]),
    st.booleans(),
)
def test_planted_secret_never_survives(secret_and_value: tuple[str, Any], where: str, placed: bool) -> None:
    """event_log.md 10: in no column of a kept row, a refused row or a quarantined text.

    Names and ids are kept as they are: text in their place is a name, whatever it looks like.
    """
    secret, value = secret_and_value
    if isinstance(value, str) and where in ("id", "level", "event_type", "maturity_level", "origin.flow_name"):
        value = [value]
    row = {**event("1", message="m"), **({} if placed else {"timestamp": None})}
    if where.startswith("origin."):
        row["origin"] = {**row["origin"], where[7:]: value}
    elif where not in ("raw", "half"):
        row[where] = value
    text = json.dumps({**row, "details": value})
    out = run(text if where == "raw" else text[: text.rindex(secret) + len(secret)] if where == "half" else row)
    assert secret not in stored(out)
    for kept in out.events.to_pylist():
        for name in ("details", "extra"):
            assert kept[name] is None or jsontext.loads(kept[name]) is not None
