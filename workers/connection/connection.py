"""Find the Temporal server of a worker or a client, and connect."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from temporalio.client import Client
from temporalio.envconfig import ClientConfig
from temporalio.service import RPCError

from septet.errors import ServerNotReachedError, UsageError
from septet.settings import Settings
from septet.state import StateDir
from workers.connection.data_converter import pydantic_values
from workers.connection.payload_codec import codec_of
from workers.observing.runtime import heartbeat_seconds, observers, quiet_runtime
from workers.server.server_file import read_server_file

DEFAULT_ADDRESS: Final = "127.0.0.1:7233"
_TRANSPORT: Final = "tonic::transport"
_REFUSALS: Final = (
    ("InvalidContentType", "it does not use TLS, which the profile asks for"),
    (r"InvalidCertificate\((\w+)", "its certificate is not accepted here"),
    (r"received fatal alert: (\w+)", "it does not accept this client's certificate, or was given none"),
    (r"code: (Unauthenticated|PermissionDenied)", "it does not accept the API key"),
    (
        "Must have both client cert|NoCertificatesPresented|InconsistentKeys",
        "certificate and key of this client do not belong together, or one is missing",
    ),
)
"""Why a server refuses this client: patterns of the SDK's error text, each with the reason for people."""
_CLOSED: Final = 'message: "transport error"|"connection closed"'
"""The SDK's error text if a server answers and then closes the connection, perhaps before it names the cause."""
_CLOSED_TLS: Final = (
    "it closed the connection, as one does that does not accept this client's certificate, or was given none"
)
_CLOSED_PLAIN: Final = "it closed the connection: it is starting or ending, or it expects TLS"
_CHECKS: Final = (
    "address, API key and certificates in Temporal's profile or environment; `septet docs cloud` shows how."
)
_ENVIRONMENT: Final = "Temporal's environment or profile"
_NAMED_REMEDY: Final = (
    "Start that server. For your own server, unset TEMPORAL_ADDRESS and TEMPORAL_PROFILE in this shell, and "
    "run `septet up` in another one."
)
_ADDRESS: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):(?P<port>[0-9]{1,5})")
_HIGHEST_PORT: Final = 65_535
_QUOTED: Final = re.compile(r'"([^"]+)"')


def reading_options(settings: Settings) -> dict[str, Any]:
    """Return the options of a client without workers.

    Raises:
        InvalidInputError: The keys that seal payloads cannot be read.
    """
    runtime = quiet_runtime(heartbeat_seconds(settings.probe_seconds))
    codec = codec_of(settings)
    return {"runtime": runtime, "data_converter": pydantic_values(codec), "interceptors": observers(settings)}


async def connect(
    settings: Settings,
    *,
    address: str | None = None,
    identity: str | None = None,
    options: Callable[[Settings], Mapping[str, Any]] = reading_options,
) -> Client:
    """Connect to a Temporal server.

    The address is taken from the first of these that has one: `address`, Temporal's environment or profile,
    `server.json`, the default.

    Args:
        address: The address from the command line.
        identity: The name of this client on the server; by default the names of process and machine.
        options: Returns the client's other options; workers need `serving_options`.

    Raises:
        UsageError: The address is not HOST:PORT.
        ServerNotReachedError: No server answers at the address, the server refuses this client, or the server
            belongs to another state directory and no setting names the server; the message names address and
            source.
        InvalidInputError: The keys that seal payloads cannot be read.
        MetricsAddressError: The metrics address of the settings cannot be used.
    """
    config, why = _find(settings, address)
    if identity is not None:
        config["identity"] = identity
    config |= options(settings)
    try:
        return await Client.connect(**config)
    except (RuntimeError, ValueError, RPCError) as error:
        where = f"{config['target_host']} ({why})"
        if refusal := _refusal(str(error), secure=bool(config.get("tls"))):
            message = f"No connection to the Temporal server at {where}: {refusal}."
            begin = "Try again if it is starting; otherwise check" if refusal == _CLOSED_PLAIN else "Check"
            remedy = f"{begin} {_CHECKS}"
            raise ServerNotReachedError(message, remedy=remedy) from error
        remedy = _NAMED_REMEDY if why == _ENVIRONMENT else ""
        raise ServerNotReachedError(
            f"No Temporal server answers at {where}: {_first_line(error)}", remedy=remedy
        ) from error


