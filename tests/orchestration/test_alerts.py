"""The sensors that tell: messages that are due, and runs of the monitoring job itself. No engine."""

from collections.abc import Callable, Iterator
from typing import Any

import dagster as dg
import pytest

from monitoring_platform.config import load, use_config
from monitoring_platform.cycle.clock import clock
from monitoring_platform.definitions import build_defs
from monitoring_platform.orchestration.jobs import REFRESH
from monitoring_platform.orchestration.resources import Platform
from monitoring_platform.orchestration.sensors import make_job_messages
from tests.conftest import Site
from tests.health.notify.desk import Desk, site_with
from tests.health.notify.receivers import Web

ONE = "  channels: {ops: '${OPS}'}\n  fallback: [ops]\n"


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as web:
        yield web


@pytest.fixture
def told(make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch, web: Web) -> Callable[[str], Desk]:
    """A site with one channel, whose configuration is the one that definitions find."""

    def made(rest: str) -> Desk:
        monkeypatch.setenv("OPS", f"json://127.0.0.1:{web.port}/")
        monkeypatch.setenv("BEAT", f"http://127.0.0.1:{web.port}/beat")
        desk = site_with(make_site, ONE, rest)
        monkeypatch.setenv("MONITORING_CONFIG", "")
        use_config(desk.warehouse.settings.config_path)
        return desk

    return made


def platform(desk: Desk) -> Platform:
    return Platform(config_path=str(desk.warehouse.settings.config_path))


def tick(desk: Desk) -> str:
    """What the sensor `alerts` says."""
    sensor = build_defs().resolve_sensor_def("alerts")
    with dg.build_sensor_context(resources={"platform": platform(desk)}) as context:
        return str(sensor.evaluate_tick(context).skip_message)


def test_alerts(told: Callable[[str], Desk], web: Web) -> None:
    """R-ALERT-08: it sends what is due, and a channel that is down does not make it fail."""
    desk = told("")
    assert tick(desk) == "nothing is due"
    desk.happened("opened", clock(None))
    web.answers = [503]
    assert tick(desk) == "0 sent, 1 failed, 0 wait for their next try"
    assert tick(desk) == "0 sent, 0 failed, 1 wait for their next try"
    desk.happened("opened", clock(None), "i2", ("stock",))
    assert tick(desk) == "1 sent, 0 failed, 1 wait for their next try"
    assert web.titles == ["ERROR stock: failed: AnalysisException"]


def test_alerts_without_channels(make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    desk = site_with(make_site, "  link: x\n")
    monkeypatch.setenv("MONITORING_CONFIG", "")
    use_config(desk.warehouse.settings.config_path)
    assert tick(desk) == "no channel is configured"
    assert not desk.warehouse.exists("alert_deliveries")


@dg.op
def marts(context: dg.OpExecutionContext) -> None:
    """Fails where the run is told to."""
    if context.run.tags.get("fails"):
        raise ValueError("disk full")


@dg.job(name=REFRESH)
def refresh() -> None:
    """Stands for the monitoring job."""
    marts()


def ended(desk: Desk, **tags: str) -> str:
    """A run of the job, after which each sensor has heard of it twice; its id."""
    with dg.DagsterInstance.ephemeral() as instance:
        result = refresh.execute_in_process(instance=instance, tags=tags, raise_on_error=False)
        events = {event.event_type: event for event in result.all_events}
        names = {"job_started": "RUN_START", "job_succeeded": "RUN_SUCCESS", "job_failed": "RUN_FAILURE"}
        for _ in range(2):
            for sensor in make_job_messages(refresh, True):
                event: Any = events.get(dg.DagsterEventType[names[sensor.name]])
                if event is not None:
                    given = {"platform": platform(desk)}
                    with dg.build_run_status_sensor_context(
                        sensor.name, event, instance, result.dagster_run, resources=given
                    ) as context:
                        sensor(context)
        return result.run_id


def test_a_run_that_failed(told: Callable[[str], Desk], web: Web) -> None:
    """R-ALERT-09: the fallback hears of it, with run and error, once; of a start nobody asked to hear."""
    desk = told("")
    run = ended(desk, fails="yes")
    tick(desk)
    assert web.titles == ["ERROR monitoring job failed"]
    assert web.taken[0]["message"].splitlines()[:2] == [f"Run {run}", "Error: marts: ValueError: disk full"]


def test_a_run_that_succeeded(told: Callable[[str], Desk], web: Web) -> None:
    """R-ALERT-09, and the watchdog hears of it."""
    desk = told("  heartbeat_url: ${BEAT}\n  monitoring_job: {on_start: [ops], on_success: [ops], on_failure: []}\n")
    ended(desk)
    tick(desk)
    assert web.titles == ["monitoring job started", "monitoring job succeeded"]
    assert "/beat" in web.paths
    ended(desk, fails="yes")
    tick(desk)
    assert web.titles[2:] == ["monitoring job started"]


def test_definitions(told: Callable[[str], Desk]) -> None:
    """The code location loads with them, and they run where the schedule does."""
    desk = told("")
    assert load(desk.warehouse.settings.config_path).schedule.enabled
    for name in ("alerts", "job_started", "job_succeeded", "job_failed"):
        assert build_defs().resolve_sensor_def(name).default_status == dg.DefaultSensorStatus.RUNNING
