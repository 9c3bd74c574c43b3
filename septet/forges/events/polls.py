"""What became of many pull requests, by one conditional question to each repository."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, runtime_checkable

from septet.errors import SeptetError
from septet.forges.forge import Forge, PullRequest, PullRequestState

LONGEST_SECONDS: Final = 60.0
"""A repository in which nothing changes is asked so rarely."""
TOLD_SECONDS: Final = 300.0
"""One that sends webhooks is asked so rarely, in case one is lost."""
_MOST_PAGES: Final = 200
"""The last pages of a repository with more pull requests are not read: each of those is asked for by itself."""
_SHARE: Final = 0.1
"""Of the time since something changed: so old may an answer be."""


@dataclass(frozen=True, slots=True)
class RecentPullRequests:
    """The pull requests of a repository in every state that changed last, the latest change first."""

    pull_requests: tuple[PullRequest, ...]
    is_all: bool
    """Whether no page follows."""
    etag: str = ""
    """What the forge is to be told, so that it may answer that nothing has changed."""


@runtime_checkable
class PolledForge(Forge, Protocol):
    """A forge that lists what changed last, and is not on this host's disk."""

    def recent_pull_requests(self, etag: str = "", page: int = 1) -> RecentPullRequests | None:
        """Return a page of the pull requests, those that changed last first; `None` where `etag` still holds.

        Raises:
            ForgeUnavailableError: The forge did not answer.
            ForgeError: It refused.
        """


@dataclass(slots=True)
class _Repository:
    lock: threading.Lock = field(default_factory=threading.Lock)
    states: dict[int, PullRequestState] = field(default_factory=dict)
    etag: str = ""
    seen: frozenset[tuple[int, str]] = frozenset()
    """Number and time of change of those on the first page, as it was read last."""
    pages: int = 0
    """How many pages in a row are known, from the first one on."""
    is_all: bool = False
    """Whether these are all of them."""
    asked_at: float | None = None
    changed_at: float = 0.0
    error: SeptetError | None = None
    """What the last question came to."""


@dataclass(slots=True)
class PullRequestPolls:
    """Keeps what a page tells of all pull requests of a repository, and asks for it no more than needed."""

    first_seconds: float
    """An answer so young is good for everybody; where nothing changes, an older one too."""
    clock: Callable[[], float] = time.monotonic
    is_told: Callable[[str], bool] = lambda _key: False
    """Says whether webhooks tell what changes in a repository, by its key: then it is asked rarely."""
    _repositories: dict[str, _Repository] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def state(self, key: str, forge: PolledForge, number: int) -> PullRequestState:
        """Return whether a pull request is open, merged or closed.

        Where no page has told of it, the next ones are read; what none of them has is asked for by itself, once.

        Args:
            key: The repository's address.
            forge: Its forge.
            number: Which pull request.

        Raises:
            NotFoundError: There is none of this number that the worker can see.
            ForgeUnavailableError: The forge did not answer.
            ForgeError: It refused.
        """
        with self._lock:
            repository = self._repositories.setdefault(key, _Repository())
        with repository.lock:
            if self._is_old(repository, is_told=self.is_told(key)):
                self._ask(repository, forge)
            if repository.error is not None:
                raise repository.error
            self._read_on(repository, forge, number)
            if number in repository.states:
                return repository.states[number]
        state = forge.pull_request(number).state
        with repository.lock:
            repository.states.setdefault(number, state)
            repository.changed_at = self.clock()
        return state

    def _is_old(self, repository: _Repository, *, is_told: bool) -> bool:
        if repository.asked_at is None:
            return True
        now, quiet = self.clock(), repository.asked_at - repository.changed_at
        good_seconds = min(max(self.first_seconds, _SHARE * quiet), LONGEST_SECONDS)
        good_seconds = TOLD_SECONDS if is_told else good_seconds
        return now - repository.asked_at >= good_seconds

    def _read_on(self, repository: _Repository, forge: PolledForge, number: int) -> None:
        """Read pages on from where they are known, until one tells of a pull request.

        What changes meanwhile comes to the first page, so that nothing is passed over.
        """
        while number not in repository.states and not repository.is_all and repository.pages < _MOST_PAGES:
            recent = forge.recent_pull_requests(page=repository.pages + 1)
            if recent is None:
                return
            for each in recent.pull_requests:
                repository.states.setdefault(each.number, each.state)
            repository.pages, repository.is_all = repository.pages + 1, recent.is_all

    def _ask(self, repository: _Repository, forge: PolledForge) -> None:
        repository.asked_at, repository.error = self.clock(), None
        try:
            recent = forge.recent_pull_requests(repository.etag)
        except SeptetError as error:  # who asks next to nothing does not ask a forge that is away
            repository.error, repository.changed_at = error, self.clock()
            return
        if recent is None:
            return
        seen = frozenset((each.number, each.updated_at) for each in recent.pull_requests)
        states: Mapping[int, PullRequestState] = {each.number: each.state for each in recent.pull_requests}
        if seen != repository.seen:
            repository.changed_at = self.clock()
        if not seen & repository.seen:  # more changed than the page holds
            repository.states.clear()
            repository.pages, repository.is_all = 1, recent.is_all
        repository.states.update(states)
        repository.etag, repository.seen = recent.etag, seen
