"""The key of a model API stays outside of the sandbox: the proxy adds it to requests to the model's host."""

import json
import os
import re
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.agent_lab import Lab
from fakes.guest_kinds import confine

from septet.agents.clis.adapter import Invocation, Machine, Turn
from septet.agents.clis.registry import adapter_for
from septet.agents.guest.network import ModelKey, worthless_key
from septet.agents.proxy.model_port import ModelPort
from septet.agents.proxy.request import RequestHead
from septet.agents.sandbox.model_hosts import model_keys, name_models, without_keys

BODY = b"{}"
KEY = "sk-real-5d1f-0123456789"
ASKS = """
import urllib.request
init()
request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages?beta=true", BODY)
request.add_header("x-api-key", os.environ["ANTHROPIC_API_KEY"])
try:
    answer = urllib.request.urlopen(request).read().decode()
except OSError as error:
    answer = str(error)
turn("m1"); result(answer + " " + str(KEY in str(os.environ)))
""".replace("KEY in", repr(KEY) + " in").replace("BODY", repr(BODY))


@contextmanager
def model(tls: ssl.SSLContext | None = None) -> Iterator[tuple[int, list[bytes]]]:
    """Serve a model that answers, and return its port and the received requests."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            try:
                client, _ = server.accept()
                with client if tls is None else tls.wrap_socket(client, server_side=True) as connected:
                    request = b""
                    # A connection that is closed with unread bytes is reset, and the answer is lost.
                    while not request.endswith(BODY) and (part := connected.recv(65536)):
                        request += part
                    heard.append(request)
                    connected.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nanswer")
            except OSError:
                return

        thread = threading.Thread(target=serve)
        thread.start()
        yield int(server.getsockname()[1]), heard
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def certified(folder: Path) -> ssl.SSLContext:
    """Return the TLS context of the server `localhost`, whose own certificate lies in the folder."""
    made = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem")
    about = ("-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
    subprocess.run((*made, *about), cwd=folder, check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return tls


async def asked(lab: Lab, env: dict[str, str]) -> str:
    """Let an agent with claude's adapter call its model, and return the answer."""
    confine(lab)
    lab.agent(ASKS)
    host = replace(lab.runtime.host, env={**lab.runtime.host.env, **env}, programs={"claude": str(lab.program)})
    lab.runtime = replace(lab.runtime, host=replace(host, sandboxed=True))
    number = len(lab.runtime.runs.of("wo-1"))
    request = lab.request(activity_id=str(number), turn=Turn("Work.\n", lab.worktree))
    turn_result = await lab.run_turn(replace(request, adapter=adapter_for("claude")))
    return str(turn_result.outcome.text)


@pytest.mark.needs("bubblewrap")
async def test_the_model_gets_the_key_and_the_guest_does_not(lab: Lab) -> None:
    """The model gets the key by plain HTTP; guest, prompt and files of the run do not hold it."""
    with model() as (port, heard):
        env = {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}/mine", "ANTHROPIC_API_KEY": KEY}
        assert await asked(lab, env) == "answer False"
    assert heard[0].startswith(b"POST /mine/v1/messages?beta=true HTTP/1.1\r\n")
    assert f"x-api-key: {KEY}".encode() in heard[0].lower()
    assert b"Connection: close" in heard[0]
    runs = lab.runtime.runs.of("wo-1")
    files = b"".join(path.read_bytes() for path in runs[0].folder.iterdir() if path.is_file())
    assert KEY.encode() not in files


@pytest.mark.needs("bubblewrap", "openssl")
async def test_a_model_behind_tls_is_who_its_certificate_says(lab: Lab, tmp_path: Path) -> None:
    """The server gets the key only if the worker trusts the authority of its certificate."""
    tls = certified(tmp_path)
    with model(tls) as (port, heard):
        env = {"ANTHROPIC_BASE_URL": f"https://localhost:{port}", "ANTHROPIC_API_KEY": KEY}
        assert "502" in await asked(lab, env)
        assert heard == []
    with model(tls) as (port, heard):
        env = {"ANTHROPIC_BASE_URL": f"https://localhost:{port}", "ANTHROPIC_API_KEY": KEY}
        assert await asked(lab, {**env, "NODE_EXTRA_CA_CERTS": str(tmp_path / "cert.pem")}) == "answer False"
    assert KEY.encode() in heard[0]


