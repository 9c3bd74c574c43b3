"""GitHub's clients and the fake of GitHub stand around Prism, which checks both against GitHub's description."""

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from fakes.forges.description import DATA, description_of
from fakes.forges.github import GitHubFake
from fakes.forges.serving import serving_forge
from fakes.forges.state import Answer, Asked, Fault, Json

from septet.errors import NotFoundError
from septet.forges.choose import forge_for, token_for
from septet.forges.forge import CommentedForge, FollowedForge, Forge
from septet.forges.github.answers import CheckOutputAnswer
from septet.forges.github.forge import github_api
from septet.forges.values import NewPullRequest
from septet.git.engine.address import parse_address
from septet.settings import Settings

pytestmark = pytest.mark.faces

GITHUB: Final = description_of("github")
_SAMPLES: Final = {
    "uri": "https://forge.example/",
    "date-time": "2026-01-01T00:00:00Z",
    "date": "2026-01-01",
    "email": "someone@forge.example",
}
_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}


def completed(schema: Json, value: Json) -> Json:
    """Return a value with all fields that GitHub's description requires; present fields stay, right or wrong."""
    schema = GITHUB.resolved(schema)
    for one in schema.get("allOf", ()):
        value = completed(one, value)
    alternatives = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if alternatives and (fitting := [each for each in alternatives if _fits(each, value)]):
        value = completed(fitting[0], value)
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        kept = {name: completed(properties.get(name, {}), each) for name, each in value.items()}
        missing = [name for name in schema.get("required", ()) if name not in kept]
        return kept | {name: _sample(properties.get(name, {})) for name in missing}
    return [completed(schema.get("items", {}), each) for each in value] if isinstance(value, list) else value


def _sample(schema: Json) -> Json:
    schema = GITHUB.resolved(schema)
    if schema.get("nullable"):
        return None
    if "enum" in schema:
        return schema["enum"][0]
    if alternatives := [*schema.get("anyOf", ()), *schema.get("oneOf", ())]:
        return _sample(alternatives[0])
    kind = schema.get("type", "object")
    if kind == "object":
        return completed(schema, {})
    plain: Json = {"array": [], "boolean": False, "integer": 1, "number": 1}
    return _SAMPLES.get(schema.get("format", ""), "") if kind == "string" else plain[kind]


def _fits(schema: Json, value: Json) -> bool:
    schema = GITHUB.resolved(schema)
    if value is None:
        return bool(schema.get("nullable"))
    return isinstance(value, _TYPES.get(schema.get("type", "object"), dict))


_PROGRAM: Final = Path(__file__).parents[1] / "npm/node_modules/@stoplight/prism-cli/dist/index.js"
_STARTS_WITHIN_SECONDS: Final = 120


@dataclass
class Prism:
    url: str = ""
    lines: list[str] = field(default_factory=list)
    listens: threading.Event = field(default_factory=threading.Event)

    @property
    def complaints(self) -> list[str]:
        return [line for line in self.lines if "violation" in line.lower() or "✖" in line]


