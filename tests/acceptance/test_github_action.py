"""The GitHub Action, run by `act` like a self-hosted runner: no Docker, no network."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from fakes.repositories import Origin, git, make_origin
from fakes.septet_command import PROGRAMS, Septet
from fakes.shell_programs import write_program

pytestmark = pytest.mark.faces
ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "deploy" / "github-action" / "work-order.yml"
ACTION = "septet/septet@RELEASE_COMMIT"
HOSTILE = "\"; touch pwned; echo $(touch pwned) `touch pwned` ${{ github.token }} ' --repo=/etc"
OWN_WORKFLOW = f"""
on:
  workflow_dispatch:
    inputs: {{repository: {{}}, title: {{}}, description: {{}}, address: {{}}, septet: {{}}}}
jobs:
  start:
    runs-on: ubuntu-latest
    steps:
      - id: septet
        uses: {ACTION}
        with:
          repository: ${{{{ inputs.repository }}}}
          title: ${{{{ inputs.title }}}}
          description: ${{{{ inputs.description }}}}
          address: ${{{{ inputs.address }}}}
          septet: ${{{{ inputs.septet }}}}
      - shell: bash
        env:
          OUTPUTS: ${{{{ toJSON(steps.septet.outputs) }}}}
          TO: ${{{{ inputs.septet }}}}.outputs
        run: printf '%s' "$OUTPUTS" > "$TO"
"""


@dataclass(frozen=True)
class Runner:
    root: Path

    def dispatch(self, workflow: str, **inputs: str) -> "subprocess.CompletedProcess[str]":
        """Start a workflow of the repository by hand, and return its ended process."""
        repository = make_origin(self.root, "theirs.git").checkout
        git(repository, "remote", "set-url", "origin", "https://github.com/o/r.git")
        path = repository / ".github" / "workflows" / "it.yml"
        path.parent.mkdir(parents=True)
        path.write_text(workflow, encoding="utf-8")
        git(repository, "add", "-A")
        git(repository, "commit", "-q", "-m", "workflow")
        own = [f"--input={name.replace('_', '-')}={value}" for name, value in inputs.items()]
        runs_on = [f"--platform={label}=-self-hosted" for label in ("ubuntu-latest", "self-hosted")]
        here = f"--local-repository={ACTION}={self._action()}"
        return subprocess.run(
            [
                PROGRAMS / "act",
                "workflow_dispatch",
                f"--workflows={path}",
                "--action-offline-mode",
                here,
                *runs_on,
                *own,
            ],
            cwd=repository,
            env={"PATH": f"{self.programs}:/usr/bin:/bin", "HOME": str(self.root / "home"), "LANG": "C.UTF-8"},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    @property
    def programs(self) -> Path:
        folder = self.root / "bin"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def program(self, name: str, text: str) -> Path:
        return write_program(self.programs / name, text)

    def _action(self) -> Path:
        """Return a repository with only the files that the action needs."""
        action = make_origin(self.root, "action.git").checkout
        for name in ("action.yml", "deploy/github-action/start.py"):
            (action / name).parent.mkdir(parents=True, exist_ok=True)
            (action / name).write_bytes((ROOT / name).read_bytes())
        git(action, "add", "-A")
        git(action, "commit", "-q", "-m", "action")
        git(action, "branch", "-M", "main")
        return action


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """A runner without an installation of Septet."""
    return Runner(tmp_path / "runner")


def test_a_dispatch_becomes_a_pull_request(runner: Runner, served: Septet, origin: Origin) -> None:
    """The work order runs on the runner's server, hostile words arrive unchanged, and the outputs name its end."""
    start = "#!/bin/sh\nSEPTET_STATE_DIR='{}' exec '{}' \"$@\"\n"
    program = runner.program("septet-here", start.format(served.state, PROGRAMS / "septet"))
    ended = runner.dispatch(
        OWN_WORKFLOW,
        repository=str(origin.bare),
        title="Say goodbye",
        description=HOSTILE,
        address=served.address,
        septet=str(program),
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    outputs = json.loads(Path(f"{program}.outputs").read_text(encoding="utf-8"))
    task = served("show", outputs["id"], "--json").json["task"]
    assert outputs["status"] == task["status"] == "completed"
    assert outputs["pull-request"] == task["pr_url"] == f"file://{origin.bare}/pull/1"
    assert task["description"] == HOSTILE
    assert not list(runner.root.rglob("pwned"))


def test_the_example_gives_its_inputs_as_arguments(runner: Runner) -> None:
    """`work-order.yml` starts a work order on its own repository; no input becomes another option."""
    told = runner.root / "told.json"
    answer = {"ok": True, "task": {"id": "wo-1", "status": "completed", "pr_url": None}}
    program = f"#!{sys.executable}\nimport json, sys\njson.dump(sys.argv[1:], open({str(told)!r}, 'w'))\n"
    runner.program("septet", f"{program}print({json.dumps(answer)!r})\n")
    ended = runner.dispatch(EXAMPLE.read_text(encoding="utf-8"), issue="42", agent=HOSTILE)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    arguments = json.loads(told.read_text(encoding="utf-8"))
    assert arguments[:4] == ["run", "--repo=https://github.com/o/r", "--issue=42", f"--agent={HOSTILE}"]
    assert arguments[4] == "--wait"
    assert arguments[5].startswith("--id=wo-run-")
    assert arguments[6:] == ["--json"]
    assert not list(runner.root.rglob("pwned"))


def test_a_work_order_that_fails_fails_the_job(runner: Runner) -> None:
    """The run's page shows the error and its remedy on one line."""
    error = {
        "type": "NotFound",
        "message": "There is no issue 42.\n::set-output name=id::x",
        "remedy": "Look again.",
    }
    runner.program("septet", f"#!/bin/sh\necho '{json.dumps({'ok': False, 'error': error})}'\nexit 3\n")
    ended = runner.dispatch(EXAMPLE.read_text(encoding="utf-8"), issue="42")
    assert ended.returncode != 0
    assert "There is no issue 42." in ended.stdout
    assert "Look again." in ended.stdout


def test_no_input_is_part_of_a_script() -> None:
    """Each expression of the action's steps is in `env`, and none in `run`."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    steps = action["runs"]["steps"]
    assert all("${{" not in step["run"] for step in steps)
    given = {value for step in steps for value in step["env"].values()}
    assert given == {f"${{{{ inputs.{name} }}}}" for name in action["inputs"]}
