"""The HTTP API under the commands of scripts that were written for another server of the seven steps."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.repositories import Origin
from fakes.septet_command import WITHIN_SECONDS, Septet, free_port
from fakes.shell_programs import write_program

from septet.contracts.names import Step

pytestmark = pytest.mark.faces

COMMANDS = Path(__file__).parents[1] / "data" / "http" / "commands.sh"
SLEEP = """\
#!/bin/sh
# Waits for the end of the work order that the script has started, instead of for so many seconds.
for _ in $(seq 500); do
    curl --silent "{api}/agent-work-orders/${{WORK_ORDER:-$WORK_ORDER_ID}}" |
        jq --exit-status '.status != "running"' > /dev/null && exit
    {sleep} 0.1
done
exit 1
"""


def objects(out: str) -> Iterator[dict[str, Any]]:
    decoder, position = json.JSONDecoder(), out.find("{")
    while position >= 0:
        found, position = decoder.raw_decode(out, position)
        yield found
        position = out.find("{", position)


def test_the_commands_run_as_they_are_written(septet: Septet, origin: Origin, tmp_path: Path) -> None:
    """The commands create, follow and check work orders; only port, repository address and artifacts' folder differ."""
    number = septet("issue", "add", "--repo", origin.bare, "--title", "Say goodbye too", "--json").json["issue"]
    assert number["number"] == 1
    port = free_port()
    script = COMMANDS.read_text(encoding="utf-8")
    for written, here in {
        "localhost:8888": f"localhost:{port}",
        "https://github.com/Wirasm/dylan.git": str(origin.bare),
        "/tmp/agent-work-orders/*/outputs/": f"{septet.state}/runs/*/*/",
        "/outputs/*.jsonl": "/*/stdout.jsonl",
        "/tmp/agent-work-orders": f"{septet.state}/runs",
    }.items():
        assert written in script
        script = script.replace(written, here)
    real = shutil.which("sleep")
    sleep = write_program(tmp_path / "bin" / "sleep", SLEEP.format(api=f"http://localhost:{port}", sleep=real))
    env = {"PATH": f"{sleep.parent}:{os.environ['PATH']}", "HOME": str(tmp_path), "no_proxy": "localhost"}
    with septet.up(), septet.beside("serve", "--port", str(port), SEPTET_API_TOKEN="none"):
        done = subprocess.run(
            ["bash", "-a", "-e", "-u", "-o", "pipefail", "-c", script],
            env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=2 * WITHIN_SECONDS, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done
    told = list(objects(done.stdout))
    assert [each["status"] for each in told if "status" in each] == [
        "healthy",
        "completed",
        "healthy",
        "completed",
    ]
    shown = [each for each in told if set(each) == {"step", "agent", "success", "output"}]
    again = [each for each in told if set(each) == {"step", "agent_name", "success", "output"}]
    assert [each["step"] for each in shown] == [each["step"] for each in again] == list(Step)
    assert (shown[0]["agent"], shown[0]["output"], again[0]["output"]) == ("classifier", "/feature", "/feature")
    assert all(each["success"] for each in (*shown, *again))
    assert [each["type"] for each in told if each.get("type") == "result"] == 3 * len(Step) * ["result"]
