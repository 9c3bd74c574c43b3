"""The output of five real CLIs in some 190 situations, compared with the outcome written by hand for each."""

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from fakes.agent_streams import CLIS

from septet.agents.clis.adapter import Dialect
from septet.agents.clis.command.adapter import COMMAND
from septet.agents.clis.registry import adapter_for
from septet.agents.outcomes.endings import CANCELLED
from septet.agents.outcomes.outcome import NO_USAGE, ExitRecord, Outcome
from septet.contracts.facts import Usage

RECORDINGS: Final = Path(__file__).parents[2] / "data" / "recordings"
FIGURES: Final = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
ODD_CHUNK_BYTES: Final = 613

Row = Mapping[str, Any]
TABLES: Final[Mapping[str, Mapping[str, Row]]] = {
    cli: tomllib.loads((RECORDINGS / "expected" / f"{cli}.toml").read_text(encoding="utf-8")) for cli in CLIS
}


def rows(wanted: Callable[[Row], bool] = lambda _: True) -> list[Any]:
    return [
        pytest.param(cli, case, id=f"{cli}/{case}")
        for cli, table in TABLES.items()
        for case, row in table.items()
        if wanted(row)
    ]


def read(
    cli: str, case: str, *, end: ExitRecord | None = None, chunk_bytes: int = 1 << 20, before_events: bytes = b""
) -> Outcome:
    """Return the outcome of a recording; `before_events` is inserted before each event."""
    row = TABLES[cli][case]
    stream = reader(cli, row)
    printed = (RECORDINGS / cli / f"{case}.stdout").read_bytes()
    printed = re.sub(rb'^(?=\{".*\}$)', lambda _: before_events, printed, flags=re.MULTILINE)
    for start in range(0, len(printed), chunk_bytes):
        stream.feed(printed[start : start + chunk_bytes])
    stderr = (RECORDINGS / cli / f"{case}.stderr").read_text(encoding="utf-8", errors="replace")
    return stream.outcome(end or ended(cli, case, row), stderr)


def reader(cli: str, row: Row) -> Dialect:
    adapter = COMMAND if row.get("dialect") == "text" else adapter_for(cli)
    return adapter.dialect(used_before(cli, row))


def used_before(cli: str, row: Row) -> Usage:
    usage = NO_USAGE
    while "after" in row:
        row = TABLES[cli][row["after"]]
        usage = usage.plus(Usage(**{figure: row[figure] for figure in FIGURES if figure in row}))
    return usage


def ended(cli: str, case: str, row: Row) -> ExitRecord:
    """Return the end of the recorded process; `subprocess` reports a signal as a negative number."""
    code = int((RECORDINGS / cli / f"{case}.exit").read_text())
    return ExitRecord(
        cause=row.get("cause", "exited"),
        exit_code=code if code >= 0 else None,
        signal=-code if code < 0 else None,
    )


def facts(outcome: Outcome) -> dict[str, Any]:
    return {
        "ended": outcome.ended,
        "kind": outcome.kind,
        "text": outcome.text or None,
        "structured": outcome.structured,
        "session_id": outcome.session_id,
        "model": outcome.model,
        **{figure: getattr(outcome.usage, figure) for figure in FIGURES},
        "cost_usd": None if outcome.usage.cost_usd is None else round(outcome.usage.cost_usd, 9),
        "turns": outcome.turns,
        "tool_calls": outcome.tool_calls,
        "retries": outcome.api_retries,
        "denials": [denial.partition("(")[0] for denial in outcome.denials],
        "retryable": outcome.retryable,
        "exit_code": outcome.exit_code,
        "signal": outcome.signal,
    }


def told(row: Row) -> dict[str, Any]:
    """Return a row with the default of each fact that it leaves out."""
    nothing = {"kind": "", "retryable": False, "denials": []}
    counts = dict.fromkeys((*FIGURES, "turns", "tool_calls", "retries"), 0)
    absent = dict.fromkeys(("text", "structured", "session_id", "model", "cost_usd", "exit_code", "signal"))
    everything = {**nothing, **counts, **absent, **row}
    notes = ("why", "dialect", "cause", "after", "message", "remedy", "warnings", "retry_after_seconds")
    return {name: value for name, value in everything.items() if name not in notes}


