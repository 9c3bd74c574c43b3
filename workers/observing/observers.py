"""The traces that settings turn on, for clients and workers."""

from typing import TYPE_CHECKING

from temporalio.client import Interceptor

from septet.errors import InvalidInputError
from septet.settings import Settings

if TYPE_CHECKING:
    from workers.observing.traces import AgentTraces, Tracing


def observers(settings: Settings) -> list[Interceptor]:
    """Return the interceptors of a client.

    Raises:
        InvalidInputError: Traces are on, and their packages are not installed.
    """
    return [tracing_of(settings, settings.traces)[0]] if settings.traces is not None else []


def tracing_of(settings: Settings, address: str) -> "tuple[Tracing, AgentTraces]":
    """Return the interceptor of a client, and the listener that traces agents.

    Raises:
        InvalidInputError: The packages are not installed.
    """
    try:
        from workers.observing.traces import tracing
    except ModuleNotFoundError as error:
        remedy = "Install them with Septet: pip install 'septet[otel]'."
        raise InvalidInputError(
            f"SEPTET_TRACES needs packages that are missing: {error}.", remedy=remedy
        ) from error
    return tracing(settings, address)
