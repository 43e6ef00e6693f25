"""Messages reach real receivers that fail, hang, refuse and recover: in the end each exactly once."""

from __future__ import annotations

import logging
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from monitoring_platform import cli
from monitoring_platform.health.notify.channels import Channel, beat, try_channels
from monitoring_platform.health.notify.delivering import Delivered, deliver, plan_due, tell_job
from tests.conftest import Site
from tests.health.notify.desk import SECRET, T0, Desk, at, site_with
from tests.health.notify.receivers import Mail, Web

ONE = "  channels: {ops: '${OPS}'}\n  fallback: [ops]\n"


def desk_to(
    make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch, web: Web, rest: str = "", timeout: int = 4
) -> Desk:
    """A desk whose one channel is this receiver."""
    monkeypatch.setenv("OPS", f"json://127.0.0.1:{web.port}/{SECRET}?rto={timeout}")
    return site_with(make_site, ONE, rest)


def test_opened_and_resolved(make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    """R-ALERT-06, R-NEW-09: pipeline, run and error are told, and the end of it; each once, with an id."""
    with Web() as web:
        desk = desk_to(make_site, monkeypatch, web, "  link: https://dagster.example.com/\n")
        desk.happened("opened", T0, update_id="u-1", first_error="[TABLE_NOT_FOUND] main.sales.orders")
        assert desk.tick(at(1)) == Delivered(1, 0, 0)
        assert desk.tick(at(2)) == Delivered(0, 0, 0)
        desk.happened("resolved", at(130))
        assert desk.tick(at(131)) == Delivered(1, 0, 0)
        first, last = web.taken
        assert first["title"] == "ERROR orders: failed: AnalysisException"
        assert first["message"].splitlines() == [
            "Since 2026-03-10 12:00 UTC",
            "Run u-1",
            "First error: [TABLE_NOT_FOUND] main.sales.orders",
            "To do: look at the error; `monitoring-platform query root_error_of_failed_requests` has all of them",
            f"id {desk.rows(transition='opened')[0]['delivery_id']}",
            "https://dagster.example.com/",
        ]
        assert (first["type"], last["type"]) == ("failure", "success")
        assert last["title"] == "RESOLVED orders: failed: AnalysisException"
        assert last["message"].startswith("Lasted 2 h 10 min, from 2026-03-10 12:00 UTC to 2026-03-10 14:10 UTC.")
        assert [(row["sent_at"], row["attempts"], row["error"]) for row in desk.rows()] == [
            (at(1), 1, None),
            (at(131), 1, None),
        ]


def test_a_channel_that_fails_in_every_way(make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    """R-ALERT-04: after refusals, silence and 429 each message has arrived once, tried after 1, 2, 4 … minutes."""
    with Web(500, "hang", 429, 403) as web:
        desk = desk_to(make_site, monkeypatch, web, timeout=1)
        desk.happened("opened", T0)
        errors = []
        for minute in (0, 0.5, 1, 2, 3, 6.9, 7, 14, 15, 16):
            desk.tick(at(minute))
            errors.append((minute, desk.rows()[0]["error"]))
        assert [error for minute, error in errors if minute in (0, 1, 3, 7)] == [
            "the service answered 500",
            "the service cannot be reached, or did not answer in time",
            "the service answered 429",
            "the service answered 403",
        ]
        (row,) = desk.rows()
        assert (row["attempts"], row["sent_at"], row["error"], row["next_try_at"]) == (5, at(15), None, None)
        assert web.titles == ["ERROR orders: failed: AnalysisException"]
        assert len(web.refused) == 4


def test_what_happens_while_a_channel_is_down(make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost, the other channel gets its messages at once, and the end is not told before the beginning."""
    with Web() as web, Web(*[503] * 30) as down:
        monkeypatch.setenv("A", f"json://127.0.0.1:{web.port}/")
        monkeypatch.setenv("B", f"json://127.0.0.1:{down.port}/")
        desk = site_with(make_site, "  channels: {a: '${A}', b: '${B}'}\n  fallback: [a, b]\n")
        for number in range(3):
            desk.happened("opened", at(number), f"i{number}", (f"p{number}",))
        desk.run(3, 4, 5, 8, 12)
        assert len(web.taken) == 3 and not down.taken
        desk.happened("resolved", at(14), "i0", ("p0",))
        desk.run(14, 15)
        down.answers.clear()
        desk.run(16, 20, 40, 41, 80, 81)
        assert sorted(down.titles) == sorted(web.titles)
        assert len(set(down.titles)) == 4
        assert down.titles.index("ERROR p0: failed: AnalysisException") < down.titles.index(
            "RESOLVED p0: failed: AnalysisException"
        )
        assert deliver(desk.warehouse, at(200)) == Delivered()


def test_a_channel_that_fails_is_left_alone(make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    with Web(*[500] * 9) as web:
        desk = desk_to(make_site, monkeypatch, web)
        for number in range(5):
            desk.happened("opened", T0, f"i{number}")
        assert desk.tick(at(1)) == Delivered(0, 1, 4)
        assert len(web.refused) == 1


def test_whatever_fails_each_message_arrives_once(
    make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two channels that fail at random while incidents come and go: at the end each message is there, once, in order."""
    chance = random.Random(5)
    with Web() as a, Web() as b:
        for name, web in (("A", a), ("B", b)):
            web.answers = [chance.choice([200, 500, 429, 403]) for _ in range(10)]
            monkeypatch.setenv(name, f"json://127.0.0.1:{web.port}/")
        desk = site_with(make_site, "  channels: {a: '${A}', b: '${B}'}\n  fallback: [a, b]\n")
        for number in range(5):
            desk.happened("opened", at(5 * number), f"i{number}", (f"p{number}",))
            if number % 2:
                desk.happened("resolved", at(5 * number + 3), f"i{number}", (f"p{number}",))
            desk.tick(at(5 * number + 4))
        desk.run(*range(30, 300, 30))
        ids = {name: sorted(row["delivery_id"] for row in desk.rows(channel=name)) for name in ("a", "b")}
        for name, web in (("a", a), ("b", b)):
            assert sorted(body["message"].splitlines()[-1].removeprefix("id ") for body in web.taken) == ids[name]
            assert len(web.taken) == 7 and web.refused
            for number in (1, 3):
                mine = [title for title in web.titles if f"p{number}:" in title]
                assert [title.split(" ")[0] for title in mine] == ["ERROR", "RESOLVED"]


def test_slack_and_mail(make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    """R-ALERT-04: both get it, through a webhook and a mail server that were down; nothing in the text has an effect."""
    from apprise.plugins.slack import NotifySlack

    with Web(500) as web, Mail() as mail:
        monkeypatch.setattr(NotifySlack, "webhook_url", f"http://127.0.0.1:{web.port}/services")
        monkeypatch.setenv("SLACK", "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ")
        monkeypatch.setenv("MAIL", f"mailto://127.0.0.1:{mail.port}/?from=monitor@example.com&to=team@example.com")
        desk = site_with(make_site, "  channels: {slack: '${SLACK}', mail: '${MAIL}'}\n  fallback: [slack, mail]\n")
        mail.is_down = True
        hostile = "<!channel> @here [x](http://evil.example) <b>bold</b> `code`\x1b[31m \u202egnp.exe"
        desk.happened("opened", T0, title=hostile, first_error=hostile)
        assert desk.tick(at(0)) == Delivered(0, 2, 0)
        mail.is_down = False
        assert desk.tick(at(1)) == Delivered(2, 0, 0)
        (posted,) = web.taken
        (attached,) = posted["attachments"]
        (received,) = mail.taken
        for shown in (attached["title"], attached["text"]):
            assert "‹!channel› ＠here ［x］(http:// evil.example) ‹b›bold‹/b› 'code'［31m gnp.exe" in shown
            assert not set(shown) & set("<>@[]`\x1b\u202e")
        assert received["subject"].startswith("ERROR orders: <!channel> @here")
        text, html = received.get_body(("plain",)), received.get_body(("html",))
        assert text is not None and "First error: <!channel> @here [x](http://evil.example) <b>" in text.get_content()
        assert html is not None and "&lt;b&gt;bold&lt;/b&gt;" in html.get_content() and "<b>" not in html.get_content()


def test_the_address_is_told_nowhere(
    make_site: Callable[..., Site],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """R-ALERT-04: neither tables nor logs nor errors hold any of it, whatever the channel does and all is logged."""
    caplog.set_level(logging.DEBUG)
    logging.getLogger("apprise").setLevel(logging.DEBUG)
    with Web(500, 404) as web:
        monkeypatch.setenv("OPS", f"json://user:{SECRET}@127.0.0.1:{web.port}/hooks/{SECRET}?+x-key={SECRET}")
        monkeypatch.setenv("GONE", f"json://127.0.0.1:1/{SECRET}")
        monkeypatch.setenv("ODD", f"nothing://{SECRET}")
        monkeypatch.setenv("BEAT", f"http://127.0.0.1:1/{SECRET}")
        channels = "  channels: {ops: '${OPS}', gone: '${GONE}', odd: '${ODD}'}\n  fallback: [ops, gone, odd]\n"
        desk = site_with(make_site, channels + "  heartbeat_url: ${BEAT}\n")
        desk.happened("opened", T0)
        desk.run(0, 1, 2)
        tried = try_channels(desk.warehouse.settings, ["ops", "gone", "odd"])
        missed = beat(desk.warehouse.settings)
    logging.getLogger("apprise").setLevel(logging.NOTSET)
    told = "".join([caplog.text, *capfd.readouterr(), repr(tried), repr(missed), repr(desk.warehouse.settings)])
    assert missed == "the heartbeat could not be sent"
    assert tried["odd"] == "the address is not understood"
    assert SECRET not in told
    root = Path(desk.warehouse.settings.warehouse.path or "")
    files = [path for path in root.rglob("*") if path.is_file()]
    assert files and not [path for path in files if SECRET.encode() in path.read_bytes()]
    assert SECRET not in repr(desk.rows())


def test_same_trouble_twice_is_one_message_and_a_second_victim_is_told(
    make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-PEER-15."""
    with Web() as web:
        desk = desk_to(make_site, monkeypatch, web)
        desk.happened("opened", T0)
        desk.happened("resolved", at(10), is_told=False)
        desk.happened("opened", at(20), is_told=False)
        desk.run(0, 5, 10, 20, 30)
        assert len(web.taken) == 1
        desk.happened("escalated", at(40), pipelines=("orders", "stock"))
        desk.tick(at(40))
        assert web.titles[1:] == ["WORSE, ERROR orders, stock: failed: AnalysisException"]
        assert web.taken[1]["message"].splitlines()[0] == "Now also: stock"


def test_rate_cap(make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 12 messages with room for 5 in an hour, 4 come alone and one tells of 8; an hour later there is room again."""
    with Web() as web:
        desk = desk_to(make_site, monkeypatch, web, "  max_per_hour: 5\n")
        for number in range(12):
            desk.happened("opened", at(number / 60), f"i{number:02d}", (f"p{number:02d}",))
        assert desk.tick(at(1)) == Delivered(12, 0, 0)
        assert [title.split(":")[0] for title in web.titles] == [
            *(f"ERROR p{number:02d}" for number in range(4)),
            "and 8 more",
        ]
        for number in range(4, 12):
            assert f"- ERROR p{number:02d}: failed" in web.taken[-1]["message"]
        desk.happened("opened", at(2), "late", ("late",))
        assert desk.tick(at(2)) == Delivered(0, 0, 1)
        assert desk.tick(at(61)) == Delivered(1, 0, 0)
        assert web.titles[-1].startswith("ERROR late")


def test_two_deliverers_at_a_time(make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    with Web() as web:
        desk = desk_to(make_site, monkeypatch, web)
        for number in range(6):
            desk.happened("opened", at(number), f"i{number}")
        done: list[Delivered] = []

        def work() -> None:
            warehouse = type(desk.warehouse)(desk.warehouse.settings)
            plan_due(warehouse, at(10))
            done.append(deliver(warehouse, at(10)))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        desk.tick(at(10))
        assert len(web.taken) == 6 and len({body["message"] for body in web.taken}) == 6
        assert len(desk.rows()) == 6


CHILD = """
import sys
from datetime import datetime
from monitoring_platform.config import load
from monitoring_platform.health.notify import delivering
from monitoring_platform.warehouse.opening import open_warehouse
from tests.health.notify import desk
send = delivering.Channel.send
def told(self, *given):
    error = send(self, *given)
    print("sent", flush=True)
    sys.stdin.read()
    return error
delivering.Channel.send = told
delivering.deliver(open_warehouse(load(sys.argv[1])), datetime.fromisoformat(sys.argv[2]))
"""


def test_a_kill_between_sending_and_recording(
    make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """At most one repeat, of the message under way, with the same id; the others come once."""
    with Web() as web:
        desk = desk_to(make_site, monkeypatch, web)
        for number in range(3):
            desk.happened("opened", at(number), f"i{number}", (f"p{number}",))
        plan_due(desk.warehouse, at(5))
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(desk.warehouse.settings.config_path), at(5).isoformat()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(os.environ),
        )
        assert child.stdout is not None
        assert child.stdout.readline() == b"sent\n"
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        assert len(web.taken) == 1
        assert [row["attempts"] for row in desk.rows()] == [1, 0, 0]
        desk.run(5, 5.5, 6, 7)
        assert [title.split(":")[0] for title in web.titles] == ["ERROR p0", "ERROR p1", "ERROR p2", "ERROR p0"]
        assert web.taken[0] == web.taken[3]


def test_messages_about_the_monitoring_job(make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    """R-ALERT-09: starts and successes where asked for, failures else by the fallback; once for a run."""
    with Web() as web, Web() as quiet:
        monkeypatch.setenv("A", f"json://127.0.0.1:{web.port}/")
        monkeypatch.setenv("B", f"json://127.0.0.1:{quiet.port}/")
        desk = site_with(
            make_site,
            "  channels: {a: '${A}', b: '${B}'}\n  fallback: [a]\n  monitoring_job: {on_start: [b], on_success: [b]}\n",
        )
        for _ in range(2):
            tell_job(desk.warehouse, "job_started", "r1", at(0))
            tell_job(desk.warehouse, "job_failed", "r1", at(1), "disk full: password=hunter2hunter2")
            tell_job(desk.warehouse, "job_succeeded", "r2", at(2))
            desk.tick(at(3))
        assert quiet.titles == ["monitoring job started", "monitoring job succeeded"]
        (failed,) = web.taken
        assert failed["title"] == "ERROR monitoring job failed"
        assert failed["message"].splitlines()[:2] == ["Run r1", "Error: disk full: password=[REDACTED]"]


def test_a_channel_that_is_no_longer_configured(
    make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for it stays, with the reason."""
    with Web() as web:
        desk = desk_to(make_site, monkeypatch, web)
        desk.happened("opened", T0)
        plan_due(desk.warehouse, T0)
        desk.put("alert_deliveries", {**desk.rows()[0], "channel": "former"})
        assert deliver(desk.warehouse, at(1)) == Delivered(0, 1, 0)
        assert desk.rows()[0]["error"] == "the configuration has no such channel"


def test_what_is_too_long_is_cut_before_the_id(make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    with Web() as web:
        settings = desk_to(make_site, monkeypatch, web).warehouse.settings
        assert Channel("ops", settings).send("title", "x" * 50_000, "info", ["id 1"]) is None
        assert 32_000 < len(web.taken[0]["message"]) <= 32_768
        assert web.taken[0]["message"].endswith("x…\nid 1")


def test_heartbeat(make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    with Web(200, 503) as web:
        monkeypatch.setenv("BEAT", f"http://127.0.0.1:{web.port}/{SECRET}")
        settings = site_with(make_site, "  heartbeat_url: ${BEAT}\n").warehouse.settings
        assert beat(settings) is None
        assert web.paths == [f"/{SECRET}"]
        assert beat(settings) == "the heartbeat was answered with 503"
    assert beat(site_with(make_site, "  link: x\n", name="other").warehouse.settings) is None


def test_nothing_is_planned_without_channels(make_site: Callable[..., Site]) -> None:
    desk = site_with(make_site, "  link: x\n")
    desk.happened("opened", T0)
    assert desk.tick(at(1)) == Delivered()
    assert not desk.warehouse.exists("alert_deliveries")


def test_the_command(
    make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`notify test`: a result for each channel, and an exit code."""
    codes: list[int] = []
    monkeypatch.setattr(cli, "_end", codes.append)  # which ends the process
    monkeypatch.setenv("MONITORING_CONFIG", "")  # the command sets it, for its process
    with Web() as web:
        monkeypatch.setenv("A", f"json://127.0.0.1:{web.port}/")
        monkeypatch.setenv("B", "json://127.0.0.1:1/")
        desk = site_with(make_site, "  channels: {a: '${A}', b: '${B}'}\n  fallback: [a]\n")
        file = ["--config", str(desk.warehouse.settings.config_path)]
        cli.app(["notify", "test", *file], standalone_mode=False)
        cli.app(["notify", "test", "--channel", "a", "--json", *file], standalone_mode=False)
        told = capsys.readouterr().out
        assert codes == [1, 0]
        assert "a: sent\nb: not sent: the service cannot be reached, or did not answer in time\n" in told
        assert '[{"channel": "a", "sent": true, "error": null}]' in told
        assert web.titles == ["Test of monitoring_platform"] * 2
        assert cli.app(["notify", "test", "--channel", "c", *file], standalone_mode=False) == 2
        assert "no channel is called 'c'; there are: a, b" in capsys.readouterr().err