def inside_of(cli: str, env: Mapping[str, str], *argv: str) -> tuple[Invocation, tuple[ModelKey, ...]]:
    host, outside = Machine(env), Invocation((cli, *argv), env, b"")
    adapter = adapter_for(cli)
    return without_keys(adapter, host, outside), model_keys(adapter, host, outside)


def test_people_are_told_of_the_model_that_the_worker_names() -> None:
    """In messages, the model's address that the worker names replaces the port inside the sandbox."""
    env = {"ANTHROPIC_BASE_URL": "https://ada:secret@gateway.example:8443/v1", "ANTHROPIC_API_KEY": KEY}
    keys = inside_of("claude", env)[1]
    inside = keys[0].address_inside.removeprefix("http://")
    told = name_models(f"check your inference gateway ({inside}); http://{inside}/v1 refused", keys)
    assert told == "check your inference gateway (gateway.example:8443); https://gateway.example:8443/v1 refused"


def test_a_cli_without_a_key_keeps_its_own_way() -> None:
    """A subscription's login, and a CLI whose address is not set, are passed on unchanged."""
    for cli, env in (
        ("claude", {"PATH": os.defpath}),
        ("claude", {"CLAUDE_CODE_OAUTH_TOKEN": "t"}),
        ("gemini", {"GEMINI_API_KEY": KEY}),
        ("codex", {"HOME": "/nonexistent", "OPENAI_API_KEY": KEY}),
        ("opencode", {"HOME": "/nonexistent", "PATH": os.defpath}),
    ):
        inside, keys = inside_of(cli, env)
        assert (inside.env, inside.argv, keys) == (env, (cli,), ())


def test_codex_is_told_of_its_provider_by_its_command_line(tmp_path: Path) -> None:
    """The command line names the usual or the configured provider; keys of other providers are left out."""
    env = {"HOME": str(tmp_path), "CODEX_API_KEY": KEY, "OPENAI_API_KEY": "sk-other"}
    inside, (key,) = inside_of("codex", env, "exec", "--json", "-")
    told = ("-c", f'openai_base_url="http://127.0.0.1:{key.port}"')
    assert inside.argv == ("codex", "exec", "--json", *told, "-")
    assert (key.address, key.keys) == ("https://api.openai.com/v1", (KEY, "sk-other"))
    assert (inside.env["CODEX_API_KEY"], inside.env["OPENAI_API_KEY"]) == (worthless_key(0), worthless_key(1))
    (tmp_path / ".codex").mkdir()
    settings = tmp_path / ".codex" / "config.toml"
    provider = 'base_url = "https://models.example/v1"\nenv_key = "OPENAI_API_KEY"'
    settings.write_text(f'model_provider = "own"\n[model_providers.own]\n{provider}\n', encoding="utf-8")
    inside, (key,) = inside_of("codex", env, "exec", "--json", "-")
    assert inside.argv[4] == f'model_providers.own.base_url="{key.address_inside}"'
    assert (key.address, key.keys) == ("https://models.example/v1", ("sk-other",))
    assert inside.env == {"HOME": str(tmp_path), "OPENAI_API_KEY": worthless_key(0)}


def test_opencode_is_told_of_its_providers_by_its_configuration(tmp_path: Path) -> None:
    """Each provider has its own port, and keys in the configuration stay outside as keys in variables do."""
    own = {"npm": "x", "options": {"baseURL": "https://models.example/v1", "apiKey": "sk-own"}}
    named = {"options": {"baseURL": "https://named.example/v1", "apiKey": "{env:OPENAI_NAMED}"}}
    given = {"model": "own/m", "provider": {"own": own, "named": named}}
    env = {
        "HOME": str(tmp_path),
        "OPENCODE_CONFIG_CONTENT": json.dumps(given),
        "ANTHROPIC_API_KEY": KEY,
        "OPENAI_NAMED": "sk-named",
    }
    inside, keys = inside_of("opencode", env)
    assert [(key.address, key.keys) for key in keys] == [
        ("https://models.example/v1", ("sk-own",)),
        ("https://named.example/v1", ("sk-named",)),
        ("https://api.anthropic.com/v1", (KEY,)),
    ]
    assert len({key.port for key in keys}) == len(keys)
    told = json.loads(inside.env["OPENCODE_CONFIG_CONTENT"])
    options = {name: provider["options"] for name, provider in told["provider"].items()}
    assert told["model"] == "own/m"
    assert options == {
        "own": {"baseURL": keys[0].address_inside, "apiKey": worthless_key(0)},
        "named": {"baseURL": keys[1].address_inside, "apiKey": "{env:OPENAI_NAMED}"},
        "anthropic": {"baseURL": keys[2].address_inside},
    }
    assert not {KEY, "sk-own", "sk-named"} & set(re.findall(r"sk-[a-z0-9-]+", str(inside.env)))


