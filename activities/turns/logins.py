"""Choose an agent's login: the first login whose usage limit is not reached.

An agent has the worker's own login, and the further logins that the settings name.
"""

import asyncio
import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import structlog

from activities.host.host import Accounts, Host
from activities.turns.prepared_steps import PreparedTurn
from septet.agents.clis.adapter import Adapter
from septet.agents.clis.registry import NamedLogin, adapter_for, read_login
from septet.agents.outcomes.api_errors import REFUSAL
from septet.agents.runs.folders import Run
from septet.agents.turns.end_of_turn import failure_of
from septet.agents.turns.request import TurnRequest
from septet.agents.turns.turn_runs import TurnResult, TurnRuns
from septet.contracts.pauses import QuotaPause
from septet.errors import AgentApiUnavailableError, InvalidInputError, SeptetError

WORTH_A_MOVE_SECONDS: Final = 300.0
"""The longest pause of a login, in seconds, for which a turn waits; for a longer one, the second agent begins."""
_AT_ONCE_SECONDS: Final = 0.1
_MARGIN_SECONDS: Final = 1.0
_POLL_SECONDS: Final = 4.0
_CLOCKS_DIFFER_SECONDS: Final = 60.0
"""How many seconds after its end a pause counts as over, although its workflow still runs."""

_REPORTED: Final = "limit-told"
"""The file in a run's folder which shows that the run's usage limit was reported."""

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class UsageLimit:
    """An agent run that ended at the usage limit of its login."""

    run: Run
    adapter: Adapter
    login: str
    """The name of the further login; empty for the worker's own login."""
    until: float
    """The time, in Unix seconds, at which the limit resets; the end of the run if the reset is unknown."""
    message: str


def find_usage_limit(turn_runs: TurnRuns, last: TurnResult | None) -> UsageLimit | None:
    """Return the usage limit at which a turn's last agent ended; `None` if there is none or it was reported.

    Raises:
        OSError: The run's files cannot be read.
    """
    record = last.run.record if last is not None else None
    if (
        last is None
        or record is None
        or last.outcome.ended != "api_error"
        or (last.run.folder / _REPORTED).exists()
    ):
        return None
    error = failure_of(last.outcome, last.run, turn_runs.starts())
    if not isinstance(error, AgentApiUnavailableError) or not error.is_usage_limit:
        return None
    until = (last.outcome.ended_at_seconds or 0.0) + (error.retry_after_seconds or 0.0)
    return UsageLimit(last.run, adapter_for(record.agent), record.login, until, error.message)


def in_order(requests: list[TurnRequest], last: TurnResult | None) -> list[TurnRequest]:
    """Return a turn's requests in the order in which to try their agents.

    The agent that worked last comes first, or comes last if its model has refused the work.
    """
    if last is None:
        return requests
    refused = last.outcome.kind == REFUSAL.kind
    return sorted(requests, key=lambda request: (request.adapter.name != last.agent) != refused)


def read_logins(host: Host, adapter: Adapter) -> tuple[NamedLogin, ...]:
    """Return an agent's readable logins: the worker's own login, then further logins in the settings' order."""
    logins = [own_login(host)]
    for name, path in host.further_logins.get(adapter.name, {}).items():
        try:
            logins.append(read_login(adapter, host.agents, name, path))
        except InvalidInputError as error:
            _log.warning("login_not_read", agent=adapter.name, error=error.message)
    return tuple(logins)


def own_login(host: Host) -> NamedLogin:
    """Return the worker's own login, which has no name and serves every agent."""
    return NamedLogin("", host.agents)


def check_logins(host: Host) -> None:
    """Check that each further login can be used, and mask the keys of these logins from now on.

    Raises:
        AgentMissingError: The settings name logins of an agent that does not exist.
        InvalidInputError: A login cannot be used; the message names the login and the reason.
    """
    for agent, logins in host.further_logins.items():
        for name, path in logins.items():
            read_login(adapter_for(agent), host.agents, name, path)


def login_digest(host: Host, adapter: Adapter, login: NamedLogin, model: str | None) -> str:
    """Return a digest of a login's keys, equal on all hosts; for a login without keys, a digest of host and login.

    Args:
        model: The requested model. If a CLI knows several providers, only the keys of this model's provider count.
    """
    provider = adapter.provider_of(login.machine, model)
    own = [host.id, str(login.folder or login.name)] if login.name else [host.id]
    parts = login.identity(adapter, provider) or own
    named = [provider] if provider else []
    return hashlib.sha256("\0".join((adapter.name, *named, *parts)).encode()).hexdigest()[:24]


