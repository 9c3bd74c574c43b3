"""An API error of a session starts one new session, and the work stays."""

import pytest

from septet.agents.outcomes.outcome import Outcome
from septet.agents.runs.records import StartReason
from septet.agents.turns.next_move import GiveUp, Move, SessionUse, Start, next_move
from septet.contracts.facts import Usage

pytestmark = pytest.mark.law


def move(kind: str, *starts: StartReason, session: SessionUse, tool_calls: int = 0, output: int = 0) -> Move:
    last = Outcome(
        ended="api_error",
        kind=kind,
        session_id="s",
        tool_calls=tool_calls,
        usage=Usage(output_tokens=output),
        retryable=kind in {"unknown", "overloaded"},
    )
    return next_move(starts, last, seen_now=True, session=session)


@pytest.mark.parametrize("kind", ["invalid_request", "refusal", "unknown"])
def test_an_error_at_the_first_request_of_a_resumed_session_begins_a_new_one_once(kind: str) -> None:
    """The API may refuse a session's content for ever, so one new session starts, and no second one."""
    assert move(kind, "first", "crashed", session="resumed") == Start("session")
    assert move(kind, "first", session="resumed") == Start("session")
    assert move(kind, "first", "crashed", "session", session="new") == GiveUp()
    assert move(kind, "first", "session", "crashed", session="resumed") == GiveUp()


@pytest.mark.parametrize("kind", ["invalid_request", "refusal"])
def test_a_session_that_has_worked_is_left_too_and_one_that_has_not_is_not(kind: str) -> None:
    """A session whose tools have answered is replaced; a new session whose first request fails is not."""
    assert move(kind, "first", session="new", tool_calls=2) == Start("session")
    assert move(kind, "first", session="new") == GiveUp()


@pytest.mark.parametrize("kind", ["billing", "authentication", "permission", "unknown_model", "overloaded"])
def test_an_error_that_is_known_leaves_no_session(kind: str) -> None:
    """A new session does not help against an error of login, account or model, or against a busy API."""
    assert move(kind, "first", "crashed", session="resumed", tool_calls=1) == GiveUp()


@pytest.mark.parametrize("kind", ["invalid_request", "refusal", "unknown", "context_length"])
def test_a_session_that_is_asked_about_itself_has_no_other_to_answer_for_it(kind: str) -> None:
    """An error of a turn that asks the session about itself ends the turn; no other session can answer."""
    assert move(kind, "first", session="asked") == GiveUp()


@pytest.mark.parametrize("kind", ["unknown_session", "local_answer"])
def test_a_crash_that_leaves_no_session_begins_a_new_one_once(kind: str) -> None:
    """After the new session follows a rerun; a turn that queries the session about itself reruns at once."""
    last = Outcome(ended="crashed", kind=kind, session_id="s")
    assert next_move(("first", "crashed"), last, seen_now=True, session="resumed") == Start("session")
    assert next_move(("first", "session"), last, seen_now=True) == Start("rerun")
    assert next_move(("first", "session", "rerun"), last, seen_now=True) == GiveUp(crashed_again=True)
    assert next_move(("first",), last, seen_now=True, session="asked") == Start("rerun")


@pytest.mark.parametrize(
    ("starts", "session_id", "comes"),
    [
        (("first",), None, Start("rerun")),
        (("first", "waited"), None, Start("rerun")),
        (("first", "rerun"), None, GiveUp()),
        (("first", "crashed", "session"), None, GiveUp()),
        (("first", "crashed"), "s", Start("limit", "s")),
        (("first", "limit"), "s", GiveUp()),
    ],
)
def test_a_silent_start_is_tried_once_more(
    starts: tuple[StartReason, ...], session_id: str | None, comes: Move
) -> None:
    """A known session is resumed; otherwise one rerun from the checkpoint follows, unless it could lose work."""
    last = Outcome(ended="limit", kind="silent", session_id=session_id)
    assert next_move(starts, last, seen_now=True) == comes
