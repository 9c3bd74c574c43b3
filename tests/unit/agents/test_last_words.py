"""The error about a CLI that ended without an answer: the cause in the CLI's words, and a fitting remedy.

Sources: anthropics/claude-code 74225, openai/codex-plugin-cc 635, littlebearapps/untether 724, monoes/monomind 191,
github/copilot-cli 1181 and 1271.
"""

from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from fakes.agent_streams import BAD, CLIS, GOOD
from fakes.run_records import RECORD

from septet.agents.clis.registry import adapter_for
from septet.agents.outcomes.outcome import ExitRecord, Outcome
from septet.agents.runs.folders import Run
from septet.agents.turns.end_of_turn import failure_of
from septet.agents.turns.next_move import GiveUp, Start, next_move
from septet.errors import AgentError

IDLE: Final = ExitRecord(cause="idle_limit")
OLD_CODEX: Final = '{"id":"1","msg":{"type":"task_started"}}\n{"id":"1","msg":{"type":"task_complete"}}\n'


SESSION: Final = {
    "claude": '{"type":"system","subtype":"init","session_id":"s"}\n',
    "codex": '{"type":"thread.started","thread_id":"s"}\n',
    "copilot": '{"type":"assistant.turn_start","data":{"turnId":"0"}}\n',
    "gemini": '{"type":"init","session_id":"s"}\n',
    "opencode": '{"type":"step_start","sessionID":"s","part":{}}\n',
}


def ended(agent: str, end: ExitRecord, stderr: str = "", stdout: str = "") -> Outcome:
    dialect = adapter_for(agent).dialect()
    dialect.feed(stdout.encode())
    return dialect.outcome(end, stderr)


def told(agent: str, outcome: Outcome) -> AgentError:
    """Return the error about the outcome, after which no further start follows."""
    run = Run(Path("/"), replace(RECORD, agent=agent, argv=(f"/opt/{agent}",)))
    return failure_of(outcome, run, ["first", "rerun"], crashed_again=True)


@pytest.mark.parametrize(
    ("stderr", "waited"),
    [
        ('Error: {"data":{"type":"unlock_full_access_notice"},"error_type":"grace_daily_limit_reached"}', True),
        ("Failed to load models: Error: 429 rate limit exceeded", True),
        ("Error: EDQUOT: disk quota exceeded, mkdir '/home/a/.claude'", False),
        ("npm warn deprecated express-rate-limit@1.0.0", False),
    ],
)
@pytest.mark.parametrize("agent", CLIS)
def test_an_error_line_about_a_limit_is_waited_for_where_no_event_came(
    agent: str, stderr: str, *, waited: bool
) -> None:
    """A line about a limit makes the run wait for a minute at first; any other line is a refusal to start."""
    outcome = ended(agent, BAD, f"Loaded.\n{stderr}\n")
    assert (outcome.ended, outcome.kind) == (("api_error", "rate_limit") if waited else ("crashed", "refused"))
    assert stderr in outcome.message


@pytest.mark.parametrize("line", ["Error: 429 rate limit exceeded\n", "mcp: not logged in"])
@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_a_line_about_a_limit_or_a_login_after_an_event_is_noise(agent: str, line: str) -> None:
    """Tools of the agent print to stderr too, so a line after an event means nothing."""
    assert ended(agent, BAD, line, SESSION[agent]).kind == "exit_code"


NOISE: Final = (
    "WARNING: proceeding, even though we could not create PATH aliases",
    "2026-11-28T12:00:00.123Z  WARN codex_core: no such file",
    "⚠ Warning: 256-color support was not detected",
    "(node:11) [DEP0040] DeprecationWarning: The `punycode` module is deprecated.",
    "(Use `node --trace-deprecation ...` to show where the warning was created)",
)