def test_the_usual_address_is_asked_with_its_own_name() -> None:
    """The proxy replaces the guest's `Host`, and keeps an upgrade to a web socket."""
    inside, (key,) = inside_of("claude", {"ANTHROPIC_API_KEY": KEY})
    port = ModelPort(key.order())
    said = (
        "GET /v1/models HTTP/1.1\r\nHost: evil.example\r\nUpgrade: websocket\r\n"
        f"x-api-key: {inside.env['ANTHROPIC_API_KEY']}"
    )
    head = port.change_head(RequestHead(said.encode())).decode()
    assert head.removesuffix("\r\n\r\n").split("\r\n") == [
        "GET /v1/models HTTP/1.1",
        "Host: api.anthropic.com",
        f"x-api-key: {KEY}",
        "Accept-Encoding: identity",
        "Upgrade: websocket",
        "Connection: Upgrade",
    ]
    assert (port.name, port.host_port, port.is_https) == ("api.anthropic.com", 443, True)


@pytest.mark.parametrize(
    ("cli", "variable", "more"),
    [
        ("claude", "CLAUDE_CODE_OAUTH_TOKEN", {}),
        ("claude", "ANTHROPIC_CUSTOM_HEADERS", {"ANTHROPIC_API_KEY": "sk-other"}),
        ("codex", "OPENAI_API_KEY", {}),
        ("gemini", "GEMINI_API_KEY", {}),
        ("gemini", "GOOGLE_API_KEY", {"GOOGLE_GEMINI_BASE_URL": "https://models.example"}),
        ("copilot", "COPILOT_GITHUB_TOKEN", {"COPILOT_PROVIDER_BASE_URL": "https://models.example"}),
        ("copilot", "COPILOT_PROVIDER_API_KEY", {}),
        ("opencode", "AZURE_API_KEY", {}),
        ("opencode", "OPENCODE_CONFIG_CONTENT", {}),
        ("command", "OWN_KEY", {"SEPTET_COMMAND_ENV": "OWN_KEY"}),
    ],
)
def test_what_no_address_can_carry_is_in_the_guests_environment(
    cli: str, variable: str, more: dict[str, str], tmp_path: Path
) -> None:
    """Each of these keys reaches the guest, as `docs/sandbox.md` says."""
    key = json.dumps({"provider": {"unlisted": {"options": {"apiKey": KEY}}}}) if "CONFIG" in variable else KEY
    host = Machine({"HOME": str(tmp_path), "PATH": os.defpath, variable: key, **more})
    adapter = adapter_for(cli)
    env = adapter.environment(Turn("", tmp_path), host)
    assert KEY in str(without_keys(adapter, host, Invocation((cli,), env, b"")).env[variable])


@pytest.mark.parametrize(
    ("cli", "address", "variable"),
    [
        ("gemini", "GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY"),
        ("gemini", "GOOGLE_VERTEX_BASE_URL", "GOOGLE_API_KEY"),
        ("copilot", "COPILOT_PROVIDER_BASE_URL", "COPILOT_PROVIDER_API_KEY"),
        ("copilot", "COPILOT_PROVIDER_BASE_URL", "COPILOT_PROVIDER_BEARER_TOKEN"),
    ],
)
def test_a_key_stays_outside_where_an_address_is_named(cli: str, address: str, variable: str) -> None:
    """The guest gets the address of a port in place of the model's address, and no key."""
    inside, keys = inside_of(cli, {address: "https://models.example/v1", variable: KEY})
    assert [(key.address, [each for each in key.keys if each]) for key in keys] == [
        ("https://models.example/v1", [KEY])
    ]
    assert inside.env[address] == keys[0].address_inside
    assert KEY not in str(inside.env)


ASKED = ("GET /x", "POST /x")
USUAL = ModelKey(61129, "https://models.example/v1", (KEY,), requests=ASKED)
STANDS_IN = worthless_key(0)


