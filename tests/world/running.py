"""The machine of the cases: one `septet up`, a stand-in for each CLI, and forges with a repository for each case."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import unquote

from fakes.forges.gitea import GiteaFake
from fakes.forges.github import GitHubFake
from fakes.forges.gitlab import GitLabFake
from fakes.forges.serving import serving_forge
from fakes.forges.state import Fault, ForgeFake
from fakes.repositories import Origin, git, git_env, make_origin
from fakes.septet_command import PROGRAMS, Ended, Septet
from fakes.shell_programs import write_program
from fakes.warm_command import run_septet
from world.came import Came
from world.case import Act, Answer, Case, Next, fill

CLIS: Final = ("claude", "codex", "copilot", "gemini", "opencode")
_FAKES: Final = (GitHubFake, GitLabFake, GiteaFake)
_KEYS: Final = dict.fromkeys(
    (
        "ANTHROPIC_API_KEY",
        "CODEX_API_KEY",
        "GEMINI_API_KEY",
        "COPILOT_GITHUB_TOKEN",
        "OPENCODE_API_KEY",
    ),
    "made-up-key",
)
_FILES: Final = {"calc.py": "def add(a, b):\n    return a - b\n"}
WORK: Final = {"calc.py": "def add(a, b):\n    return a + b\n", "new.txt": "# kept\n"}
"""The files that an ordinary turn of the implementor writes."""
_OTHERS: Final = "A pull request of somebody else"
_LOOK_EVERY_SECONDS: Final = 1.0
_CLOSED: Final = {"completed", "failed", "cancelled"}


@dataclass
class Street(ForgeFake):
    houses: dict[str, ForgeFake] = field(default_factory=dict)
    spare: ForgeFake = field(default_factory=ForgeFake)
    """The fake that answers requests about no repository."""

    def at(self, path: str) -> ForgeFake:
        """Return the fake of the repository that a path names; of two matching names, the longer."""
        found = [project for project in self.houses if f"/{project}" in unquote(path)]
        return self.houses[max(found, key=len)] if found else self.spare


@dataclass
class World:
    septet: Septet
    streets: dict[str, Street]
    address: str = ""

    def came_of(self, case: Case) -> Came:
        folder = self.septet.root / "cases" / case.order
        folder.mkdir(parents=True)
        origin = self._origin_of(case, folder)
        repository = str(origin.bare)
        env = {
            **git_env(folder / "home"),
            "CASE": str(case.folder),
            "ORIGIN": repository,
            "ORDER": case.order,
            "WORK": str(folder),
        }
        env |= {
            f"GIT_{role}_{key}": value
            for role in ("AUTHOR", "COMMITTER")
            for key, value in (("NAME", "Ada"), ("EMAIL", "ada@example.org"))
        }
        _write({**_FILES, **case.files}, origin.checkout)
        _run(case.setup, origin.checkout, env)
        origin.push({}, message="first")
        came = Came(case, origin.bare, env, origin.sha("main"))
        _run(case.origin, folder, env)
        house = self._move_in(case)
        if house is not None:
            repository = f"{self.streets[house.name].url}/{house.project}.git"
        plan = fill(json.dumps(_plan(case, origin)), self._names(case, repository))
        (folder / "plan.json").write_text(plan, encoding="utf-8")
        with self._machine(case) as septet:
            self._run_order(septet, came, repository, house)
            self._look(septet, came, folder, house)
        return came

    def _origin_of(self, case: Case, folder: Path) -> Origin:
        if case.forge is None:
            return make_origin(folder, f"{case.name}.git")
        root = self.streets[case.forge.kind].repositories
        assert root is not None
        return make_origin(root / "o", f"{case.name}.git")

    def _names(self, case: Case, repository: str) -> dict[str, str]:
        return {"{origin}": repository, "{url}": self.streets[case.forge.kind].url if case.forge else ""}

    def _move_in(self, case: Case) -> ForgeFake | None:
        if case.forge is None:
            return None
        street = self.streets[case.forge.kind]
        (kind,) = (fake for fake in _FAKES if fake.name == case.forge.kind)
        house = kind(project=f"o/{case.name}", repositories=street.repositories, url=street.url)
        for issue in case.forge.issues:
            house.add_issue(issue.title, issue.body, issue.labels)
        names = self._names(case, "")
        for branch in case.forge.others:
            _open_pull(house, branch)
        house.faults += [_fault(answer, names) for answer in case.forge.answers]
        street.houses[house.project] = house
        return house

    @contextmanager
    def _machine(self, case: Case) -> Iterator[Septet]:
        if not case.settings and not case.alone:
            yield self.septet
            return
        own = {"TEMPORAL_ADDRESS": self.address, "SEPTET_TASK_QUEUE": case.order}
        root = self.septet.root / "machines" / case.order
        septet = Septet(root, {**self.septet.extra, **own, **case.settings}, shares=self.septet)
        _give_name(septet)
        with septet.serving("worker"):
            yield septet

    def _run_order(self, septet: Septet, came: Came, repository: str, house: ForgeFake | None) -> None:
        case, names = came.case, self._names(came.case, repository)
        about = ("--issue", str(case.forge.issue)) if case.forge else ("--title", case.title, "--body", case.body)
        argv = ["run", "--repo", repository, *about, "--id", case.order, "--agent", case.agent, *case.args]
        _take(came, septet, [*argv, *([] if case.ends else ["--wait"]), "--json"])
        if case.ends:
            _wait_for_words(septet, case)
            came.out = septet("show", case.order, "--json").out
        for each in case.next:
            _run(fill(each.shell, names), came.origin, came.env)
            if house is not None:
                _change_pulls(house, each)
            if each.septet:
                _take(came, septet, [fill(part, names) for part in each.septet])

    def _look(self, septet: Septet, came: Came, folder: Path, house: ForgeFake | None) -> None:
        with suppress(ValueError):
            came.answer = json.loads(came.out)
        order = came.case.order
        shown = septet("show", order, "--json")
        told = json.loads(shown.out) if shown.out else {}
        came.task = told.get("task") or {}
        came.status = came.task.get("status", "refused")
        came.shown = septet("show", order).out
        if came.case.expect.waits is not None:
            came.waits = self._next_try(order)
        log = folder / "calls.jsonl"
        came.calls = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        if house is None:
            listed = septet("pr", "list", "--repo", came.origin, "--all", "--json").out
            came.pulls = json.loads(listed).get("pull_requests", []) if listed else []
        else:
            came.pulls = [vars(pull) for pull in house.pulls.values() if pull.title != _OTHERS]
            came.labels = [label for issue in house.issues.values() for label in issue.labels]
            came.asked = [f"{asked.method} {asked.path}" for asked in house.asked]
        if came.case.expect.kept:
            came.rescues = list(_restored(septet, order, folder / "rescues"))
        if came.task and came.status not in _CLOSED:
            septet("cancel", order, "--json")

    def _next_try(self, order: str) -> float | None:
        described = self.septet.temporal("workflow", "describe", "--workflow-id", order, "--output", "json").out
        times = [
            each.get("nextAttemptScheduleTime") for each in json.loads(described).get("pendingActivities", [])
        ]
        due = [datetime.fromisoformat(when) - datetime.now(UTC) for when in times if when]
        return max(due).total_seconds() if due else None


@contextmanager
def world_at(root: Path, before: Any = None) -> Iterator[World]:
    with ExitStack() as stack:
        streets = {fake.name: stack.enter_context(serving_forge(_street(fake, root))) for fake in _FAKES}
        septet = Septet(root, _environment(root, streets))
        _give_name(septet)
        if before is not None:
            before(septet)
        running = stack.enter_context(septet.up())
        yield World(septet, streets, running.address)


def _street(fake: type[ForgeFake], root: Path) -> Street:
    repositories = root / "forges" / fake.name
    (repositories / "o").mkdir(parents=True)
    street = Street(repositories=repositories, spare=fake(repositories=repositories))
    street.name = fake.name
    return street


def _environment(root: Path, streets: Mapping[str, Street]) -> dict[str, str]:
    """Return the environment of worker and commands: no sandbox, the CLIs' stand-ins, and the forges."""
    env = {**_KEYS, "SEPTET_SANDBOX": "none", "SEPTET_SANDBOXED": "true", "SEPTET_LOOK_SECONDS": "600"}
    stand_in = Path(__file__).with_name("stand_in.py").read_text(encoding="utf-8")
    for name in CLIS:
        program = write_program(root / "bin" / name, f"#!{sys.executable} -IS\n{stand_in}")
        env[f"SEPTET_{name.upper()}_PATH"] = str(program)
    for name, street in streets.items():
        env[f"SEPTET_{name.upper()}_HOSTS"] = street.url.removeprefix("http://")
        env[f"SEPTET_{name.upper()}_API_URL"] = street.url + street.spare.api_path
        env[f"SEPTET_{name.upper()}_TOKEN"] = street.token
    return env