@pytest.mark.parametrize("noise", NOISE)
def test_the_error_on_stderr_is_named_and_not_a_warning_beside_it(noise: str) -> None:
    """The message names the error; it names warnings only if stderr holds nothing else."""
    error = "\x1b[31mError:\x1b[0m failed to initialize: not permitted"
    message = ended("codex", BAD, f"{noise}\n{error}\n{noise}\n").message
    assert message == "The agent's program refused to start: Error: failed to initialize: not permitted"
    assert noise in ended("codex", BAD, f"{noise}\n").message


@pytest.mark.parametrize("spoke", [True, False])
@pytest.mark.parametrize("agent", list(SESSION))
def test_a_limit_that_stderr_names_before_an_agent_falls_silent_is_waited_for(agent: str, *, spoke: bool) -> None:
    """The silence counts as the limit that stderr names, and the wait ends at the named time."""
    words = "You have reached your usage limit. Try again in 2 hours."
    end = ExitRecord(cause="idle_limit", signal=15, ended_at="2026-03-09T12:00:00Z")
    outcome = ended(agent, end, f"Loading.\n{words}\n", SESSION[agent] if spoke else "")
    assert (outcome.ended, outcome.kind, outcome.retry_is_named) == ("api_error", "rate_limit", True)
    assert outcome.retry_after_seconds == pytest.approx(7200, abs=10)
    assert words in outcome.message


@pytest.mark.parametrize("agent", SESSION)
def test_words_about_a_limit_that_may_be_of_a_tool_are_told_of_an_agent_that_fell_silent(agent: str) -> None:
    """Words without a time may be a tool's: the idle limit counts, and its message quotes the error line."""
    stderr = "Loading.\nError: 429 rate limit exceeded\n"
    outcome = ended(agent, IDLE, stderr, SESSION[agent])
    assert (outcome.ended, outcome.kind) == ("limit", "idle")
    assert outcome.message.endswith("too long. Error: 429 rate limit exceeded")
    assert "permission" in outcome.remedy


@pytest.mark.parametrize("end", [GOOD, BAD], ids=["0", "1"])
@pytest.mark.parametrize(("agent", "place"), [("claude", "~/.claude"), ("codex", "~/.codex"), ("scripted", "")])
def test_a_cli_that_ends_without_a_word_is_told_as_such(agent: str, place: str, end: ExitRecord) -> None:
    """The CLI is started once more; then the remedy names login, a command to run and the configuration."""
    outcome = ended(agent, end)
    assert next_move(["first"], outcome, seen_now=True) == Start("rerun")
    failure = told(agent, outcome)
    assert f"exit code {end.exit_code} and printed nothing" in str(failure)
    assert f"`/opt/{agent}`" in failure.remedy
    assert place in failure.remedy
    assert ("login" in failure.remedy) == bool(place)


@pytest.mark.parametrize(
    ("agent", "stdout"),
    [("codex", OLD_CODEX), ("opencode", '{"event":"x"}\n'), ("copilot", '{"role":"assistant"}\n')],
)
def test_another_dialect_is_told_after_one_start_with_the_version_that_is_needed(agent: str, stdout: str) -> None:
    """Events of another release have no known type, so a second start would print the same."""
    outcome = ended(agent, GOOD, stdout=stdout)
    assert next_move(["first"], outcome, seen_now=True) == GiveUp()
    assert f"version {adapter_for(agent).capabilities.tested_version}" in told(agent, outcome).remedy


def test_an_object_of_a_tool_after_events_is_no_other_dialect() -> None:
    """An unknown object after a session's events is no event of another dialect."""
    outcome = ended("codex", GOOD, stdout='{"type":"thread.started","thread_id":"s"}\n{"a":1}\n')
    assert (outcome.ended, outcome.kind) == ("no_result", "no_result_event")


def test_a_wall_limit_names_the_setting_that_moves_it() -> None:
    """The remedy of a reached wall limit names the setting."""
    outcome = ended("claude", ExitRecord(cause="wall_limit"), stdout=SESSION["claude"])
    assert "wall_seconds" in told("claude", outcome).remedy