@dataclass(frozen=True, slots=True)
class LoginChoice:
    """Chooses the agent and the login of a turn for one attempt."""

    host: Host
    accounts: Accounts
    turn: PreparedTurn

    async def choose(self) -> TurnRequest:
        """Return the request of the first agent that has a login without a pause, with that login.

        The agent that worked last on the turn continues. The second agent takes over if all logins of the first
        agent are paused for longer than `WORTH_A_MOVE_SECONDS`, or if its model has refused.

        Raises:
            AgentApiUnavailableError: All logins are paused; Temporal retries the turn when the first limit resets.
            SeptetError: The pauses cannot be read now.
        """
        usual = self.turn.request
        (limit, requests), answer = await asyncio.gather(
            asyncio.to_thread(self._read_runs), self._find_pause(usual, own_login(self.host))
        )
        if limit is not None:
            await self._note_limit(limit, requests)
        pauses: list[QuotaPause] = []
        for request in requests:
            for login in read_logins(self.host, request.adapter):
                is_answered = limit is None and request is usual and not login.name
                pause = answer if is_answered else await self._find_pause(request, login)
                if pause is None or pause.until + _CLOCKS_DIFFER_SECONDS <= time.time():
                    return _with_login(request, login)
                pauses.append(pause)
            if min(pause.until for pause in pauses) - time.time() <= WORTH_A_MOVE_SECONDS:
                break
        raise _refusal(pauses)

    async def _find_pause(self, request: TurnRequest, login: NamedLogin) -> QuotaPause | None:
        return await self.accounts.find_pause(self._digest(request, login))

    def _digest(self, request: TurnRequest, login: NamedLogin) -> str:
        return login_digest(self.host, request.adapter, login, request.turn.model)

    async def seconds_to_wait(self) -> float:
        """Return the seconds until one of the turn's agents can start; about zero if an agent can start now.

        Raises:
            SeptetError: The pauses cannot be read now.
        """
        try:
            await self.choose()
        except AgentApiUnavailableError as refusal:
            return refusal.retry_after_seconds or _AT_ONCE_SECONDS
        return _AT_ONCE_SECONDS

    def _read_runs(self) -> tuple[UsageLimit | None, list[TurnRequest]]:
        """Return the usage limit that ended the turn's last agent, and the requests that can continue the turn."""
        turn_runs = TurnRuns(self.turn.request)
        last = turn_runs.last_result()
        requests = [self.turn.request] if self.turn.fallback is None else [self.turn.request, self.turn.fallback]
        return find_usage_limit(turn_runs, last), in_order(requests, last)

    async def _note_limit(self, limit: UsageLimit, requests: Sequence[TurnRequest]) -> None:
        """Pause a login on all hosts until its usage limit resets, once for each run that met the limit.

        If the worker dies before it has recorded the pause on disk, the next attempt repeats the pause.
        """
        logins = read_logins(self.host, limit.adapter)
        login = next((login for login in logins if login.name == limit.login), None)
        request = next((each for each in requests if each.adapter == limit.adapter), None)
        if login is None or request is None:
            return
        pause = QuotaPause(
            agent=limit.adapter.name, login=limit.login, until=limit.until, message=limit.message[:500]
        )
        try:
            if pause.until > time.time():
                await self.accounts.note_pause(self._digest(request, login), pause)
        except SeptetError as refusal:
            _log.warning("usage_limit_not_told", agent=pause.agent, error=refusal.message)
            return
        await asyncio.to_thread(limit.run.put, _REPORTED, b"")


def _with_login(request: TurnRequest, login: NamedLogin) -> TurnRequest:
    if not login.name:
        return request
    return replace(request, login=login.name, runtime=replace(request.runtime, host=login.machine))


def _refusal(pauses: list[QuotaPause]) -> AgentApiUnavailableError:
    first = min(pauses, key=lambda pause: pause.until)
    names = " and ".join(dict.fromkeys(f"{pause.agent}'s login {pause.login}".rstrip() for pause in pauses))
    limits = f"limit of {names} is" if len(pauses) == 1 else f"limits of {names} are"
    message = f"The usage {limits} reached, and no agent starts with {'it' if len(pauses) == 1 else 'them'}"
    return AgentApiUnavailableError(
        f"{message}: {first.message}",
        remedy="It continues by itself.",
        retry_after_seconds=max(first.until - time.time(), _POLL_SECONDS) + _MARGIN_SECONDS,
    )
