import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.repositories import git
from fakes.septet_command import WITHIN_SECONDS, Septet
from fakes.waiting import until

from septet.contracts.names import Step


@pytest.fixture(autouse=True)
def _nothing_lives_on(septet: Septet) -> Iterator[None]:
    yield
    assert septet.processes() == []


def passes(checkout: Path) -> bool:
    argv = [sys.executable, "-B", "-m", "unittest"]
    return subprocess.run(argv, cwd=checkout, capture_output=True, check=False).returncode == 0


def test_the_demo_takes_an_issue_to_a_pull_request_that_mends_the_failing_test(
    septet: Septet, tmp_path: Path
) -> None:
    """Seven steps end in a pull request on the sample's origin; its test fails before and passes after."""
    ended = septet("demo", "--json")
    assert ended.code == 0, ended
    assert ended.json["ok"] is True
    task = ended.json["task"]
    assert (task["status"], task["stage"]) == ("completed", "review")
    assert [(row["step"], row["success"]) for row in task["steps"]] == [(step.value, True) for step in Step]
    origin = Path(task["repository_url"])
    assert task["pr_url"] == f"file://{origin}/pull/1"
    assert git(origin, "rev-parse", f"refs/heads/{task['branch_name']}") == task["commit_sha"]
    assert f'"head": "{task["branch_name"]}"' in git(origin, "grep", "-h", "head", "refs/septet/forge")
    assert "shop/pricing.py" in ended.json["diff_stat"]
    assert [path.name for path in Path(septet.env["HOME"]).iterdir()] == ["scripted-agent"]
    checkout = tmp_path / "checkout"
    git(tmp_path, "clone", "-q", str(origin), str(checkout))
    assert not passes(checkout)
    git(checkout, "checkout", "-q", task["branch_name"])
    assert passes(checkout)


def test_a_crash_leaves_a_rescue_and_the_text_ends_with_the_command_that_shows_it(septet: Septet) -> None:
    """As text the demo names pull request, diff stat and the rescue's patch; its last line is `septet up`."""
    ended = septet("demo", "--scenario", "crash")
    assert ended.code == 0, ended
    lines = ended.out.rstrip("\n").split("\n")
    (pull_request,) = [line for line in lines if line.startswith("pull request")]
    assert pull_request.split()[-1].endswith("/shop.git/pull/1")
    assert any("shop/pricing.py" in line and "|" in line for line in lines)
    (patch,) = [Path(line.strip()) for line in lines if line.endswith("rescue.patch")]
    assert patch.read_bytes().startswith(b"diff --git ")
    assert lines[-1].startswith(f"SEPTET_STATE_DIR={septet.state}/demos/")
    assert lines[-1].endswith("septet up")


def test_an_interrupted_demo_leaves_nothing_alive(septet: Septet) -> None:
    """Ctrl-C during an agent's work ends server, worker and agent, and the exit code is 130."""
    with septet.started("demo", "--scenario", "slow", "--json") as demo:
        until(lambda: next(septet.state.glob("demos/*/runs/wo-demo/1-*/run.json"), None))
        demo.send_signal(signal.SIGINT)
        assert demo.wait(timeout=WITHIN_SECONDS) == 130
    assert septet.processes() == []
