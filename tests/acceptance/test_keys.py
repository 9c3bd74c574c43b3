"""A key of the worker, which an agent has come by and tells wherever it can."""

import json
import sys
from base64 import b64encode
from pathlib import Path

import pytest
from fakes.repositories import Origin, git
from fakes.septet_command import Septet

pytestmark = pytest.mark.faces

KEY = "a-key/of-the+worker-2931"
ENCODED = b64encode(f"x-access-token:{KEY}".encode()).decode()
FORMS = (KEY, ENCODED, KEY.encode().hex())


@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")
def test_a_key_that_an_agent_tells_is_seen_nowhere(septet: Septet, origin: Origin) -> None:
    """Not in the worker's environment, its log, histories, the HTTP API, the page, logs, the commit and the pull request."""
    keyed = Septet(septet.root, {"SEPTET_GITHUB_TOKEN": KEY, "SEPTET_LOG_LEVEL": "debug"})
    order = keyed.scenario("wo-key", {"steps": {
        "implement_plan": {"answer": {"success": True, "summary": f"done with {KEY} and {ENCODED}"}},
        "create_commit": {"answer": {"commit_message": f"bug: {KEY}\n\n{' '.join(FORMS)}"}},
        "create_pull_request": {"answer": {"title": f"Fix by {KEY}", "body": " ".join(FORMS)}},
    }})  # fmt: skip
    with keyed.up() as up:
        environments = [
            file.read_bytes()
            for file in (Path(f"/proc/{up.process.pid}/environ"), *_of_descendants(up.process.pid))
        ]
        ended = keyed("run", "--repo", origin.bare, "--title", f"Use {KEY}", "--id", order, "--wait", "--json")
        assert ended.code == 0, ended
        with keyed.api as api:
            paths = ("", "/logs", "/steps", "/diff")
            served = [api.get(f"/tasks/{order}{path}").text for path in paths]
        history = json.loads(keyed.temporal("workflow", "show", "--workflow-id", order, "--output", "json").out)
        told = [
            ended.out, keyed("show", order).out, keyed("logs", order).out, keyed("logs", order, "--raw").out,
            json.dumps(history), *served,
        ]  # fmt: skip
    branch = ended.json["task"]["branch_name"]
    told.append(git(origin.bare, "log", "--format=%B", branch))
    told += [file.read_text(errors="replace") for file in (keyed.state / "forge").rglob("*") if file.is_file()]
    told += up.errors
    assert "***" in told[0]
    assert "***" in git(origin.bare, "log", "--format=%B", branch)
    for form in FORMS:
        assert not [text for text in told if form in text]
        assert not [text for text in told if b64encode(form.encode()).decode()[:-4] in text]
        assert not [content for content in environments if form.encode() in content]


def _of_descendants(pid: int) -> list[Path]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [Path(f"/proc/{child}/environ") for child in children]
