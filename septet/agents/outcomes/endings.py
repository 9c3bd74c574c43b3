"""How a run ended, by its exit record and stderr, where the stream alone does not show the ending."""

import math
import re
from collections.abc import Collection
from dataclasses import replace
from signal import Signals
from typing import Final

from septet.agents.outcomes.api_errors import REFUSAL, ApiError, classify
from septet.agents.outcomes.outcome import Ending, ExitRecord, Outcome
from septet.agents.outcomes.reset_times import find_reset, names_reset, seconds_of
from septet.agents.outcomes.stream import LINE_LIMIT_BYTES
from septet.contracts.pauses import LONGEST_PAUSE_SECONDS
from septet.system.masking import mask

CANCELLED: Final = "cancelled"
SUPERSEDED: Final = "superseded"
TURN_LIMIT: Final = "turn_limit"
RESTARTED: Final = "restarted"
PAUSED: Final = "paused"
RESET: Final = "reset"
BUDGET: Final = "budget"
AFTER_RESULT: Final = "after_result"
"""The reasons that this module knows for ending an agent; a caller may give any other reason."""

SILENT: Final = "silent"
OTHER_DIALECT: Final = "other_dialect"
"""The kinds of two endings: the program printed nothing, or it printed nothing that its adapter understands."""

_SHARED: Final = ("ended", "kind", "remedy", "retryable", "retry_after_seconds", "retry_is_named")
"""The fields that an outcome takes from its ending."""
_USAGE_LIMIT: Final = "rate_limit"
_TOLD_ON_STDERR: Final = frozenset({"billing", REFUSAL.kind})
_LIMITS: Final = frozenset({_USAGE_LIMIT, *_TOLD_ON_STDERR})
_RESET_MARGIN_SECONDS: Final = 5.0
_MESSAGE_LIMIT: Final = 2000
_ERROR: Final = re.compile(r"\berror\b", re.IGNORECASE)
_NOISE: Final = re.compile(
    r"^(?:\d[\dT:.,Z+-]++ ++)?\W*+(?:warn|warning|info|debug)\b|^\(node:\d+\)|--trace-(?:deprecation|warnings)",
    re.IGNORECASE,
)
"""The pattern of a line of stderr that reports no error."""
PASSING: Final = ("EAGAIN", "ENOMEM", "EMFILE", "ENFILE", "ETXTBSY", "ENOSPC", "EIO")
"""The names of errors of a machine that lacks a resource, perhaps only for a moment."""

RESOURCES: Final = {
    "process_limit": ("processes", "SEPTET_PROCESS_LIMIT"),
    "memory_limit": ("memory", "SEPTET_MEMORY_LIMIT_MIB"),
    "socket_limit": ("sockets", "SEPTET_MEMORY_LIMIT_MIB"),
    "disk_limit": ("disk", "SEPTET_DISK_LIMIT_MIB"),
    "tree_limit": ("tree", "SEPTET_TREE_LIMIT"),
    "tree_size_limit": ("tree_size", "SEPTET_TREE_LIMIT_MIB"),
    "output_limit": ("output", "SEPTET_OUTPUT_LIMIT_MIB"),
}
"""For each cause of an end at a limit of resources: the kind of the ending, and the setting of the limit."""


def api_ending(error: ApiError, words: str, *, resets_at: float | None = None) -> Ending:
    """Return the ending of a run that ended at an error of the model API.

    `resets_at` is the end of a usage limit, in seconds since the epoch, if the CLI has named it.
    """
    return Ending(
        "api_error",
        error.kind,
        f"The model refused this work. {words}".strip() if error is REFUSAL else words,
        error.remedy,
        error.retryable,
        error.retry_after_seconds,
        resets_at=resets_at if error.kind == _USAGE_LIMIT else None,
    )


