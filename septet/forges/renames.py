"""Check that an answer is about the requested thing, and not about a moved issue or a renamed repository.

Forges answer a request for a moved thing with a redirect (`http/client.py`), or with the thing itself.
"""

import re
import threading
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar
from urllib.parse import urlsplit

from septet.errors import InvalidInputError

_MOST_NAMES: Final = 1000
_PAGE: Final = re.compile(
    r"^(?P<repository>https?://[^?#]+?)/(?:-/)?(?:issues|work_items|pull|pulls|merge_requests)/(?P<number>\d{1,18})/?$"
)


@dataclass(slots=True)
class RepositoryNames:
    """The present names of repositories, by API and earlier name."""

    _names: dict[tuple[str, str], str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def now(self, api_url: str, project: str) -> str:
        """Return the present name of a repository; `project` if no other name is recorded."""
        with self._lock:
            return self._names.get((api_url, project.lower()), project)

    def note(self, api_url: str, project: str, name: str) -> None:
        """Record the present name of a repository, for later requests."""
        with self._lock:
            if len(self._names) >= _MOST_NAMES:
                self._names.clear()
            for key, known in self._names.items():
                if key[0] == api_url and known.lower() == project.lower():
                    self._names[key] = name
            self._names[api_url, project.lower()] = name
            self._names.pop((api_url, name.lower()), None)  # the name now belongs to the renamed repository


NAMES: Final = RepositoryNames()
"""The names that this process knows."""


class _Shown(Protocol):
    """An issue or a pull request with its number and the URL of its page."""

    @property
    def number(self) -> int: ...
    @property
    def url(self) -> str: ...


T = TypeVar("T", bound=_Shown)


def asked_for(thing: T, project: str, number: int | None = None) -> T:
    """Return `thing` if it is what was requested; raise if it is not.

    `number` is `None` for an element of a list.

    Raises:
        InvalidInputError: The thing is in another repository, or has another number.
    """
    match = _PAGE.match(thing.url)
    there = urlsplit(match["repository"]).path.strip("/") if match is not None else project
    is_here = f"/{there}".lower().endswith(f"/{project}".lower())
    if is_here and number in {None, thing.number}:
        return thing
    raise moved_error(project, number, thing.url, is_renamed=number == thing.number)


def moved_error(project: str, number: int | None, url: str, *, is_renamed: bool = False) -> InvalidInputError:
    """Return the error for an issue that moved to another repository, or for a renamed repository.

    `number` is `None` for a list. `url` is the present page; empty if the forge does not report it.
    """
    match = _PAGE.match(url)
    if match is None:
        return InvalidInputError(
            f"issue: {number} of {project} has moved to another repository.",
            remedy="Open its page, and give the repository and the number that it has now.",
        )
    name, there = urlsplit(match["repository"]).path.strip("/"), f"--repo {match['repository']}"
    if number is None:
        message, remedy = f"repository: {project} is named {name} now.", f"Give that name: {there}"
    elif is_renamed:
        message = f"repository: {project} is named {name} now."
        remedy = f"Give that name: `septet run {there} --issue {number}`."
    else:
        message = f"issue: {number} of {project} has moved: it is issue {match['number']} of {name} now."
        remedy = f"Start it there: `septet run {there} --issue {match['number']}`."
    return InvalidInputError(message, remedy=remedy)
