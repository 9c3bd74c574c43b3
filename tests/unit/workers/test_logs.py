"""The logs of a worker, each in a separate process, since a process sets up its logs only once."""

import json
import logging
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

from temporalio.exceptions import ApplicationError

from workers.observing.logs import library_event, shorten_event, withhold_words

_PROGRAM = """
import logging, pathlib
from temporalio.exceptions import ApplicationError
from septet.settings import Settings
from workers.observing.logs import set_up_logs
set_up_logs(Settings(state_dir=pathlib.Path("."), log_format="json"))
try:
    raise {error}
except Exception:
    logging.getLogger("temporalio.activity").warning("Completing activity as failed", exc_info=True)
"""


def logged(error: str) -> dict[str, Any]:
    ended = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(error=error)], capture_output=True, check=True, timeout=60
    )
    event: dict[str, Any] = json.loads(ended.stderr)
    return event


def test_a_failure_that_was_told_is_one_line_with_its_cause() -> None:
    """A deliberate error of an activity is one line with its cause and no traceback."""
    event = logged("ApplicationError('the disk is full')")
    assert event["event"] == "temporal_sdk"
    assert event["message"] == f"Completing activity as failed: {ApplicationError.__name__}: the disk is full"
    assert "exception" not in event


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


def test_a_defect_is_logged_with_its_traceback() -> None:
    """A defect is logged with its traceback."""
    event = logged("KeyError('x')")
    assert event["message"] == "Completing activity as failed: KeyError: 'x'"
    assert "Traceback" in event["exception"]


def test_where_payloads_are_sealed_a_defect_tells_its_place_alone() -> None:
    """With sealed payloads a defect is logged with its type and place, and without its words."""
    try:
        raise KeyError("a word of an issue")  # noqa: TRY301 -- what is logged is a raised error
    except KeyError as error:
        event = withhold_words(None, "error", {"event": "hosts_not_heard", "exc_info": error})
    assert event["exception"].startswith("KeyError (sealed)\n")
    assert __file__ in event["exception"]
    assert "exc_info" not in event


def test_a_terminal_shows_what_a_reader_needs() -> None:
    """A line on a terminal omits the first attempt and an activity with the step's name."""
    event = {"step": "build_plan", "activity": "build_plan", "attempt": 1, "event": "result_text_extracted"}
    assert shorten_event(None, "info", dict(event)) == {"step": "build_plan", "event": "result_text_extracted"}
    assert shorten_event(None, "info", event | {"attempt": 2})["attempt"] == 2
    assert next(iter(shorten_event(None, "info", event | {"work_order_id": "wo-1"}))) == "work_order_id"
    assert shorten_event(None, "info", event | {"activity": "finalize_json"})["activity"] == "finalize_json"


def test_a_cancelled_attempt_logs_nothing() -> None:
    """A cancelled attempt logs no warning."""
    program = "import asyncio\n" + _PROGRAM.format(error="asyncio.CancelledError()").replace(
        "except Exception", "except BaseException"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, timeout=60)
    assert ended.stderr == b""


_IN_ACTIVITY = """
import asyncio, pathlib, structlog
from temporalio.testing import ActivityEnvironment
from septet.settings import Settings
from workers.observing.logs import set_up_logs
set_up_logs(Settings(state_dir=pathlib.Path("."), log_format="json"))
async def say():
    structlog.get_logger().warning("rescue_taken")
asyncio.run(ActivityEnvironment().run(say))
"""


def test_each_line_of_an_activity_names_its_work_order() -> None:
    """A line of an activity names work order, workflow, run, activity and attempt."""
    ended = subprocess.run([sys.executable, "-c", _IN_ACTIVITY], capture_output=True, check=True, timeout=60)
    assert {"work_order_id", "workflow", "run_id", "activity", "attempt"} <= json.loads(ended.stderr).keys()


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
    assert "ValueError" in broke["exception"]
    assert keys["error"] == "keys cannot be read"
    assert forgotten["message"].startswith("Task exception was never retrieved: ApplicationError None (sealed)")
    assert beat["message"].endswith("ApplicationError'>: (sealed)")