def with_ending(outcome: Outcome, ending: Ending, end: ExitRecord, lacked: Collection[str] = ()) -> Outcome:
    """Return a stream's outcome, completed with the ending of the run.

    `lacked` names tools that the agent called and the CLI does not have.
    """
    ending = _with_tools(ending, tuple(dict.fromkeys((*outcome.denials, *lacked))))
    ending, skipped = _with_wait(ending, end.ended_at_seconds), outcome.skipped_lines
    lines = f"{skipped} line{'s' * (skipped != 1)}"
    note = f"{lines} of its output over {LINE_LIMIT_BYTES >> 20} MiB could not be read."
    if skipped and ending.ended != "ok":
        ending = replace(
            ending, message=f"{mask(ending.message)[: _MESSAGE_LIMIT - len(note) - 1]} {note}".strip()
        )
    return replace(
        outcome,
        warnings=(*outcome.warnings, note) if skipped and ending.ended == "ok" else outcome.warnings,
        message=mask(ending.message)[:_MESSAGE_LIMIT],
        **{name: getattr(ending, name) for name in _SHARED},
        ended_at_seconds=end.ended_at_seconds,
        exit_code=end.exit_code,
        signal=end.signal,
        duration_seconds=end.duration_seconds,
    )


def _with_tools(ending: Ending, tools: tuple[str, ...]) -> Ending:
    """Return the ending; if it is a limit, name the tools that the agent lacked as a possible reason."""
    if ending.ended != "limit" or not tools:
        return ending
    names = ", ".join(tools[:5])
    message = f"{ending.message} It had called tools that it was not given: {names}."
    remedy = f"See whether the CLI's own settings or a policy withhold these tools. {ending.remedy}".strip()
    return replace(ending, message=message, remedy=remedy)


def _with_wait(ending: Ending, ended_at: float | None) -> Ending:
    """Return `ending`, with the wait until a limit's reset if an API error ended the run and names the time.

    A reset more than `LONGEST_PAUSE_SECONDS` after the run's end is ignored.
    """
    if ending.ended != "api_error" or not ending.retryable or ending.retry_is_named or ended_at is None:
        return ending
    named = ending.resets_at
    moment = seconds_of(named) if named else find_reset(ending.message, ended_at)
    left = math.inf if moment is None else moment - ended_at
    if left > LONGEST_PAUSE_SECONDS:
        return ending
    return replace(ending, retry_after_seconds=max(left, 0.0) + _RESET_MARGIN_SECONDS, retry_is_named=left > 0)


def warnings_in(stderr: str) -> tuple[str, ...]:
    """Return the last five lines of stderr; blank lines do not count."""
    lines = [line.strip()[:300] for line in stderr.splitlines() if line.strip()]
    return tuple(lines[-5:])


def is_cancelled(end: ExitRecord) -> bool:
    """Return whether a person cancelled the run."""
    return end.cause == "ended" and end.why == CANCELLED


def leaves_result_standing(end: ExitRecord) -> bool:
    """Return whether a result in the stream counts; false if the CLI ended by itself with a code other than 0."""
    return end.cause != "exited" or end.exit_code in (0, None)


def with_result(text: str, denials: Collection[str]) -> Ending:
    """Return the ending of a run whose result counts."""
    if denials:
        return denial_ending(denials)
    return Ending("ok") if text.strip() else Ending("no_result", "empty", "The agent gave an empty answer.")


def denial_ending(denials: Collection[str]) -> Ending:
    """Return the ending of a run in which the CLI denied tools to the agent."""
    return Ending("denied", "tools", f"Tools were denied: {'; '.join(denials)}.")


def without_result(
    end: ExitRecord, stderr: str, *, spoke: bool, unknown_session: re.Pattern[str] | None = None
) -> Ending:
    """Return the ending of a run that has no result, or whose result does not count.

    `spoke`: stdout had an event or text. `unknown_session` matches the CLI's refusal of an unknown session.
    """
    lines = [line for line in stderr.splitlines() if not _NOISE.search(line)]
    words = ("\n".join(lines).strip() or stderr.strip())[-600:]
    by_api = _by_api(stderr, spoke=spoke) if end.signal is None or end.cause == "idle_limit" else None
    itself = _when_idle(words, spoke=spoke) if end.cause == "idle_limit" else _by_itself(end, words, spoke=spoke)
    ending = _at_limit(end) or _by_others(end) or by_api or itself
    has_crashed = end.cause == "exited" and ending.ended == "crashed"
    if has_crashed and unknown_session is not None and unknown_session.search(stderr):
        return Ending("crashed", "unknown_session", stderr.strip())
    return ending