@pytest.mark.parametrize(("cli", "case"), rows())
def test_recording_has_the_outcome_that_a_careful_reader_wrote_down(cli: str, case: str) -> None:
    """Every fact of the outcome equals the table's: end, text, figures, session, error and warnings."""
    row = TABLES[cli][case]
    outcome = read(cli, case)
    assert told(row) == facts(outcome)
    assert row.get("message", "") in outcome.message
    assert row.get("remedy", "").lower() in outcome.remedy.lower()
    assert outcome.retry_after_seconds == row.get("retry_after_seconds", outcome.retry_after_seconds)
    expected = row.get("warnings", [])
    assert len(expected) == len(outcome.warnings)
    assert all(part in warning for part, warning in zip(expected, outcome.warnings, strict=True))


@pytest.mark.parametrize(("cli", "case"), rows())
def test_outcome_does_not_depend_on_how_the_stream_is_cut(cli: str, case: str) -> None:
    """A stream in odd pieces has the same outcome as the whole stream."""
    assert read(cli, case) == read(cli, case, chunk_bytes=ODD_CHUNK_BYTES)


@pytest.mark.parametrize(
    ("cli", "case"), rows(lambda row: row["ended"] in {"ok", "denied"} and row.get("dialect") != "text")
)
def test_answer_does_not_depend_on_what_stands_before_the_events(cli: str, case: str) -> None:
    """A terminal's title, a log line or half an event before an event neither hides nor adds one."""
    for before in (b'\x1b]0;fix {"this"\x07\x1b[?25l', b'Warning: no "mcp" {', b'{"type":"user","cut":"o'):
        assert read(cli, case) == read(cli, case, before_events=before)


@pytest.mark.parametrize(("cli", "case"), rows())
def test_run_that_a_person_cancelled_is_cancelled_whatever_it_printed(cli: str, case: str) -> None:
    """A cancelled run has no answer, whatever its stream holds."""
    outcome = read(cli, case, end=ExitRecord("ended", why=CANCELLED, signal=15))
    assert outcome.ended == "cancelled"
    assert outcome.text is None
    assert not outcome.has_answer


@pytest.mark.parametrize(("cli", "case"), rows(lambda row: row["ended"] == "ok"))
def test_answer_of_a_run_that_failed_at_its_end_does_not_count(cli: str, case: str) -> None:
    """The same stream with another exit code than 0 gives no text."""
    outcome = read(cli, case, end=ExitRecord("exited", exit_code=3))
    assert outcome.ended not in {"ok", "denied"}
    assert outcome.text is None


@pytest.mark.parametrize(("cli", "case"), rows(lambda row: "session_id" in row))
def test_session_is_known_from_the_first_event_on(cli: str, case: str) -> None:
    """The first line names the session, so that a killed run can be resumed; copilot names it only at the end."""
    printed = (RECORDINGS / cli / f"{case}.stdout").read_bytes()
    if cli != "copilot" and printed.startswith(b'{"'):
        stream = adapter_for(cli).dialect()
        stream.feed(printed[: printed.index(b"\n") + 1])
        assert TABLES[cli][case]["session_id"] == stream.progress.session_id
    assert TABLES[cli][case]["session_id"] == read(cli, case).session_id


@pytest.mark.parametrize("cli", CLIS)
def test_table_and_recordings_name_the_same_cases(cli: str) -> None:
    """Each recording has a row, and each row a recording."""
    assert set(TABLES[cli]) == {path.stem for path in (RECORDINGS / cli).glob("*.stdout")}


def test_recordings_hold_no_secret_and_no_machine() -> None:
    """No recording holds a real key, a real home or the name of a real registry."""
    words = b"".join(path.read_bytes() for path in sorted(RECORDINGS.rglob("*.*")))
    for forbidden in (b"/root/", b"sk-ant-", b"ghp_", b"AIza", b"Bearer ", b"registry" + b".npmjs"):
        assert forbidden not in words
