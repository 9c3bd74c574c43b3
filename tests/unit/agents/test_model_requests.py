"""Which requests may reach a model whose key stays outside, and that no other way leads to its host."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from fakes.run_records import RECORD

from septet.agents.clis.adapter import Invocation, Machine
from septet.agents.clis.registry import adapter_for
from septet.agents.guest.description import Description, GuestFiles, World, describe
from septet.agents.guest.network import ModelKey, OwnNetwork, parse_way_out, worthless_key
from septet.agents.outcomes.outcome import Outcome
from septet.agents.proxy.model_port import ModelPort, RequestRefusalError
from septet.agents.proxy.network_rules import Network, NetworkRefusalError
from septet.agents.proxy.passage import SeenUsage
from septet.agents.proxy.request import RequestHead
from septet.agents.runs.folders import Run
from septet.agents.runs.usage import with_seen_usage
from septet.agents.sandbox.model_hosts import model_hosts, model_keys, named_model_hosts
from septet.agents.turns.end_of_turn import failure_of
from septet.contracts.facts import Usage
from septet.errors import InvalidInputError

KEY = "sk-real-5d1f-0123456789"
AZURE = '[model_providers.azure]\nbase_url="https://a.openai.azure.com/openai"\nenv_key="AZURE_OPENAI_API_KEY"\n'
OTHER = '[model_providers.other]\nbase_url="https://other.example/v1"\nquery_params={deployment="d"}\n'


def opencode(model: str, **providers: object) -> str:
    return json.dumps({"model": model, "provider": providers})


def keys_of(cli: str, env: Mapping[str, str], home: Path, *argv: str) -> tuple[ModelKey, ...]:
    host = Machine({"HOME": str(home), **env})
    return model_keys(adapter_for(cli), host, Invocation((cli, *argv), host.env, b""))


def sent(model: ModelKey, first: str, *lines: str) -> str:
    head = "\r\n".join((f"{first} HTTP/1.1", *lines)).encode("latin-1")
    return ModelPort(model.order()).change_head(RequestHead(head)).decode("latin-1")


CLIS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "claude": ("claude", {"ANTHROPIC_API_KEY": KEY}),
    "claude at a gateway": ("claude", {"ANTHROPIC_AUTH_TOKEN": KEY, "ANTHROPIC_BASE_URL": "https://gw.example/a/b"}),
    "codex": ("codex", {"CODEX_API_KEY": KEY}),
    "gemini": ("gemini", {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": "https://gw.example"}),
    "gemini at Vertex": ("gemini", {"GOOGLE_API_KEY": KEY, "GOOGLE_VERTEX_BASE_URL": "https://v.example"}),
    "copilot": ("copilot", {"COPILOT_PROVIDER_API_KEY": KEY, "COPILOT_PROVIDER_BASE_URL": "https://gw.example/v1"}),
    "opencode with anthropic": (
        "opencode", {"ANTHROPIC_API_KEY": KEY, "OPENCODE_CONFIG_CONTENT": opencode("anthropic/m")},
    ),
    "opencode at Bedrock": (
        "opencode",
        {
            "AWS_BEARER_TOKEN_BEDROCK": KEY,
            "OPENCODE_CONFIG_CONTENT": opencode(
                "bedrock/m", bedrock={"options": {"baseURL": "https://b.example", "apiKey": "{env:AWS_BEARER_TOKEN_BEDROCK}"}}
            ),
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("who", "asked"),
    [
        ("claude", "POST /v1/messages?beta=true"),
        ("claude", "POST /v1/messages/count_tokens?beta=true"),
        ("claude at a gateway", "POST /v1/messages"),
        ("codex", "POST /responses"),
        ("codex", "GET /models?client_version=0.171.0"),
        ("gemini", "POST /v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"),
        (
            "gemini at Vertex",
            "POST /v1beta1/projects/p/locations/eu-west1/publishers/google/models/g:generateContent",
        ),
        ("gemini at Vertex", "POST /v1beta1/publishers/google/models/g:streamGenerateContent?alt=sse"),
        ("copilot", "POST /chat/completions"),
        ("copilot", "POST /openai/deployments/d/chat/completions?api-version=2025-01-01"),
        ("opencode with anthropic", "POST /messages"),
        ("opencode at Bedrock", "POST /model/eu.anthropic.claude-x%3A0/converse-stream"),
    ],
)
def test_what_a_cli_asks_its_model_has_the_real_key(who: str, asked: str, tmp_path: Path) -> None:
    """The key is added to the requests that each CLI makes, below the address that the worker names."""
    cli, env = CLIS[who]
    (model,) = keys_of(cli, env, tmp_path)
    assert KEY in sent(model, asked, f"x-api-key: {worthless_key(list(model.keys).index(KEY))}")


@pytest.mark.parametrize("who", CLIS)
@pytest.mark.parametrize(
    "asked",
    [
        "GET /v1/files", "GET /files", "POST /files", "DELETE /v1/files/f", "GET /v1/messages/batches",
        "POST /v1/batches", "GET /v1/organizations/api_keys", "PUT /admin", "POST /key/generate", "POST /upload/v1beta/files",
        "POST /v1beta/cachedContents", "POST /fine_tuning/jobs", "POST /v1/evals", "GET /responses/r_1", "GET /",
        "PATCH /v1/messages", "DELETE /v1/models/m", "POST /publishers/x/models/m:predict", "POST /v1internal:x",
    ],
)  # fmt: skip
def test_what_no_cli_asks_its_model_is_refused_and_says_what_opens_it(
    who: str, asked: str, tmp_path: Path
) -> None:
    """Requests for files, batches or administration are refused, and the error names SEPTET_MODEL_REQUESTS."""
    cli, env = CLIS[who]
    (model,) = keys_of(cli, env, tmp_path)
    with pytest.raises(RequestRefusalError, match="SEPTET_MODEL_REQUESTS"):
        sent(model, asked, f"x-api-key: {worthless_key(0)}")


@pytest.mark.parametrize(
    "path",
    [
        "/../../team-b/key", "/%2e%2e/%2e%2e/key", "/..;/..;/admin", "//evil.example/x", "/\\..\\admin", "/v1//messages",
        "/v1/./messages", "/v1/messages/..", "/v1/messages/", "/v1/m%65ssages", "/v1%2Fmessages", "/v1/messages%00",
        "/v1/messages#x", "/v1/mess\xe4ges", "/v1/models/..%2f..%2fx", "/v1/models/a%5cb", "/v1/models/%252e", "*", "",
        "http://api.anthropic.com/v1/messages", "/v1/messages?key=AIza", "/v1/messages?beta=true&access_token=x",
        "/v1/messages?%6bey=x",
    ],
)  # fmt: skip
def test_a_path_that_servers_read_in_two_ways_is_refused(path: str, tmp_path: Path) -> None:
    """Dotted, empty and encoded parts and keys in the query are refused, even if the setting opens all paths."""
    model = keys_of("claude", {"ANTHROPIC_API_KEY": KEY}, tmp_path)[0]
    port = ModelPort({**model.order(), "requests": ["POST /v1/messages", "POST /*/*", "POST /*", "POST /*/*/*"]})
    with pytest.raises(ValueError, match=r"plain path|in the query|not a request"):
        port.change_head(RequestHead(f"POST {path} HTTP/1.1".encode("latin-1")))


@pytest.mark.parametrize("who", CLIS)
@pytest.mark.parametrize(
    "field",
    [
        "x-api-key: sk-attacker", "Authorization: Bearer sk-attacker", "x-goog-api-key: AIza", "X-Own-Token: x",
        "cf-aig-authorization: Bearer x", "x-litellm-key: x", "X-Amz-Security-Token: x",
    ],
)  # fmt: skip
def test_a_request_with_another_key_is_refused(who: str, field: str, tmp_path: Path) -> None:
    """A request with the guest's own key is refused: a request may use the worker's account only."""
    cli, env = CLIS[who]
    (model,) = keys_of(cli, env, tmp_path)
    asked = model.requests[0].replace("*", "m")
    for more in ((), (f"x-api-key: {worthless_key(0)}",)):
        with pytest.raises(RequestRefusalError, match="stands in"):
            sent(model, asked, *more, field)


def test_fields_that_the_workers_settings_name_go_on_with_their_values_alone(tmp_path: Path) -> None:
    """A header that the worker sets passes with its own value only; cookies never pass."""
    env = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_CUSTOM_HEADERS": "X-Gateway-Key: mine\nX-Other: y"}
    (model,) = keys_of("claude", env, tmp_path)
    head = sent(model, "POST /v1/messages", "X-Gateway-Key: mine", "Cookie: session=x", "Accept-Encoding: br")
    assert "X-Gateway-Key: mine" in head
    assert not {"session", "br"} & set(head.replace("=", " ").split())
    with pytest.raises(RequestRefusalError, match="x-gateway-key"):
        sent(model, "POST /v1/messages", "X-Gateway-Key: another")


def test_a_setting_opens_more_requests_of_the_chosen_provider(tmp_path: Path) -> None:
    """The setting opens requests by method and path; an invalid entry is refused with an example."""
    way_out = parse_way_out((), "proxy", {}, ("POST /v1/embeddings", "GET /v1/files/*"))
    models = keys_of("claude", {"ANTHROPIC_API_KEY": KEY}, tmp_path)
    description: Description = describe(World(tmp_path, way_out=way_out), GuestFiles(tmp_path, models=models))
    (network,) = (each for each in description.protections if isinstance(each, OwnNetwork))
    assert "POST /v1/embeddings" in sent(network.models[0], "POST /v1/embeddings")
    assert "GET /v1/files/f" in sent(network.models[0], "GET /v1/files/f")
    with pytest.raises(RequestRefusalError):
        sent(network.models[0], "GET /v1/files/f/content")
    for wrong in ("/v1/files", "get /x", "GET x", "GET /a b", "CONNECT /x"):
        with pytest.raises(InvalidInputError, match="SEPTET_MODEL_REQUESTS") as refused:
            parse_way_out((), "proxy", {}, (wrong,))
        assert "POST /v1/embeddings" in refused.value.remedy


def test_no_other_way_leads_to_a_host_whose_key_stays_outside(tmp_path: Path) -> None:
    """A tunnel, plain HTTP and a forwarded port to the model's host are refused, whatever the lists name."""
    (model,) = keys_of("claude", {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": "http://127.0.0.1:81"}, tmp_path)
    (usual,) = keys_of("codex", {"CODEX_API_KEY": KEY}, tmp_path)
    names = [["127.0.0.1", 81], ["api.openai.com", 443]]
    fields = {"port": 1, "hosts": names, "own_hosts": names, "forwards": [["127.0.0.1", 81]]}
    network = Network({**fields, "models": [model.order(), {**usual.order(), "port": 2}]})
    assert network.forwards == {}
    for name, port in (("127.0.0.1", 81), ("api.openai.com", 443)):
        with pytest.raises(NetworkRefusalError, match="key stays outside"):
            network.connect(name, port)


LOGIN = {"tokens": {"access_token": "x"}}


@pytest.mark.parametrize(
    ("cli", "env", "files", "open_ones"),
    [
        ("claude", {"CLAUDE_CODE_OAUTH_TOKEN": "t"}, {}, {"api.anthropic.com", "platform.claude.com"}),
        ("codex", {"CODEX_API_KEY": KEY}, {}, set()),
        ("codex", {}, {".codex/auth.json": json.dumps(LOGIN)}, {"chatgpt.com", "auth.openai.com"}),
        ("gemini", {"GEMINI_API_KEY": KEY}, {}, {"generativelanguage.googleapis.com"}),
        (
            "gemini",
            {"GOOGLE_APPLICATION_CREDENTIALS": "/x", "GOOGLE_CLOUD_LOCATION": "europe-west1"},
            {},
            {"aiplatform.googleapis.com", "europe-west1-aiplatform.googleapis.com", "oauth2.googleapis.com"},
        ),
        ("copilot", {"COPILOT_PROVIDER_BASE_URL": "https://gw.example"}, {}, set()),
        ("opencode", {"OPENCODE_CONFIG_CONTENT": opencode("groq/m")}, {}, {"api.groq.com"}),
    ],
)
def test_only_the_chosen_providers_hosts_are_open(
    cli: str, env: Mapping[str, str], files: Mapping[str, str], open_ones: set[str], tmp_path: Path
) -> None:
    """The guest reaches the hosts of its own provider only, and none if the key stays outside."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    host = Machine({"HOME": str(tmp_path), **env})
    hosts = {each.name for each in model_hosts(adapter_for(cli), host, Invocation((cli,), host.env, b""))}
    assert open_ones == hosts if cli != "claude" else open_ones <= hosts
    assert "www.googleapis.com" not in adapter_for(cli).capabilities.model_hosts


def test_an_address_of_another_provider_is_not_open(tmp_path: Path) -> None:
    """Of many configured providers, only the chosen one's address is open."""
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "config.toml").write_text(f'model_provider="other"\n{AZURE}{OTHER}', encoding="utf-8")
    one, other = ({"options": {"baseURL": f"https://{name}.example/v1", "apiKey": KEY}} for name in ("one", "two"))
    config = opencode("one/m", one=one, two=other)
    for cli, env, expected in (
        ("codex", {}, {"other.example"}),
        ("opencode", {"OPENCODE_CONFIG_CONTENT": config}, {"one.example"}),
    ):
        host = Machine({"HOME": str(tmp_path), **env})
        named = named_model_hosts(adapter_for(cli), host, Invocation((cli,), host.env, b""))
        assert {each.name for each in named} == expected
    models = {model.address: model for model in keys_of("opencode", {"OPENCODE_CONFIG_CONTENT": config}, tmp_path)}
    assert "POST /v1/chat/completions" in sent(models["https://one.example/v1"], "POST /chat/completions")
    with pytest.raises(RequestRefusalError):
        sent(models["https://two.example/v1"], "POST /chat/completions")


@pytest.mark.parametrize(
    ("answer", "tokens"),
    [
        (b'[{"input_tokens":5,"cache_read_input_tokens":9,"output_tokens":1},{"output_tokens": 77}]', (14, 77)),
        (b'{"input_tokens":900,"input_tokens_details":{"cached_tokens":800},"output_tokens":8}', (900, 8)),
        (b'{"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}', (9, 3)),
        (b'{"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":2,"thoughtsTokenCount":5}}', (10, 7)),
        (b'{"text":"say \\"output_tokens\\": 99999"}', (0, 0)),
    ],
)
def test_the_port_sees_what_a_model_says_that_it_used(answer: bytes, tokens: tuple[int, int]) -> None:
    """The port reads the usage in each API's words, however the bytes are cut, but not in the model's text."""
    for cut in range(len(answer)):
        seen = SeenUsage()
        seen.take(answer[:cut])
        seen.take(answer[cut:])
        assert seen.tokens == tokens


def run_with(folder: Path, *lines: Mapping[str, object]) -> Run:
    (folder / "network.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return Run(folder, RECORD)


def test_a_failure_names_the_request_that_was_refused_and_the_setting(tmp_path: Path) -> None:
    """The remedy is a line for the worker's environment; it leaves out requests that no setting opens."""
    why = "no model is asked by this; SEPTET_MODEL_REQUESTS of the worker names what else is"
    line = {"host": "h", "port": 443, "allowed": False, "request": "POST /v1/files", "why": why}
    other = {**line, "request": "POST /v1/x", "why": "its x-api-key is not the key"}
    outcome = Outcome(ended="api_error", kind="refused", message="It failed.")
    failure = failure_of(outcome, run_with(tmp_path, line, line, other), ["first"])
    assert 'SEPTET_MODEL_REQUESTS="POST /v1/files",' in failure.remedy
    assert "SEPTET" not in failure_of(outcome, Run(tmp_path / "none", None), ["first"]).remedy


@pytest.mark.parametrize(
    ("told", "seen", "counted"),
    [
        (Usage(input_tokens=900, output_tokens=100, cost_usd=1.0), (20_990, 10), None),
        (
            Usage(input_tokens=500, cache_read_tokens=400, output_tokens=100, cost_usd=1.0),
            (499_000, 1_000),
            Usage(
                input_tokens=498_600, cache_read_tokens=400, output_tokens=1_000, cost_usd=500.0, estimated=True
            ),
        ),
        (Usage(cost_usd=0.0), (30_000, 100), Usage(input_tokens=30_000, output_tokens=100, estimated=True)),
        (Usage(output_tokens=200), (30_000, 100), Usage(input_tokens=30_000, output_tokens=200, estimated=True)),
    ],
)
def test_a_model_that_says_much_more_than_its_cli_is_believed(
    tmp_path: Path, told: Usage, seen: tuple[int, int], counted: Usage | None
) -> None:
    """A program in the CLI can forge the stream, so a budget counts the model's much higher figures."""
    run = run_with(tmp_path, {"id": "1"}, {"id": "1", "input_tokens": seen[0], "output_tokens": seen[1]})
    outcome = with_seen_usage(Outcome(ended="ok", usage=told), run)
    assert outcome.usage == (counted or told)
    words = f"the model says that it used {sum(seen):,} tokens, and claude says {told.tokens:,}"
    assert outcome.warnings == ((words,) if counted else ())
