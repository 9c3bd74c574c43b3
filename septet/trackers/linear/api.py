"""Send operations to Linear's GraphQL API, and read its refusals."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic_core import from_json

from septet.errors import ForgeError, ForgeUnavailableError, NotFoundError, TrackerError, TrackerUnavailableError
from septet.forges.answers import Foreign
from septet.forges.http.api import BUSY, SERVER_ERRORS, ApiRefusal, HttpApi, bounded_words
from septet.forges.http.pauses import pause_seconds
from septet.system.text import without_controls

if TYPE_CHECKING:
    import httpx

API_URL: Final = "https://api.linear.app/graphql"
_ASKING_SECONDS: Final = 60.0
"""The most seconds for a whole answer, even if its parts arrive slowly."""
_PAUSE_SECONDS: Final = 60.0
"""The pause in seconds if Linear names none."""
_KEY_REMEDY: Final = (
    "Set SEPTET_LINEAR_TOKEN here and where the worker (`septet up`) runs to a key that may see the issue, and "
    "start the worker again."
)

A = TypeVar("A", bound=Foreign)


class _Extensions(Foreign):
    code: str = ""
    userPresentableMessage: str = ""


class _Error(Foreign):
    message: str = ""
    extensions: _Extensions = _Extensions()


class _Reply(Foreign):
    data: dict[str, Any] | None = None
    errors: tuple[_Error, ...] = ()


@dataclass(frozen=True, slots=True)
class LinearApi:
    """Linear's API at an address, with a key."""

    token: str = field(repr=False)
    """A personal API key, or the token of an app."""
    url: str = API_URL

    def ask(self, what: str, document: str, variables: Mapping[str, Any], form: type[A]) -> A:
        """Send a GraphQL document, and return the answer's data as a value of type `form`.

        Raises:
            TrackerUnavailableError: Linear did not answer, or requests a pause.
            NotFoundError: The requested object does not exist, or the key may not see the object.
            TrackerError: Linear refused.
        """
        scheme = "" if self.token.startswith("lin_api_") else "Bearer "
        api = HttpApi("Linear", self.url, self.token, scheme=scheme, read_refusal=_read_refusal)
        try:
            with api.asking(what, within_seconds=_ASKING_SECONDS) as client:
                reply = _Reply.model_validate_json(client.ask_graphql("", document, variables).content)
                return form.model_validate(reply.data)
        except ForgeUnavailableError as error:
            seconds = error.retry_after_seconds
            raise TrackerUnavailableError(error.message, retry_after_seconds=seconds) from error
        except ForgeError as error:
            raise TrackerError(error.message, remedy=error.remedy) from error


def _read_refusal(_api: HttpApi, response: "httpx.Response") -> ApiRefusal | None:
    """Return the refusal that a response contains; `None` if it contains none."""
    status = response.status_code
    try:
        reply = _Reply.model_validate(from_json(response.content))
    except ValueError:  # not Linear's form, such as a proxy's page
        reply = None
    errors = reply.errors if reply is not None else ()
    if reply is not None and not errors and response.is_success:
        return None
    told = [each.extensions.userPresentableMessage or each.message for each in errors]
    words = bounded_words(without_controls("; ".join(filter(None, told))), response)
    codes = {each.extensions.code for each in errors}
    if "RATELIMITED" in codes or status in BUSY:
        return ApiRefusal(words, seconds=_pause_seconds(response.headers), is_limit=True)
    if status >= SERVER_ERRORS or reply is None or "INTERNAL_SERVER_ERROR" in codes:
        return ApiRefusal(words)
    if any(each.message.lower().startswith("entity not found") for each in errors):
        return ApiRefusal(words, NotFoundError, f"Check the issue's key. If there is such an issue: {_KEY_REMEDY}")
    refused = status in {401, 403} or codes & {"AUTHENTICATION_ERROR", "FORBIDDEN"}
    return ApiRefusal(words, ForgeError, _KEY_REMEDY if refused else "")


def _pause_seconds(headers: Mapping[str, str]) -> float:
    """Return how many seconds to wait until all used-up rate limits are reset.

    Linear's headers give the resets in milliseconds.
    """
    if (seconds := pause_seconds(headers)) is not None:
        return seconds
    spent = [
        headers.get(f"x-ratelimit-{name}-reset", "")
        for name in ("requests", "complexity", "endpoint-requests")
        if headers.get(f"x-ratelimit-{name}-remaining") == "0"
    ]
    resets = [float(reset) for reset in spent if reset.isdecimal()]
    return max(max(resets) / 1000 - time.time(), 1.0) if resets else _PAUSE_SECONDS
