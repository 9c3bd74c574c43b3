"""The messages to a user who waits while the server is away, and the end of such a wait."""

from collections.abc import AsyncGenerator, Iterator
from datetime import timedelta
from typing import Any

import pytest
from fakes.unreached import away
from temporalio.service import RPCError, RPCStatusCode

from clients.operations.absence import Absence, outlast, outlast_wait
from septet.errors import ServerNotReachedError


def test_the_same_words_are_said_until_the_server_is_back() -> None:
    """The message does not change during one absence, so that a pipe gets it once."""
    absence = Absence("wo-1")
    first = absence.bear(away())
    assert (first, absence.lasts) == (absence.bear(away()), True)
    assert first.startswith("The Temporal server has not answered since ")
    assert first.endswith("; wo-1 continues when it is back. If `septet up` ran it, start that again.")
    absence.end()
    assert not absence.lasts


@pytest.mark.parametrize(
    ("what", "watch", "command"),
    [
        ("wo-1", {}, "septet watch wo-1"),
        ("the board", {"watch": "septet board --follow"}, "septet board --follow"),
    ],
)
def test_an_absence_that_lasts_too_long_ends_with_the_command_that_goes_on(
    what: str, watch: dict[str, Any], command: str
) -> None:
    """The error says that the work continues, and its remedy names the command that watches again."""
    absence = Absence(what, patience=timedelta(microseconds=1), **watch)

    def bear() -> None:
        while True:
            absence.bear(away())

    with pytest.raises(ServerNotReachedError, match=f"{what} continues with the next `septet up`") as ended:
        bear()
    assert ended.value.remedy == f"Watch it again: {command}"


@pytest.mark.parametrize("patience", [timedelta(0), timedelta(hours=1)])
def test_a_refusal_is_no_absence(patience: timedelta) -> None:
    """A refusal ends the wait at once, and without patience so does an absence."""
    denied = RPCError("denied", RPCStatusCode.PERMISSION_DENIED, b"")
    with pytest.raises(ServerNotReachedError, match="The Temporal server refused: denied"):
        Absence("wo-1", patience=patience).bear(denied)
    with pytest.raises(ServerNotReachedError, match="does not answer: away"):
        Absence("wo-1", patience=timedelta(0)).bear(away())


async def test_looks_begin_again_after_an_absence() -> None:
    """Each absence is reported once, and later results are passed on."""
    told: list[str] = []
    script = iter([1, away(), away(), 2, away(), 3, None])

    async def looks() -> AsyncGenerator[int, None]:
        for each in script:
            if isinstance(each, RPCError):
                raise each
            if each is None:
                return
            yield each

    absence = Absence("pl-1")
    assert [each async for each in outlast(looks, absence, told.append)] == [1, 2, 3]
    assert len(told) == 2


async def test_an_end_is_waited_for_over_an_absence() -> None:
    """The wait for a result continues after an absence and returns the result."""
    script: Iterator[RPCError | str] = iter([away(), away(), "the end"])

    async def wait() -> str:
        each = next(script)
        if isinstance(each, RPCError):
            raise each
        return each

    told: list[str] = []
    assert await outlast_wait(wait, Absence("wo-1"), told.append) == "the end"
    assert len(told) == 1
