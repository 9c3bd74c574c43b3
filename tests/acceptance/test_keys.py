"""A worker's key that an agent knows and writes into all its output."""

import json
from base64 import b64encode
from pathlib import Path

import httpx
import httpx2
import pytest
from fakes.compiled_scanner import lend_scanner, shared_scanner
from fakes.mcp_client import tools_of
from fakes.repositories import Origin, git
from fakes.septet_command import WITHIN_SECONDS, Septet
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from septet.state import StateDir

pytestmark = pytest.mark.faces

KEY = "a-key/of-the+worker-2931"
ENCODED = b64encode(f"x-access-token:{KEY}".encode()).decode()
API_TOKEN = "the-token-of-the-api-4711-x"  # noqa: S105 -- of the test
PASSWORD = "of-the-workers-proxy-58"  # noqa: S105 -- of the test
ORDER_PATHS = ("", "/detail", "/steps", "/logs", "/logs/stream", "/git-progress")
TOOLS = ("task_detail", "steps", "logs")
FORMS = (KEY, ENCODED, KEY.encode().hex())


@pytest.mark.timeout(300)
@pytest.mark.needs("Linux")
async def test_a_key_that_an_agent_tells_is_seen_nowhere(septet: Septet, origin: Origin, tmp_path: Path) -> None:
    """No face shows the key, nor does the worker's environment, log, history, commit or pull request."""
    way_out = {"HTTPS_PROXY": f"http://ada:{PASSWORD}@127.0.0.1:9", "NO_PROXY": "*"}
    keyed = Septet(septet.root, {"SEPTET_GITHUB_TOKEN": KEY, "SEPTET_LOG_LEVEL": "debug", **way_out})
    lend_scanner(StateDir(keyed.state), shared_scanner())
    (keyed.state / "api-token").write_text(API_TOKEN, encoding="ascii")
    (keyed.state / "api-token").chmod(0o600)
    told_by_agent = f"done with {KEY} and {ENCODED} and {API_TOKEN}"
    order = keyed.scenario("wo-key", {"steps": {
        "implement_plan": {"put_over": {"summary": told_by_agent}},
        "create_commit": {"put_over": {"commit_message": f"bug: {KEY}\n\n{' '.join(FORMS)}"}},
        "create_pull_request": {"put_over": {"title": f"Fix by {KEY}", "body": " ".join(FORMS)}},
    }})  # fmt: skip
    with keyed.up() as up:
        environments = [
            file.read_bytes()
            for file in (Path(f"/proc/{up.process.pid}/environ"), *_of_descendants(up.process.pid))
        ]
        page = str(up.ready["page"])
        page_key = page.rpartition("token=")[2]
        ended = keyed("run", "--repo", origin.bare, "--title", f"Use {KEY}", "--id", order, "--wait", "--json")
        assert ended.code == 0, ended
        waits = keyed("create", "--repo", origin.bare, "--title", f"Use {page_key}", "--id", "wo-page", "--json")
        assert waits.code == 0, waits
        with keyed.api as api:
            headers = {"Authorization": api.headers["authorization"]}
            served = [_answer(api, f"/agent-work-orders/{order}{path}") for path in ORDER_PATHS]
            served += [_answer(api, path) for path in ("/board", "/agent-work-orders/wo-page")]
            assert _answer(api, f"/{page.rpartition('/')[2]}") != ""
            served += [_answer(api, path) for path in ("/", f"/work-orders/{order}", "/work-orders/wo-page")]
            async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=WITHIN_SECONDS) as http:
                async with Client(streamable_http_client(f"{up.api}/mcp", http_client=http)) as client:
                    served += [str(await client.call_tool(tool, {"id": order})) for tool in TOOLS]
        async with tools_of(keyed, tmp_path / "mcp.log") as tools:
            by_tools = [json.dumps(await tools(tool, id=order), ensure_ascii=False) for tool in TOOLS]
        history = json.loads(keyed.temporal("workflow", "show", "--workflow-id", order, "--output", "json").out)
        told = [
            ended.out, keyed("show", order).out, keyed("logs", order).out, keyed("logs", order, "--raw").out,
            json.dumps(history), *served, *by_tools,
        ]  # fmt: skip
    told.append(git(origin.bare, "log", "--all", "--patch", "--format=%B"))
    told += up.errors
    assert "***" in told[0]
    assert all(any("***" in text for text in texts) for texts in (served, by_tools))
    assert "***" in git(origin.bare, "log", "--format=%B", ended.json["task"]["branch_name"])
    for form in FORMS:
        assert not [text for text in told if form in text]
        assert not [text for text in told if b64encode(form.encode()).decode()[:-4] in text]
        assert not [content for content in environments if form.encode() in content]
    assert not [content for content in environments if PASSWORD.encode() in content]
    for own in (API_TOKEN, page_key):
        assert not [text for text in served if own in text]


def _answer(api: httpx.Client, path: str) -> str:
    """Return the answer of a path, which must exist: a missing path would prove nothing."""
    answer = api.get(path, follow_redirects=True)
    assert answer.is_success, (path, answer.text)
    return answer.text


def _of_descendants(pid: int) -> list[Path]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [Path(f"/proc/{child}/environ") for child in children]
