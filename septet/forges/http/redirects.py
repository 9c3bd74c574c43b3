"""Check where a redirect of a forge leads: to a renamed repository, or to a moved issue.

No redirect is followed unchecked: further requests read the repository's present name and the thing's address.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import httpx

from septet.errors import ForgeError, ForgeUnavailableError, SeptetError
from septet.forges.http.answer_bounds import TIMEOUT_SECONDS, AnswerBounds
from septet.forges.renames import NAMES, moved_error

if TYPE_CHECKING:
    from septet.forges.http.api import HttpApi

_SOON_SECONDS: Final = 0.2
_INSTALLATION: Final = "/installation"
"""The path by which an App reads its installation; the App's key may request nothing else of the repository."""
_REPOSITORY: Final = re.compile(
    r"^/(?:repos/(?P<name>[^/]+/[^/]+)|projects/(?P<path>[^/]+)|repositories/\d+)(?=/|$)"
)
"""The repository in the path of a request to GitHub, Gitea or GitLab."""
_THING: Final = re.compile(r"^.*?/(?:issues|pulls|merge_requests)/(?P<number>\d{1,18})(?=[/?]|$)")


def check_redirect(api: "HttpApi", what: str, response: httpx.Response) -> None:
    """Check that a redirect leads to the same thing, before the client follows the redirect.

    Args:
        api: The API that answered with the redirect.
        what: The request in words, for errors.
        response: The answer that redirects.

    Raises:
        InvalidInputError: The requested thing is in another repository now.
        ForgeUnavailableError: The repository was renamed; the next request uses the new name.
        ForgeError: The API answers at another address.
    """
    request, there = response.request, response.request.url.join(response.headers["location"])
    asked, led = _repository_in(api.url, str(request.url)), _repository_in(api.url, str(there))
    if asked and led:
        if not str(request.url).endswith(_INSTALLATION):
            raise _explain_redirect(api, asked, str(there), request)
    elif request.method != "GET" or there.raw_path == request.url.raw_path:
        raise ForgeError(
            f"{api.url} answered {response.status_code} ({what}): it leads to {there.copy_with(query=None)}.",
            remedy=f"Start the worker (`septet up`) again with SEPTET_{api.service.upper()}_API_URL set to the "
            "address that answers without leading elsewhere, then run `septet retry ID`.",
        )


def _explain_redirect(api: "HttpApi", repository: str, there: str, request: httpx.Request) -> SeptetError:
    """Return the error for a redirect from a repository's path: a renamed repository, or a moved thing."""
    match = _REPOSITORY.match(repository)
    project = unquote(match["name"] or match["path"] or "") if match is not None else ""
    name = _ask(api.url + repository, request, ("full_name", "path_with_namespace"))
    if not name:
        return ForgeUnavailableError(f"{api.url} does not tell what has become of {project}.")
    if name.lower() != project.lower():
        NAMES.note(api.url, project, name)
        message = f"{project} is named {name} on {api.service} now; it is asked by that name from now on."
        return ForgeUnavailableError(message, retry_after_seconds=_SOON_SECONDS)
    asked, led = _THING.match(str(request.url)), _THING.match(there)
    url = _ask(led[0], request, ("html_url", "web_url")) if led is not None else ""
    return moved_error(project, int(asked["number"]) if asked is not None else None, url)


def _repository_in(api_url: str, url: str) -> str:
    """Return the part of a request's address that names a repository of this API; empty if no part does."""
    match = _REPOSITORY.match(url.removeprefix(api_url)) if url.startswith(api_url) else None
    return match[0] if match is not None else ""


def _ask(url: str, like: httpx.Request, names: tuple[str, ...]) -> str:
    """Read one field of a forge's answer and follow its redirects; empty if the answer has no such field."""
    headers = {name: like.headers[name] for name in ("authorization", "user-agent") if name in like.headers}
    bounds = AnswerBounds(TIMEOUT_SECONDS)
    try:
        with bounds, bounds.client(headers) as client:
            answer = client.get(url).json()
    except (httpx.HTTPError, ValueError):
        return ""
    found = (answer.get(name) for name in names) if isinstance(answer, Mapping) else ()
    return next((each for each in found if isinstance(each, str) and each), "")
