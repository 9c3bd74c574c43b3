"""Temporal's profiles with an API key and with client certificates: accepted clients, and the errors of refused ones."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from fakes.repositories import Origin
from fakes.septet_command import Septet
from fakes.tls_front import Authority, Front, serving_tls

pytestmark = pytest.mark.faces

KEY = "tmprl_key-of-one-host"
UNKNOWN_KEY = "tmprl_key-of-nobody"
CA = {"server_ca_cert_path": "ours/authority.pem"}
OURS = {"client_cert_path": "ours/client.pem", "client_key_path": "ours/client.key"}
THEIRS = {"client_cert_path": "theirs/client.pem", "client_key_path": "theirs/client.key"}
NO_PAIR = "certificate and key of this client do not belong together, or one is missing"
NOT_ACCEPTED = "it does not accept this client's certificate, or was given none"
CLOSED = "it closed the connection, as one does that does not accept this client's certificate, or was given none"
"""The message if the client sees the end of the connection before the alert with the reason."""


@dataclass(frozen=True)
class Site:
    """A Temporal server and fronts of it: one front needs a client certificate, and one needs a key."""

    folder: Path
    plain: Front
    mtls: Front
    keyed: Front

    def profile(self, front: Front, tls: Mapping[str, str], api_key: str = "") -> dict[str, str]:
        """Write the profile of a client, and return the variables that choose it; paths are relative to the folder."""
        entries = {name: self.folder / value if name.endswith("_path") else value for name, value in tls.items()}
        lines = ["[profile.septet]", f'address = "{front.address}"', 'namespace = "default"']
        lines += [f'api_key = "{api_key}"'] if api_key else []
        lines += ["[profile.septet.tls]", *(f'{name} = "{value}"' for name, value in entries.items())]
        file = self.folder / "temporal.toml"
        file.write_text("\n".join(lines), encoding="utf-8")
        return {"TEMPORAL_CONFIG_FILE": str(file), "TEMPORAL_PROFILE": "septet"}


@pytest.fixture(scope="module")
def site(served: Septet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    ours, theirs = Authority(folder / "ours"), Authority(folder / "theirs")
    server = ours.sign("server")
    ours.sign("client")
    theirs.sign("client")
    with (
        serving_tls(server, upstream=served.address, clients_of=ours) as mtls,
        serving_tls(server, upstream=served.address, key=KEY) as keyed,
    ):
        yield Site(folder, Front(served.address), mtls, keyed)


def test_a_work_order_is_done_over_a_connection_with_client_certificates(
    site: Site, served: Septet, tmp_path: Path, origin: Origin
) -> None:
    """Worker and commands show the profile's certificate: the front, which requires it, sees their calls."""
    chosen = site.profile(site.mtls, {**CA, **OURS})
    septet = Septet(tmp_path / "host", {"SEPTET_TASK_QUEUE": "septet-mtls", **chosen}, shares=served)
    with septet.serving("worker"):
        ended = septet(
            "run", "--repo", origin.bare, "--title", "Say goodbye too", "--id", "wo-mtls", "--wait", "--json"
        )
    assert ended.json["task"]["status"] == "completed", ended
    assert site.mtls.methods >= {"StartWorkflowExecution", "PollWorkflowTaskQueue", "PollActivityTaskQueue"}


def test_an_api_key_is_the_bearer_of_each_call(site: Site, septet: Septet) -> None:
    """The front, which requires the key, sees the key in each call of a successful command."""
    ended = Septet(septet.root, site.profile(site.keyed, CA, KEY))("list", "--json")
    assert (ended.code, ended.json["ok"]) == (0, True)
    assert site.keyed.methods >= {"GetSystemInfo", "ListWorkflowExecutions"}
    sent = {call.get("authorization") for call in site.keyed.calls}
    assert {f"Bearer {KEY}"} <= sent <= {f"Bearer {KEY}", f"Bearer {UNKNOWN_KEY}"}


@pytest.mark.parametrize(
    ("tls", "causes"),
    [
        (CA, (f"{NOT_ACCEPTED} (CertificateRequired)", CLOSED)),
        (CA | THEIRS, (f"{NOT_ACCEPTED} (UnknownCA)", CLOSED)),
        (OURS, ("its certificate is not accepted here (UnknownIssuer)",)),
        (
            CA | OURS | {"server_name": "a.example"},
            ("its certificate is not accepted here (NotValidForNameContext)",),
        ),
        (CA | {"client_cert_path": "ours/client.pem"}, (NO_PAIR,)),
    ],
    ids=["none", "of a stranger", "unknown authority", "other name", "without its key"],
)
def test_who_has_a_wrong_certificate_is_told_what_is_wrong(
    site: Site, septet: Septet, tls: dict[str, str], causes: tuple[str, ...]
) -> None:
    """The error has the cause and what to check, and no traceback."""
    _assert_refused(Septet(septet.root, site.profile(site.mtls, tls)), site.mtls, *causes)


def test_a_server_without_tls_is_told_to_whom_the_profile_has_it(site: Site, septet: Septet) -> None:
    """Without TLS in the profile a TLS server closes the connection, which the error names as one of its causes."""
    cause = "it does not use TLS, which the profile asks for"
    _assert_refused(Septet(septet.root, site.profile(site.plain, CA)), site.plain, cause)
    ended = septet("list", "--address", site.mtls.address, "--json")
    assert str(ended.error["message"]).endswith(
        "closed the connection: it is starting or ending, or it expects TLS."
    )


def test_who_has_a_key_that_is_not_known_is_told_so(site: Site, septet: Septet) -> None:
    """The error has the cause and what to check, and not the key; `septet doctor` says the same."""
    refused = Septet(septet.root, site.profile(site.keyed, CA, UNKNOWN_KEY))
    told = _assert_refused(refused, site.keyed, "it does not accept the API key (Unauthenticated)")
    checks = {check["name"]: check for check in refused("doctor", "--json").json["checks"]}
    assert checks["server"] == {"name": "server", "status": "warning", **told}


def _assert_refused(septet: Septet, front: Front, *causes: str) -> dict[str, str]:
    """Check that a command ends with a refusal for one of the causes; return message and remedy."""
    ended = septet("list", "--json")
    where = f"{front.address} (Temporal's environment or profile)"
    remedy = (
        "Check address, API key and certificates in Temporal's profile or environment; "
        "`septet docs cloud` shows how."
    )
    told = {"message": str(ended.error["message"]), "remedy": remedy}
    assert (ended.code, ended.error, ended.err) == (4, {"type": "ServerNotReached", **told}, "")
    assert told["message"] in {f"No connection to the Temporal server at {where}: {cause}." for cause in causes}
    return told
