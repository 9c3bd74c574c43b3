"""An answer is about what was asked: a renamed repository and a moved issue are told apart.

Forges answer a question about either with a redirect, and some as if nothing had happened. No redirect is followed
blindly: the forge is asked for the repository's present name, and for the address of the thing.
"""

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

from septet.errors import ForgeError, ForgeUnavailableError, InvalidInputError, SeptetError

if TYPE_CHECKING:
    import httpx

_MOST_NAMES: Final = 1000
_SOON_SECONDS: Final = 0.2
_INSTALLATION: Final = "/installation"
"""What an App asks to learn where it is installed: its key may ask for nothing else there."""
_REPOSITORY: Final = re.compile(
    r"^/(?:repos/(?P<name>[^/]+/[^/]+)|projects/(?P<path>[^/]+)|repositories/\d+)(?=/|$)"
)
"""The repository in the path of a question to GitHub, Gitea or GitLab."""
_PAGE: Final = re.compile(
    r"^(?P<repository>https?://[^?#]+?)/(?:-/)?(?:issues|work_items|pull|pulls|merge_requests)/(?P<number>\d{1,18})/?$"
)
_THING: Final = re.compile(r"^.*?/(?:issues|pulls|merge_requests)/(?P<number>\d{1,18})(?=[/?]|$)")


@dataclass(slots=True)
class RepositoryNames:
    """The names that repositories have now, by API and the name that they are asked by."""

    _names: dict[tuple[str, str], str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def now(self, api_url: str, project: str) -> str:
        """Return the name that a repository has now, as far as its forge has told."""
        with self._lock:
            return self._names.get((api_url, project.lower()), project)

    def note(self, api_url: str, project: str, name: str) -> None:
        """Remember that a repository is asked by another name from now on."""
        with self._lock:
            if len(self._names) >= _MOST_NAMES:
                self._names.clear()
            for key, known in self._names.items():
                if key[0] == api_url and known.lower() == project.lower():
                    self._names[key] = name
            self._names[api_url, project.lower()] = name
            self._names.pop((api_url, name.lower()), None)  # whoever has the name has it now


NAMES: Final = RepositoryNames()
"""Those of this process."""


class _Shown(Protocol):
    """What has a number and a page on a forge."""

    @property
    def number(self) -> int: ...
    @property
    def url(self) -> str: ...


T = TypeVar("T", bound=_Shown)


def asked_for(thing: T, project: str, number: int | None = None) -> T:
    """Return what a forge shows, if it is what was asked for.

    Args:
        thing: An issue or a pull request.
        project: The repository that was asked.
        number: The number that was asked for; `None` where a list was.

    Raises:
        InvalidInputError: It is in another repository, or has another number.
    """
    match = _PAGE.match(thing.url)
    there = urlsplit(match["repository"]).path.strip("/") if match is not None else project
    is_here = f"/{there}".lower().endswith(f"/{project}".lower())
    if is_here and number in {None, thing.number}:
        return thing
    raise moved_error(project, number, thing.url, is_renamed=number == thing.number)


def moved_error(project: str, number: int | None, url: str, *, is_renamed: bool = False) -> InvalidInputError:
    """Return the error of an issue that is in another repository now, or of a repository with another name.

    Args:
        project: The repository that was asked.
        number: The number that was asked for; `None` where a list was.
        url: Where it is now; empty where the forge does not tell.
        is_renamed: Whether the repository itself has another name.
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


def look_at_redirect(forge: str, api_url: str, what: str, response: "httpx.Response") -> None:
    """See that a redirect leads to the same thing, before it is followed.

    Args:
        forge: Its name, for people.
        api_url: The API's address.
        what: What was asked, for errors.
        response: The redirect.

    Raises:
        InvalidInputError: What was asked for is in another repository now.
        ForgeUnavailableError: The repository has another name, by which it is asked the next time.
        ForgeError: The API answers elsewhere.
    """
    request, there = response.request, response.request.url.join(response.headers["location"])
    asked, led = _repository_in(api_url, str(request.url)), _repository_in(api_url, str(there))
    if asked and led:
        if not str(request.url).endswith(_INSTALLATION):
            raise _explain_redirect(forge, api_url, asked, str(there), request)
    elif request.method != "GET" or there.raw_path == request.url.raw_path:
        raise ForgeError(
            f"{api_url} answered {response.status_code} ({what}): it leads to {there.copy_with(query=None)}.",
            remedy=f"Start the worker (`septet up`) again with SEPTET_{forge.upper()}_API_URL set to the address "
            "that "
            "answers without leading elsewhere, then run `septet retry ID`.",
        )


def _explain_redirect(
    forge: str, api_url: str, repository: str, there: str, request: "httpx.Request"
) -> SeptetError:
    """Return what a redirect from a repository's path means: another name of it, or another place of a thing."""
    match = _REPOSITORY.match(repository)
    project = unquote(match["name"] or match["path"] or "") if match is not None else ""
    name = _ask(api_url + repository, request, ("full_name", "path_with_namespace"))
    if not name:
        return ForgeUnavailableError(f"{api_url} does not tell what has become of {project}.")
    if name.lower() != project.lower():
        NAMES.note(api_url, project, name)
        message = f"{project} is named {name} on {forge} now; it is asked by that name from now on."
        return ForgeUnavailableError(message, retry_after_seconds=_SOON_SECONDS)
    asked, led = _THING.match(str(request.url)), _THING.match(there)
    url = _ask(led[0], request, ("html_url", "web_url")) if led is not None else ""
    return moved_error(project, int(asked["number"]) if asked is not None else None, url)


def _repository_in(api_url: str, url: str) -> str:
    """Return the part of a question's address that names a repository of this API; empty where none does."""
    match = _REPOSITORY.match(url.removeprefix(api_url)) if url.startswith(api_url) else None
    return match[0] if match is not None else ""


def _ask(url: str, like: "httpx.Request", names: tuple[str, ...]) -> str:
    """Return one field of what a forge answers, whose redirects are followed; empty where it does not tell."""
    import httpx

    from septet.forges.answer_bounds import AnswerBounds
    from septet.forges.http_client import TIMEOUT_SECONDS, trusted_authorities

    bounds = AnswerBounds(TIMEOUT_SECONDS)
    headers = {name: like.headers[name] for name in ("authorization", "user-agent") if name in like.headers}
    try:
        with (
            bounds,
            httpx.Client(
                headers=headers,
                timeout=TIMEOUT_SECONDS,
                verify=trusted_authorities(),
                event_hooks=bounds.hooks,
                follow_redirects=True,
            ) as client,
        ):
            answer = client.get(url).json()
    except (httpx.HTTPError, ValueError):
        return ""
    found = (answer.get(name) for name in names) if isinstance(answer, Mapping) else ()
    return next((each for each in found if isinstance(each, str) and each), "")
