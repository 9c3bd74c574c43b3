"""Asking GitLab: python-gitlab over the engine's own HTTP client."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import TypeAdapter

from septet.forges.gitlab.answers import GitLabUserAnswer
from septet.forges.http_client import ForgeApi
from septet.forges.own_account import OWN_ACCOUNTS

if TYPE_CHECKING:
    import httpx
    from gitlab import Gitlab

_RIGHTS: Final = "Give the token the scope `api` and its account the role Developer in this project."
REMEDIES: Final = {
    401: "Set SEPTET_GITLAB_TOKEN to a token that is valid for this forge, and restart the worker.",
    403: _RIGHTS,
    404: f"Check the name and number; a private project that the token may not read looks the same. {_RIGHTS}",
}

T = TypeVar("T")


@contextmanager
def asking_gitlab(api: ForgeApi, what: str, *, tail_bytes: int = 0) -> Iterator["Gitlab"]:
    """Give a client for the block, and turn what goes wrong in it into errors of ours; as `ForgeApi.asking`.

    python-gitlab is imported here, for it takes a third of a second.
    """
    from gitlab import Gitlab
    from gitlab.exceptions import GitlabError

    with api.asking(what, tail_bytes=tail_bytes) as client:
        try:
            yield Gitlab(
                api.url.removesuffix("/api/v4"), user_agent="septet", backend=HttpxBackend, http_client=client
            )
        except GitlabError as error:
            raise ValueError(str(error)) from error  # the API's client tells what came in its place


def is_own_account(api: ForgeApi, account: str) -> bool:
    """Say whether an account is the one that the key writes by; where GitLab does not tell, nobody is told apart.

    Raises:
        ForgeUnavailableError: GitLab did not answer.
    """

    def ask() -> str:
        with asking_gitlab(api, "whose key this is") as gitlab:
            return read(GitLabUserAnswer, gitlab.http_get("/user")).username

    own = OWN_ACCOUNTS.name_of(api.url, api.token, ask)
    return not own or account.lower() == own.lower()


def read(form: type[T], answer: object) -> T:
    """Return what GitLab answered, an object of python-gitlab's or a list of them, as a value of type `form`.

    Raises:
        ValueError: It is no such value.
    """
    plain = [_attributes(each) for each in answer] if isinstance(answer, list) else _attributes(answer)
    return TypeAdapter(form).validate_python(plain)


def _attributes(answer: Any) -> object:  # noqa: ANN401 -- python-gitlab's objects have what GitLab sent
    return answer.attributes if hasattr(answer, "attributes") else answer


class HttpxBackend:
    """What python-gitlab sends its requests with: the engine's client has the token, the limits and the errors."""

    def __init__(self, http_client: "httpx.Client") -> None:
        """Take the client that sends."""
        self.client = http_client

    @staticmethod
    def prepare_send_data(files: object, post_data: object, raw: bool) -> "HttpxSendData":
        """Return what is sent: always JSON, for nothing is uploaded."""
        del files, raw
        return HttpxSendData(post_data)

    def http_request(self, method: str, url: str, **options: Any) -> "HttpxAnswer":  # noqa: ANN401 -- its form
        """Send a request; `auth`, `timeout` and `verify` are the client's own."""
        response = self.client.request(
            method,
            url,
            params=options.get("params"),
            json=options.get("json"),
            headers=options.get("headers"),
        )
        return HttpxAnswer(response)


class HttpxSendData:
    """The body of a request, in python-gitlab's form."""

    content_type = "application/json"
    data = None

    def __init__(self, json: object) -> None:
        """Take the body."""
        self.json = json


class HttpxAnswer:
    """An answer, in python-gitlab's form."""

    def __init__(self, response: "httpx.Response") -> None:
        """Take the response, which has what python-gitlab reads of one."""
        self.response = response
        self.status_code = response.status_code
        self.headers = response.headers
        self.reason = response.reason_phrase
        self.content = response.content

    def json(self) -> object:
        """Return the body's value."""
        return self.response.json()