def _at_limit(end: ExitRecord) -> Ending | None:
    if end.cause in RESOURCES:
        kind, setting = RESOURCES[end.cause]
        remedy = (
            f"Its stream shows what used so much. Raise {setting}, restart the worker, then run `septet retry`."
        )
        return Ending("limit", kind, f"The agent used too much: {end.why}.", remedy)
    if end.cause == "wall_limit":
        remedy = (
            "Start a new work order with more time (`--step STEP.wall_seconds=N`, or a pipeline's "
            "`--plan-seconds` and `--execution-seconds`), or with a smaller issue."
        )
        return Ending("limit", "wall", "The agent reached its time limit.", remedy)
    if end.cause == "ended" and end.why == TURN_LIMIT:
        remedy = "Start a new work order with more turns (`--step STEP.turns=N`), or with a smaller issue."
        return Ending("limit", "turns", "The agent reached its turn limit.", remedy)
    return None


def _when_idle(words: str, *, spoke: bool) -> Ending:
    """Return the ending of a run that fell silent; if it had printed to stdout, quote only lines about limits."""
    if spoke:
        words = "\n".join(line for line in words.splitlines() if classify(None, line).kind in _LIMITS)
    message = f"The agent printed nothing for too long. {words}".strip()
    if not spoke:
        return Ending("limit", SILENT, message)
    remedy = (
        "It may have waited for a permission that nobody gives here, or for a tool: its stream shows what came "
        "last. Start a new work order with a longer `--step STEP.idle_seconds=N`."
    )
    return Ending("limit", "idle", message, remedy)


def _by_others(end: ExitRecord) -> Ending | None:
    match end.cause:
        case "ended":
            interruption = (end.why, f"The agent was stopped: {end.why}.")
        case "orphan_limit":
            interruption = (end.cause, "The agent was stopped: no worker followed it for too long.")
        case "terminated":
            interruption = (end.cause, "The agent's supervisor was told to stop, and stopped the agent.")
        case "lost" if end.why == RESTARTED:
            interruption = (RESTARTED, "The machine or container that the agent ran in has stopped.")
        case "lost":
            return Ending("crashed", "lost", "The agent's supervisor was killed, and the agent with it.")
        case "not_started":
            passing = end.why.startswith(PASSING)
            message = f"The agent's program did not start: {end.why}."
            return Ending("crashed", "not_started", message, retryable=passing, retry_after_seconds=5.0)
        case _:
            return None
    return Ending("cancelled", *interruption, retryable=True, retry_after_seconds=1.0)


def _by_api(stderr: str, *, spoke: bool) -> Ending | None:
    """Return the ending for a usage limit, billing error or refusal that stderr shows; otherwise `None`.

    Lines of stderr may come from tools. A line about a usage limit therefore counts only if it names the
    limit's end, or if it is an error and stdout had no event.
    """
    for line in map(str.strip, reversed(stderr.splitlines())):
        error = classify(None, line)
        is_sure = names_reset(line) or (not spoke and _ERROR.search(line))
        if error.kind in _TOLD_ON_STDERR or (error.kind == _USAGE_LIMIT and is_sure):
            return api_ending(error, line)
    return None


def _by_itself(end: ExitRecord, stderr: str, *, spoke: bool) -> Ending:
    if end.signal is not None:
        return Ending("crashed", "signal", f"The agent was killed by {_signal_name(end.signal)}. {stderr}".strip())
    if not (stderr or spoke):
        return Ending("crashed", SILENT, f"The agent ended with exit code {end.exit_code} and printed nothing.")
    if end.exit_code == 0:
        return Ending("no_result", "no_result_event", f"The agent ended without a result. {stderr}".strip())
    if stderr and not spoke:
        remedy = "Fix what it reports, then run `septet retry`."
        return Ending("crashed", "refused", f"The agent's program refused to start: {stderr}", remedy)
    return Ending("crashed", "exit_code", f"The agent ended with exit code {end.exit_code}. {stderr}".strip())


def _signal_name(number: int) -> str:
    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"