def _give_name(septet: Septet) -> None:
    home = Path(septet.env["HOME"])
    (home / ".gitconfig").write_text("[user]\nname = Ada\nemail = ada@example.org\n", encoding="utf-8")


def _plan(case: Case, origin: Origin) -> dict[str, Any]:
    turns = {
        step: [_said(turn) for turn in turns] if isinstance(turns, list) else _said(turns)
        for step, turns in case.turns.items()
    }
    plan = {case.plan: "# Bug: add() subtracts\n\n1. Add.\n"}
    return {
        "folder": str(case.folder),
        "origin": str(origin.bare),
        "turns": turns,
        "every": _said(case.every),
        "answers": _answers(case),
        "files": {"build_plan": plan, "implement_plan": WORK},
    }


def _answers(case: Case) -> dict[str, str]:
    done = {"success": True, "summary": "add adds", "key_changes_made": ["add adds"], "key_learnings": []}
    answers: dict[str, dict[str, Any]] = {
        "classify_issue": {"issue_class": "/bug"},
        "build_plan": {"plan_path": case.plan},
        "find_plan_file": {"plan_path": case.plan},
        "generate_branch": {"branch_name": case.branch},
        "create_commit": {"commit_message": "implementor: bug: add adds"},
    }
    if case.plain:
        texts = {step: str(*answer.values()) for step, answer in answers.items()}
    else:
        answers["build_plan"]["summary"] = "add() is to add"
        texts = {step: json.dumps(answer) for step, answer in answers.items()}
    pull = {"title": "add adds", "body": f"It adds.\n\nWork order: {case.order}"}
    return {**texts, "implement_plan": json.dumps(done), "create_pull_request": json.dumps(pull)}