def server_address(settings: Settings, address: str | None = None) -> str:
    """Return the server's address that `connect` would use now, as host:port.

    Raises:
        UsageError: The address is not HOST:PORT.
        ServerNotReachedError: Temporal's profile cannot be read, so the address is not known.
    """
    config, _ = _find(settings, address)
    return str(config["target_host"])


def is_loopback(address: str) -> bool:
    """Return whether an address, as host:port, is on this machine."""
    host = address.removeprefix("http://").removeprefix("https://").rpartition(":")[0].strip("[]")
    return host in {"localhost", "::1"} or host.startswith("127.")


def _find(settings: Settings, address: str | None) -> tuple[dict[str, Any], str]:
    try:
        config: dict[str, Any] = dict(ClientConfig.load_client_connect_config())
    except (RuntimeError, ValueError) as error:
        message = f"Temporal's profile could not be read: {_first_line(error)}"
        raise ServerNotReachedError(message, remedy="See TEMPORAL_CONFIG_FILE and TEMPORAL_PROFILE.") from error
    if address:
        return {**config, "target_host": _check_address(address, "--address")}, "--address"
    if config.get("target_host"):
        _check_address(config["target_host"], _ENVIRONMENT)
        return config, _ENVIRONMENT
    server_file = read_server_file(StateDir(settings.state_dir))
    if server_file is not None:
        return {**config, "target_host": server_file.address}, f"server.json in {settings.state_dir}"
    refuse_foreign_server(DEFAULT_ADDRESS, settings.state_dir)
    return {**config, "target_host": DEFAULT_ADDRESS}, "the default address"


def refuse_foreign_server(address: str, own: Path) -> None:
    """Refuse a server of a state directory other than `own`; call this only if no setting names the server.

    Raises:
        ServerNotReachedError: The server belongs to another state directory, which the message names.
    """
    from workers.server.ports import state_dir_of

    owner = state_dir_of(address)
    if owner is not None and owner.resolve() != own.resolve():
        remedy = (
            f"Start your own with `septet up`, or use that one: --address {address}, or SEPTET_STATE_DIR={owner}."
        )
        raise ServerNotReachedError(
            f"No server of {own} is running; the one at {address} belongs to {owner}.", remedy=remedy
        )


def _check_address(address: str, why: str) -> str:
    """Return an address; raise unless it is HOST:PORT, with brackets around an IPv6 address."""
    match = _ADDRESS.fullmatch(address)
    if match is None or not 0 < int(match["port"]) <= _HIGHEST_PORT:
        message = f"{address} is not the address of a Temporal server ({why})."
        raise UsageError(message, remedy="Write it as HOST:PORT, for example 127.0.0.1:7233.")
    return address


def _refusal(words: str, *, secure: bool) -> str:
    """Return why a server refuses this client; empty if `words`, the SDK's error text, shows no known reason."""
    for pattern, cause in (*_REFUSALS, (_CLOSED, _CLOSED_TLS if secure else _CLOSED_PLAIN)):
        if match := re.search(pattern, words):
            return " ".join((cause, *(f"({name})" for name in match.groups())))
    return ""


def _first_line(error: Exception) -> str:
    """Return an error's first line; for an error of the SDK's transport, the innermost cause's first line."""
    line = str(error).splitlines()[0][:300] if str(error) else type(error).__name__
    causes = _QUOTED.findall(line) if _TRANSPORT in line else []
    return f"{causes[-1]}." if causes else line