def sent(*lines: str, model: ModelKey = USUAL) -> str:
    request = RequestHead("\r\n".join(lines).encode("latin-1"))
    return ModelPort(model.order()).change_head(request).decode("latin-1")


@pytest.mark.parametrize(
    "field",
    ["x-api-key: {}", "X-Goog-Api-Key:{}", "api-key: {} ", "Authorization: Bearer {}", "authorization: bearer {}"],
)
def test_the_key_is_put_in_where_clis_send_it(field: str) -> None:
    """The key is added in every header that a CLI uses for it, with or without a scheme."""
    assert KEY in sent("POST /x HTTP/1.1", field.format(STANDS_IN))


@pytest.mark.parametrize(
    "lines",
    [
        ("GET /{} HTTP/1.1",),
        ("GET /x?key={} HTTP/1.1",),
        ("OPTIONS /x HTTP/1.1", "Access-Control-Request-Headers: {}"),
        ("POST /x HTTP/1.1", "Origin: {}"),
        ("POST /x HTTP/1.1", "{}: x"),
        ("POST /x HTTP/1.1", "x-api-key: {}x"),
        ("POST /x HTTP/1.1", "x-api-key: {} x"),
        ("POST /x HTTP/1.1", "Authorization: Unknown {}"),
        ("TRACE /x HTTP/1.1", "x-api-key: {}"),
        ("trace /x HTTP/1.1", "x-api-key: {}"),
        ("{} /x HTTP/1.1",),
    ],
)
def test_what_a_server_may_tell_its_client_never_has_the_key(lines: tuple[str, ...]) -> None:
    """A server could echo a path, an origin or another header: the key is never added there."""
    try:
        head = sent(*(line.format(STANDS_IN) for line in lines))
    except ValueError:
        return
    assert KEY not in head


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("http://[::1]:8080/v1", "[::1]:8080"),
        ("http://[::1]/v1", "[::1]"),
        ("https://models.example:443", "models.example"),
        ("http://models.example:443", "models.example:443"),
    ],
)
def test_the_host_of_a_model_is_as_its_address_has_it(address: str, host: str) -> None:
    """An IPv6 address keeps its brackets, and the usual port is left out."""
    assert f"Host: {host}\r\n" in sent("GET /x HTTP/1.1", model=ModelKey(61129, address, (KEY,), requests=ASKED))


@pytest.mark.parametrize(
    "lines",
    [
        ("GET /x HTTP/1.1", "A: b\nHost: other.example"),
        ("GET /x HTTP/1.1", "A: b\rHost: other.example"),
        ("GET /x HTTP/1.1", "A: b\0"),
        ("GET /x HTTP/1.1", "Host : other.example"),
        ("GET /x HTTP/1.1", "A: b", " Host: other.example"),
        ("GET /x HTTP/1.1\nHost: other.example",),
        ("GET /x HTTP/1.1", "no field"),
        ("GET /x y HTTP/1.1",),
        ("GET /x HTTP/2",),
        ("",),
    ],
)
def test_a_head_that_servers_could_read_in_two_ways_is_refused(lines: tuple[str, ...]) -> None:
    """A bare line end, a folded field or a space before a colon is refused, so that no second host comes in."""
    with pytest.raises(ValueError, match=r"not a request|not a valid field"):
        sent(*lines)


def test_codex_sends_keys_in_the_headers_that_its_settings_name(tmp_path: Path) -> None:
    """The proxy adds the key in the header that the settings name, and only for a request to the model."""
    (tmp_path / ".codex").mkdir()
    provider = 'base_url = "https://models.example/v1"\nenv_http_headers = { "X-Own" = "OPENAI_OWN" }'
    (tmp_path / ".codex" / "config.toml").write_text(
        f'model_provider = "own"\n[model_providers.own]\n{provider}\n', encoding="utf-8"
    )
    env = {"HOME": str(tmp_path), "OPENAI_OWN": KEY}
    inside, (key,) = inside_of("codex", env, "exec", "--json", "-")
    assert inside.env["OPENAI_OWN"] == STANDS_IN
    assert f"X-Own: {KEY}\r\n" in sent("POST /responses HTTP/1.1", f"X-Own: {STANDS_IN}", model=key)
    assert KEY not in sent("POST /x HTTP/1.1", f"X-Own: {STANDS_IN}")