def _said(turn: Act) -> dict[str, Any]:
    told: dict[str, Any] = turn.model_dump(exclude_unset=True)
    return told


def _fault(answer: Answer, names: Mapping[str, str]) -> Fault:
    body = answer.text.encode() if answer.text is not None else answer.body
    if isinstance(body, (dict, list)):
        body = json.loads(fill(json.dumps(body), names))
    headers = {name: fill(value, names) for name, value in answer.headers.items()}
    return Fault(
        status=answer.status, headers=headers, body=body, method=answer.method, path=answer.path,
        about=fill(answer.about, names), after=answer.after, times=answer.times, every=answer.every,
    )  # fmt: skip


def _change_pulls(house: ForgeFake, told: Next) -> None:
    """Let people retarget and open pull requests as the case requires."""
    for pull in house.pulls.values():
        pull.base = told.retarget or pull.base
    for number in range(told.others):
        _open_pull(house, f"somebody-{number}")


def _open_pull(house: ForgeFake, branch: str) -> None:
    assert house.repositories is not None
    bare = house.repositories / f"{house.project}.git"
    commit = git(bare, "commit-tree", "-p", "main", "-m", branch, "main^{tree}")
    git(bare, "update-ref", f"refs/heads/{branch}", commit)
    assert not isinstance(house.open_pull(house.project, branch, "main", _OTHERS, ""), str)


def _run(commands: str, folder: Path, env: Mapping[str, str]) -> None:
    if commands:
        argv = ["bash", "-euc", commands]
        ended = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, f"{commands}\n{ended.stdout}{ended.stderr}"


def _write(files: Mapping[str, str], folder: Path) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _take(came: Came, septet: Septet, args: list[str]) -> None:
    argv = [str(PROGRAMS / "septet"), *args]
    with TemporaryDirectory(prefix="septet-") as output:
        try:
            came.out = run_septet(argv, septet.env, Path(output), Path(output), came.case.seconds)[1]
        except AssertionError:
            came.out = ""


def _wait_for_words(septet: Septet, case: Case) -> None:
    """Wait until `septet show` prints the case's words, or the work order has ended."""
    deadline = time.monotonic() + case.seconds
    while time.monotonic() < deadline:
        shown: Ended = septet("show", case.order)
        if (
            case.ends in shown.out
            or json.loads(septet("show", case.order, "--json").out)["task"]["status"] in _CLOSED
        ):
            return
        time.sleep(_LOOK_EVERY_SECONDS)


def _restored(septet: Septet, order: str, folder: Path) -> Iterator[Path]:
    for number, rescue in enumerate(septet("rescue", "list", order, "--json").json["rescues"]):
        place = folder / str(number)
        if septet("rescue", "restore", rescue["snapshot"], "--to", place, "--json").code == 0:
            yield place
