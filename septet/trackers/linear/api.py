"""Linear's GraphQL API over HTTP: limits of time and of requests, and errors with a remedy."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import from_json

from septet.errors import ForgeUnavailableError, NotFoundError, TrackerError, TrackerUnavailableError
from septet.forges.http_client import trusted_authorities
from septet.forges.measures import note_answer, note_request, note_unreached
from septet.forges.patience import ForgePatience
from septet.forges.pauses import PAUSES, pause_seconds
from septet.system.text import without_controls
from septet.trackers.linear.answers import LinearAnswer

if TYPE_CHECKING:
    import httpx

API_URL: Final = "https://api.linear.app/graphql"
_TIMEOUT_SECONDS: Final = 20.0
_ASKING_SECONDS: Final = 60.0
"""For a whole answer, however slowly its pieces come."""
_SERVER_ERRORS: Final = 500
_BUSY: Final = frozenset({408, 425, 429})
_KEY_PREFIX: Final = "lin_api_"
_LIMITED: Final = "RATELIMITED"
_BUDGETS: Final = ("requests", "complexity", "endpoint-requests")
_PAUSE_SECONDS: Final = 60.0
"""Where Linear does not say for how long it wants to be left alone."""
_KEY_REMEDY: Final = (
    "Set SEPTET_LINEAR_TOKEN here and where the worker (`septet up`) runs to a key that may see the issue, and "
    "start "
    "the worker again."
)
_SHOWN: Final = 1000

A = TypeVar("A", bound=LinearAnswer)


class _Extensions(BaseModel):
    model_config = ConfigDict(extra="ignore")

    code: str = ""
    userPresentableMessage: str = ""  # noqa: N815 -- Linear's name


class _Error(BaseModel):
    model_config = ConfigDict(extra="ignore")

    message: str = ""
    extensions: _Extensions = _Extensions()


class _Reply(BaseModel):
    model_config = ConfigDict(extra="ignore")

    data: dict[str, Any] | None = None
    errors: tuple[_Error, ...] = ()


@dataclass(frozen=True, slots=True)
class LinearApi:
    """Where Linear answers, and the key with which it is asked."""

    token: str = field(repr=False)
    """A personal API key, or the token of an app."""
    url: str = API_URL

    def ask(self, what: str, document: str, variables: Mapping[str, Any], form: type[A]) -> A:
        """Return what a document is answered.

        Args:
            what: What is asked, for errors.
            document: One operation.
            variables: Its variables.
            form: What the answer must be.

        Raises:
            TrackerUnavailableError: Linear did not answer, or wants to be left alone.
            NotFoundError: There is no such thing, or the key may not see it.
            TrackerError: It refused.
        """
        patience, reads = ForgePatience(), document.lstrip().startswith("query")
        while True:
            try:
                patience.await_turn(self.url, self.token, what)
            except ForgeUnavailableError as error:
                raise TrackerUnavailableError(
                    error.message, retry_after_seconds=error.retry_after_seconds
                ) from error
            reply, failure = self._answer(what, document, variables)
            if failure is None:
                break
            pause = failure.retry_after_seconds
            if not (reads and pause is not None and patience.wait(pause)):
                raise failure
        try:
            return form.model_validate(reply.data if reply is not None else None)
        except ValidationError as error:
            message = f"{self.url} did not answer as Linear does ({what})."
            raise TrackerUnavailableError(message) from error

    def _answer(
        self, what: str, document: str, variables: Mapping[str, Any]
    ) -> tuple[_Reply | None, TrackerError | NotFoundError | None]:
        import httpx

        from septet.forges.answer_bounds import TooMuchError

        try:
            response = self._post(document, variables)
        except TooMuchError as error:
            raise TrackerUnavailableError(
                f"{self.url} answered too much or too slowly ({what}): {error}."
            ) from error
        except httpx.HTTPError as error:
            note_unreached(self.url)
            raise TrackerUnavailableError(f"{self.url} could not be reached ({what}): {error!r}.") from error
        reply = _reply_of(response)
        return reply, self._failure(what, response, reply)

    def _post(self, document: str, variables: Mapping[str, Any]) -> "httpx.Response":
        import httpx

        from septet.forges.answer_bounds import AnswerBounds

        prefix = "" if self.token.startswith(_KEY_PREFIX) else "Bearer "
        headers = {
            "User-Agent": "septet",
            "Accept": "application/json",
            "Authorization": f"{prefix}{self.token}",
        }
        bounds = AnswerBounds(_ASKING_SECONDS)
        hooks: dict[str, list[Any]] = {
            "request": [bounds.before, note_request],
            "response": [note_answer, bounds.over],
        }
        with (
            bounds,
            httpx.Client(
                headers=headers, timeout=_TIMEOUT_SECONDS, verify=trusted_authorities(), event_hooks=hooks
            ) as client,
        ):
            return client.post(self.url, json={"query": document, "variables": dict(variables)})

    def _failure(
        self, what: str, response: "httpx.Response", reply: _Reply | None
    ) -> TrackerError | NotFoundError | None:
        """Return what went wrong; `None` where nothing did."""
        status, errors = response.status_code, reply.errors if reply is not None else ()
        if reply is not None and not errors and response.is_success:
            return None
        message = f"{self.url} answered {status} ({what}): {_words(response, errors)}"
        codes = {each.extensions.code for each in errors}
        if _LIMITED in codes or status in _BUSY:
            seconds = _pause_seconds(response.headers)
            PAUSES.note(self.url, self.token, seconds)
            return TrackerUnavailableError(message, retry_after_seconds=seconds)
        if status >= _SERVER_ERRORS or reply is None or "INTERNAL_SERVER_ERROR" in codes:
            return TrackerUnavailableError(message)
        if any(each.message.lower().startswith("entity not found") for each in errors):
            return NotFoundError(
                message, remedy=f"Check the issue's key. If there is such an issue: {_KEY_REMEDY}"
            )
        refused = status in {401, 403} or codes & {"AUTHENTICATION_ERROR", "FORBIDDEN"}
        return TrackerError(message, remedy=_KEY_REMEDY if refused else "")


def _reply_of(response: "httpx.Response") -> _Reply | None:
    """Return what Linear says; `None` where it is not in its form, as a proxy's page."""
    try:
        return _Reply.model_validate(from_json(response.content))
    except ValueError:
        return None


def _words(response: "httpx.Response", errors: tuple[_Error, ...]) -> str:
    told = [each.extensions.userPresentableMessage or each.message for each in errors]
    return without_controls("; ".join(filter(None, told)) or response.reason_phrase or "no reason given")[:_SHOWN]


def _pause_seconds(headers: Mapping[str, str]) -> float:
    """Return for how long Linear wants to be left alone: by the budget of which nothing is left.

    It tells the reset of each in milliseconds.
    """
    if (seconds := pause_seconds(headers)) is not None:
        return seconds
    resets = [
        float(headers[f"x-ratelimit-{name}-reset"])
        for name in _BUDGETS
        if headers.get(f"x-ratelimit-{name}-remaining") == "0"
        and headers.get(f"x-ratelimit-{name}-reset", "").isdecimal()
    ]
    return max(max(resets) / 1000 - time.time(), 1.0) if resets else _PAUSE_SECONDS
