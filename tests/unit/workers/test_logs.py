"""The logs of a worker, in separate processes, since a process sets up its logs only once."""

import json
import logging
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from workers.observing.logs import library_event, shorten_event

_PROGRAM = """
import asyncio, logging, pathlib, structlog
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from septet.settings import Settings
from workers.observing.logs import set_up_logs
set_up_logs(Settings(state_dir=pathlib.Path("."), log_format="json"))
for error in (ApplicationError("the disk is full"), KeyError("x"), asyncio.CancelledError()):
    try:
        raise error
    except BaseException:
        logging.getLogger("temporalio.activity").warning("Completing activity as failed", exc_info=True)
async def say():
    structlog.get_logger().warning("rescue_taken")
asyncio.run(ActivityEnvironment().run(say))
"""


@pytest.fixture(scope="module")
def logged() -> list[dict[str, Any]]:
    ended = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, check=True, timeout=60)
    return [json.loads(line) for line in ended.stderr.splitlines()]


def test_a_failure_that_was_told_is_one_line_with_its_cause(logged: list[dict[str, Any]]) -> None:
    """A deliberate error of an activity is one line with its cause and no traceback."""
    assert logged[0]["event"] == "temporal_sdk"
    assert logged[0]["message"] == "Completing activity as failed: ApplicationError: the disk is full"
    assert "exception" not in logged[0]


def test_a_defect_is_logged_with_its_traceback(logged: list[dict[str, Any]]) -> None:
    """A defect is logged with its traceback."""
    assert logged[1]["message"] == "Completing activity as failed: KeyError: 'x'"
    assert "Traceback" in logged[1]["exception"]


def test_a_cancelled_attempt_logs_nothing(logged: list[dict[str, Any]]) -> None:
    """A cancelled attempt logs no warning."""
    assert [event["event"] for event in logged] == ["temporal_sdk", "temporal_sdk", "rescue_taken"]


def test_each_line_of_an_activity_names_its_work_order(logged: list[dict[str, Any]]) -> None:
    """A line of an activity names work order, workflow, run, activity and attempt."""
    assert {"work_order_id", "workflow", "run_id", "activity", "attempt"} <= logged[-1].keys()


def test_what_the_sdks_core_says_of_an_outage_has_keys() -> None:
    """A log line of the SDK's core has a constant event, and keys for its words and fields."""
    core = SimpleNamespace(message="gRPC call poll retried 5 times", fields={"error": "transport", "attempt": 5})
    record = logging.LogRecord("temporalio-sdk_core::retry", logging.WARNING, "", 0, core.message, None, None)
    record.temporal_log = core
    event = library_event(None, "warning", {"event": f"{core.message} {core.fields}", "_record": record})
    assert event.pop("_record") is record
    assert event == {
        "event": "temporal_sdk",
        "logger": record.name,
        "message": core.message,
        "error": "transport",
        "attempt": "5",
    }


def test_a_terminal_shows_what_a_reader_needs() -> None:
    """A line on a terminal omits the first attempt and an activity with the step's name."""
    event = {"step": "build_plan", "activity": "build_plan", "attempt": 1, "event": "result_text_extracted"}
    assert shorten_event(None, "info", dict(event)) == {"step": "build_plan", "event": "result_text_extracted"}
    assert shorten_event(None, "info", event | {"attempt": 2})["attempt"] == 2
    assert next(iter(shorten_event(None, "info", event | {"work_order_id": "wo-1"}))) == "work_order_id"
    assert shorten_event(None, "info", event | {"activity": "finalize_json"})["activity"] == "finalize_json"


_SEALED = """
import asyncio
import gc
import logging
import pathlib
import structlog
from temporalio.exceptions import ApplicationError
from septet.settings import Settings
from workers.observing.logs import set_up_logs
set_up_logs(Settings(state_dir=pathlib.Path("."), log_format="json", seal_keys_file=pathlib.Path("keys")))
log, word = structlog.get_logger(), "Ada Lovelace"
log.warning("plan_not_posted", why=word, step="build_plan")
log.warning("budget_not_told", error=word)
log.warning("an_event_to_come", reason=word, reasons=[word], preview=word, paths=[word])
try:
    raise ValueError(word)
except ValueError as error:
    log.error("request_broke", exc_info=error)
log.warning("seal_keys_not_read", error="keys cannot be read")
async def fail():
    raise ApplicationError(word)
async def forget():
    tasks = [asyncio.create_task(fail())]
    await asyncio.wait(tasks)
asyncio.run(forget())
gc.collect()
cause = ApplicationError(word)
logging.getLogger("temporalio.activity").warning(
    f"Completing as failure during heartbeat with error of type {type(cause)}: {cause}"
)
"""


def test_a_sealed_log_quotes_nobody_whatever_the_event() -> None:
    """A sealed log withholds words of agents and people in every event, and keeps the worker's own words."""
    ended = subprocess.run([sys.executable, "-c", _SEALED], capture_output=True, check=True, timeout=60, text=True)
    posted, _, _, broke, keys, forgotten, beat = map(json.loads, ended.stderr.splitlines())
    assert "Lovelace" not in ended.stderr
    assert (posted["why"], posted["step"]) == ("(sealed)", "build_plan")
    assert broke["exception"].startswith("ValueError (sealed)\n")
    assert keys["error"] == "keys cannot be read"
    assert forgotten["message"].startswith("Task exception was never retrieved: ApplicationError None (sealed)")
    assert beat["message"].endswith("ApplicationError'>: (sealed)")
