"""Poll many pull requests with one request for each repository; the request is cheap if nothing changed."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from septet.errors import SeptetError
from septet.forges.forge import Forge
from septet.forges.values import PullRequestState

LONGEST_SECONDS: Final = 60.0
"""The longest time in seconds between polls of a repository without changes."""
TOLD_SECONDS: Final = 300.0
"""The time in seconds between polls of a repository with webhooks, in case a webhook is lost."""
_MOST_PAGES: Final = 200
"""The most pages of a repository's list that are read; other pull requests are read one by one."""
_SHARE: Final = 0.1
"""How old an answer may be to be used again, as a share of the time for which nothing had changed."""


@dataclass(slots=True)
class _Repository:
    lock: threading.Lock = field(default_factory=threading.Lock)
    states: dict[int, PullRequestState] = field(default_factory=dict)
    etag: str = ""
    seen: frozenset[tuple[int, str]] = frozenset()
    """The number and the time of change of each pull request on the first page."""
    pages: int = 0
    """How many pages are known, counted from the first."""
    is_all: bool = False
    """Whether the known pages have all pull requests."""
    asked_at: float | None = None
    changed_at: float = 0.0
    error: SeptetError | None = None
    """The error of the last request, if any."""


@dataclass(slots=True)
class PullRequestPolls:
    """The known states of pull requests by repository, read with few requests."""

    first_seconds: float
    """An answer up to this age in seconds is used again; after a time without changes, an older one too."""
    clock: Callable[[], float] = time.monotonic
    is_told: Callable[[str], bool] = lambda _key: False
    """Returns whether webhooks report changes of the repository with this key; polls are then rare."""
    _repositories: dict[str, _Repository] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def state(self, key: str, forge: Forge, number: int, commit: str = "") -> PullRequestState:
        """Return whether a pull request of the repository `key` is open, merged or closed.

        This reads further pages of the list if needed. A pull request on no page needs one separate request, with
        `commit` as in `Forge.pull_request`.

        Raises:
            NotFoundError: The worker can see no pull request of this number.
            ForgeUnavailableError: The forge did not answer.
            ForgeError: The forge refused.
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
        state = forge.pull_request(number, commit).state
        with repository.lock:
            repository.states.setdefault(number, state)
            repository.changed_at = self.clock()
        return state

    def _is_old(self, repository: _Repository, *, is_told: bool) -> bool:
        if repository.asked_at is None:
            return True
        quiet_seconds = repository.asked_at - repository.changed_at
        good_seconds = min(max(self.first_seconds, _SHARE * quiet_seconds), LONGEST_SECONDS)
        return self.clock() - repository.asked_at >= (TOLD_SECONDS if is_told else good_seconds)

    def _read_on(self, repository: _Repository, forge: Forge, number: int) -> None:
        """Read further pages until one of them has the pull request.

        A pull request that changes meanwhile moves to the first page, so none is missed.
        """
        while number not in repository.states and not repository.is_all and repository.pages < _MOST_PAGES:
            recent = forge.recent_pull_requests(page=repository.pages + 1)
            if recent is None:
                return
            for each in recent.pull_requests:
                repository.states.setdefault(each.number, each.state)
            repository.pages, repository.is_all = repository.pages + 1, recent.is_all

    def _ask(self, repository: _Repository, forge: Forge) -> None:
        repository.asked_at, repository.error = self.clock(), None
        try:
            recent = forge.recent_pull_requests(repository.etag)
        except SeptetError as error:  # the next caller gets the error without a new request
            repository.error, repository.changed_at = error, self.clock()
            return
        if recent is None:
            return
        seen = frozenset((each.number, each.updated_at) for each in recent.pull_requests)
        if seen != repository.seen:
            repository.changed_at = self.clock()
        if not seen & repository.seen:  # more changed than the page holds
            repository.states.clear()
            repository.pages, repository.is_all = 1, recent.is_all
        repository.states.update({each.number: each.state for each in recent.pull_requests})
        repository.etag, repository.seen = recent.etag, seen