@contextmanager
def serving_prism(document: Path, upstream: str) -> Iterator[Prism]:
    """Run Prism before a server during the block; Prism answers a deviation with 422 or 500."""
    args = ["proxy", str(document), upstream, "--errors", "--host", "127.0.0.1", "--port", "0"]
    with subprocess.Popen(
        ["node", str(_PROGRAM), *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        prism = Prism()

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                prism.lines.append(line.rstrip())
                if found := re.search(r"Prism is listening on (http://\S+?:\d+)", line):
                    prism.url = found[1]
                    prism.listens.set()
            prism.listens.set()

        reader = threading.Thread(target=read)
        reader.start()
        try:
            assert prism.listens.wait(_STARTS_WITHIN_SECONDS)
            assert prism.url, f"{prism.lines[-20:]} (npm ci --prefix tests/npm)"
            yield prism
        finally:
            process.terminate()
            reader.join()


@cache
def openapi_document(name: str) -> Json:
    """Return the described part of a forge's API (see `scripts/describe-forge`) as an OpenAPI 3 document."""
    described = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    document: dict[str, Any] = {"openapi": "3.0.3", "info": {"title": name, "version": "1"}, "paths": {}}
    for path, operations in described["paths"].items():
        document["paths"][_path_of(path)] = {
            method.lower(): each | {"responses": _with_words(each["responses"])}
            for method, each in operations.items()
        }
    for reference, value in described["known"].items():
        *folders, last = reference.removeprefix("#/").split("/")
        place = document
        for folder in folders:
            place = place.setdefault(folder, {})
        place[last] = value | {"description": ""} if "responses" in folders else value
    return _with_plain_nulls(document)


def _with_words(responses: Json) -> Json:
    """Return responses with the descriptions that OpenAPI requires: Prism ignores a response without it."""
    return {status: each if "$ref" in each else each | {"description": ""} for status, each in responses.items()}


def _path_of(path: str) -> str:
    """Return a path in Prism's form: GitHub's `ref` may hold slashes, and a placeholder of Prism may not."""
    return path.replace("/git/matching-refs/{ref}", "/git/matching-refs/heads/{ref}")


def _with_plain_nulls(value: Json) -> Json:
    """Return a document in which each `nullable` has a type: Prism silently ignores a schema without a type."""
    if isinstance(value, list):
        return [_with_plain_nulls(each) for each in value]
    if not isinstance(value, dict):
        return value
    plain = {key: _with_plain_nulls(each) for key, each in value.items()}
    if plain.get("nullable") is True and "type" not in plain:
        del plain["nullable"]
        return {"anyOf": [plain, {"type": "object", "nullable": True, "not": {"type": "object"}}]}
    return plain


SHA = "b" * 40
NEW = NewPullRequest("feat-1", "main", "A thing", "Body.\n\nCloses #1", "wo-1", draft=True, labels=("septet",))
KEY = generate_private_key(65537, 2048)
BESIDE: Final = {"GET /repos/{owner}/{repo}/actions/jobs/{job_id}/logs"}
"""Its answer is an address elsewhere, which Prism requests itself instead of passing it on."""


@dataclass
class WholeGitHub(GitHubFake):
    """The fake with complete answers: Prism requires all described fields, also fields that no client of ours reads."""

    def answer(self, asked: Asked) -> Answer:
        status, value = super().answer(asked)
        schema = GITHUB.answer_schema(asked.method, unquote(asked.path), status)
        return status, value if schema is None else completed(schema, value)


@pytest.fixture
def fake() -> Iterator[WholeGitHub]:
    """A GitHub with an issue, a branch besides `main`, a fork with another branch, and an App."""
    heads = {"o/foo.js": {"main": "a" * 40, "feat-1": SHA}, "me/foo.js": {"feat-2": "c" * 40}}
    with serving_forge(WholeGitHub(heads=heads, app_key=KEY.public_key())) as fake:
        assert isinstance(fake, WholeGitHub)
        fake.add_issue("Title", "Body.", ("bug", "septet:blocked"))
        yield fake
    assert fake.deviations == []


@pytest.fixture
def prism(fake: WholeGitHub, tmp_path: Path) -> Iterator[Prism]:
    """Prism in front of the fake."""
    document = tmp_path / "github.json"
    document.write_text(json.dumps(openapi_document("github")))
    with serving_prism(document, fake.url) as prism:
        yield prism


def settings_of(fake: WholeGitHub, prism: Prism, tmp_path: Path) -> dict[str, object]:
    return {
        "state_dir": tmp_path,
        "environ": {},
        "github_hosts": (fake.url.removeprefix("http://"),),
        "github_api_url": prism.url,
    }


def connected(fake: WholeGitHub, prism: Prism, tmp_path: Path) -> Forge:
    known = settings_of(fake, prism, tmp_path) | {"github_token": fake.token}
    return forge_for(parse_address(f"{fake.url}/{fake.project}.git"), Settings.model_validate(known))


def test_all_that_septet_asks_of_github_is_as_github_describes_it(
    fake: WholeGitHub, prism: Prism, tmp_path: Path
) -> None:
    """Each used operation passes through Prism, and Prism complains of no request and of no answer."""
    forge = connected(fake, prism, tmp_path)
    read_and_write_an_issue(fake, forge)
    open_pull_requests(fake, forge)
    converse(fake, forge, prism.url)
    ask_as_an_app(fake, prism, tmp_path)

    assert prism.complaints == []
    described = set((DATA / "github.operations").read_text().splitlines())
    assert described - {operation_of(asked, described) for asked in fake.asked} == BESIDE


def read_and_write_an_issue(fake: WholeGitHub, forge: Forge) -> None:
    fake.add_comment(1, "First.", "ada")
    assert [each.body for each in forge.issue(1).comments] == ["First."]
    assert [each.number for each in forge.find_issues((1, 9))] == [1]
    assert [each.number for each in forge.open_issues("bug")] == [1]
    for words in ("Plan.", "Done."):
        forge.put_comment(1, "wo-1", words)
    forge.set_label(1, "septet:review", ["septet:blocked"])
    assert sorted(fake.issues[1].labels) == ["bug", "septet:review"]
    assert isinstance(forge, CommentedForge)
    assert forge.comments_since(datetime(2020, 1, 1, tzinfo=UTC))
    assert forge.may_write("ada")
    assert not forge.may_write("nobody")
    with pytest.raises(NotFoundError):
        forge.issue(9)


def open_pull_requests(fake: WholeGitHub, forge: Forge) -> None:
    opened = forge.open_pull_request(replace(NEW, reviewers=("ada",), assignees=("eve",)))
    assert forge.open_pull_request(NEW).number == opened.number
    assert forge.open_pull_request(replace(NEW, reviewers=("nobody",))).warnings
    forge.add_to_pull_request(opened.number, replace(NEW, title="More", marker="wo-2"))
    forge.expect_fork("me/foo.js")
    forked = forge.open_pull_request(replace(NEW, head="feat-2", head_project="me/foo.js"))
    fake.end_pull(forked.number, "merged")
    assert forge.pull_request(forked.number).state == "merged"
    assert len(forge.pull_requests_of("feat-1")) == 1
    assert [each.name for each in forge.branches("feat-")] == ["feat-1"]
    recent = forge.recent_pull_requests()
    assert recent is not None
    assert forge.recent_pull_requests(recent.etag) is None
    fake.pulls[opened.number].reviews += [("ada", "approved", "Fine."), ("eve", "changes_requested", "No.")]
    fake.statuses[SHA] = [("build", "success"), ("test", "failure"), ("slow", "pending")]
    assert len(forge.reviews(opened.number)) == 2
    assert len(forge.checks(SHA)) == 3


def converse(fake: WholeGitHub, forge: Forge, api_url: str) -> None:
    assert isinstance(forge, FollowedForge)
    number = next(iter(fake.pulls))
    fake.add_thread(number, "ada", "app.py", 7, "Why so?")
    fake.statuses[SHA] = [("test", "failure")]
    conversation = forge.conversation(number)
    for words in ("Because.", "It is so."):
        conversation.reply(conversation.threads()[0], "wo-1 round 1", words)
        conversation.put_comment("wo-1 round 1", words)
    assert [each.author for each in conversation.comments()] == ["septet"]
    (check,) = forge.checks(SHA)
    with github_api(api_url, fake.token).asking("a check", _HERE) as client:
        assert "It failed." in client.get(CheckOutputAnswer, f"check-runs/{check.id}").text


def ask_as_an_app(fake: WholeGitHub, prism: Prism, tmp_path: Path) -> None:
    key = tmp_path / "app.pem"
    key.write_bytes(KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    known = settings_of(fake, prism, tmp_path) | {"github_app_id": "1", "github_app_key_file": key}
    settings = Settings.model_validate(known)
    address = parse_address(f"{fake.url}/{fake.project}.git")
    assert forge_for(address, settings).issue(1).title == "Title"
    assert token_for(address, settings) in fake.app_tokens


def operation_of(asked: Asked, described: set[str]) -> str:
    for operation in sorted(described, key=lambda each: each.count("{")):
        method, path = operation.split()
        pattern = re.sub(r"\\{ref\\}", ".+", re.escape(path)).replace("commits/.+", "commits/[^/]+")
        if method == asked.method and re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", pattern), asked.path):
            return operation
    return ""


_HERE: Final = "/repos/o/foo.js"
REQUESTS: Final[tuple[tuple[str, str, object, int], ...]] = (
    ("GET", f"{_HERE}/issues/1", None, 200),
    ("GET", f"{_HERE}/pulls", None, 200),
    ("POST", f"{_HERE}/pulls", {"title": "It", "head": "feat-1", "base": "main", "body": ""}, 201),
    ("PATCH", f"{_HERE}/issues/comments/1", {"body": "words"}, 200),
    ("DELETE", f"{_HERE}/issues/1/labels/bug", None, 200),
)
"""A request of each method, for one object and for a list, and the status of a good answer."""


def test_prism_sees_what_is_wrong(fake: WholeGitHub, prism: Prism) -> None:
    """Prism refuses an answer of a wrong type to each method, and an undescribed body and path."""
    headers = {"Authorization": f"token {fake.token}"}
    with httpx.Client(base_url=prism.url, headers=headers, timeout=60) as client:
        for method, path, body, status in REQUESTS:
            fake.faults[:] = [Fault("wrong_type", status=status)]
            answer = client.request(method, path, json=body)
            assert "VIOLATIONS" in answer.text, (method, path)
            assert "Response body" in answer.text, (method, path)
        wrong = {"title": 7, "head": "feat-1", "base": "main"}
        assert client.post(f"{_HERE}/pulls", json=wrong).status_code == 422
        assert "NO_PATH_MATCHED" in client.get(f"{_HERE}/pears").text
    assert prism.complaints != []
