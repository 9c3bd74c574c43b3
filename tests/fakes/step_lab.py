"""One work order on a real host: its steps run singly as activities, on real git, with the scripted agent."""

import asyncio
import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from fakes.agent_programs import agent_program
from fakes.guest_paths import guest_paths
from fakes.repositories import Origin, git
from fakes.scripted_program import write_scripted_program
from fakes.waiting import wait_until
from temporalio.activity import ActivityCancellationDetails
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from septet.agents.runs.folders import Run, Runs
from septet.agents.turns.end_of_turn import end_all
from septet.contracts.lanes import SessionSummary, SummariseCall
from septet.contracts.names import IssueClass, Step
from septet.contracts.rework import PreparedRework
from septet.contracts.steps import EndCall, FinalizeCall, Progress, StepCall, StepResult
from septet.contracts.workspace import OpenWorkspace, Workspace
from septet.forges.local.records import REF
from septet.git.engine.place import Place
from septet.git.vault.vault import list_snapshots, vault_at
from septet.settings import Settings
from workers.registry import Parts, parts_of

TITLE = "Totals are wrong"
PLAN = "specs/issue-7-wo-1-planner-totals.md"
BRANCH = "septet/bug-wo-1-totals"
FIXED = "def total(prices):\n    return sum(prices)\n"
Result = TypeVar("Result")
IMPLEMENTED = {"success": True, "summary": "Totals are right.", "key_changes_made": [], "key_learnings": []}


def settings_of(root: Path, **changes: Any) -> Settings:
    """Return a worker's settings below `root` with these changes; the agent's program is `root/agent`."""
    root.mkdir(exist_ok=True)
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(root / "home"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GITHUB_TOKEN": "a-key-that-no-agent-sees",
        "SEPTET_SCRIPTED_PATH": str(root / "agent"),
        "SEPTET_SCRIPTED_HOME": str(root / "memory"),
        "SEPTET_SCRIPTED_SCENARIO": str(root / "scenario.json"),
    }
    (root / "home").mkdir()
    (root / "scenario.json").write_text("{}", encoding="utf-8")
    write_scripted_program(root / "agent")
    settings = Settings(state_dir=root / "state", agent="scripted", environ=environ, guest_paths=guest_paths(root))
    return settings.model_copy(update=changes)


@asynccontextmanager
async def step_lab(
    root: Path, origin: Origin, settings: Settings | None = None, **parts: Any
) -> AsyncIterator["StepLab"]:
    """Yield a host with these settings and parts; at the end stop all agents."""
    async with parts_of(settings or settings_of(root), **parts) as made:
        yield StepLab(root, origin, made)
        for name in made.host.runs.orders():
            await end_all(made.host.runs, name, "cancelled")


async def halted(
    begin: Callable[[ActivityEnvironment], Coroutine[Any, Any, Result]], began: Callable[[], object], why: str
) -> asyncio.Task[Result]:
    """Begin an activity, halt it for this reason as soon as it has begun, and return it when it has ended."""
    within = ActivityEnvironment()
    running = asyncio.create_task(begin(within))
    await wait_until(began)
    within.cancel(ActivityCancellationDetails(**{why: True}))
    await asyncio.wait([running], timeout=60)
    return running


@dataclass
class StepLab:
    root: Path
    origin: Origin
    parts: Parts
    heartbeats: list[tuple[Any, ...]] = field(default_factory=list)
    workspace: Workspace | None = None
    progress: Progress = field(default_factory=Progress)
    run_id: str = "run-1"
    """The workflow's run; another run is a reset."""
    begun: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The number of begun attempts by run and activity; without an entry the next attempt is the first."""
    handed_out: int = 0
    """The number of all attempts, used as the second at which the server hands out the next."""

    def scenario(self, **steps: Any) -> None:
        """Write the scenario of the steps: see `septet.agents.scripted`. Each turn costs a cent."""
        scenario = {"cost_usd": 0.01, "tokens": {"input_tokens": 9, "output_tokens": 1}, "steps": steps}
        (self.root / "scenario.json").write_text(json.dumps(scenario), encoding="utf-8")

    def agent(self, body: str) -> None:
        """Replace the scripted agent by a program: see `agent_program`; `answer(value)` ends it with an answer."""
        (self.root / "agent").unlink()
        agent_program(self.root / "agent", _ANSWER + body)

    async def open(self, within: ActivityEnvironment | None = None, **options: Any) -> Workspace:
        """Open the workspace of an issue that is given as text; `within` can cancel the activity."""
        request: dict[str, Any] = {
            "title": TITLE,
            "description": "In `src/app.py`, `0` should be `sum(prices)`.",
        } | options
        opened: Workspace = await self._activity(
            "open", self.parts.shared["open_workspace"], OpenWorkspace(**self._named | request), within
        )
        self.workspace = opened
        return opened

    async def open_to(self, step: Step, scenario: Any = None, **options: Any) -> None:
        """Open the workspace as the steps before this step leave it; `scenario` is the mistake in the step."""
        await self.open(**options)
        if scenario is not None:
            self.scenario(**({step.value: scenario} if scenario else {}))
        self.progress = Progress(issue_class=IssueClass.BUG)
        if step.number > Step.BUILD_PLAN.number:
            self.write(PLAN, "# Bug: totals\n")
            self.progress = self.progress.model_copy(update={"planner_answer": PLAN, "plan_path": PLAN})
        if step.number > Step.GENERATE_BRANCH.number:
            git(self.worktree, "checkout", "-q", "-b", BRANCH)
            self.progress = self.progress.model_copy(update={"branch_name": BRANCH})
        if step.number > Step.IMPLEMENT_PLAN.number:
            self.write("src/app.py", FIXED)
        if step.number > Step.CREATE_COMMIT.number:
            self.commit()
        else:
            self.parts.host.snapshots.take(self.place, "checkpoint", "what the steps before this one leave")

    def commit(self, *options: str) -> str:
        """Commit all files and take a checkpoint, as a step before does, and return the commit."""
        git(self.worktree, "add", "-A")
        git(self.worktree, "commit", "-q", *options, "-m", "bug: totals")
        sha = git(self.worktree, "rev-parse", "HEAD")
        self.progress = self.progress.model_copy(update={"commit_sha": sha})
        self.parts.host.snapshots.take(self.place, "checkpoint", "what the steps before this one leave")
        return sha

    def call(self, step: Step, **facts: Any) -> StepCall:
        assert self.workspace is not None
        given: dict[str, Any] = {"starts_from": self.snapshots()[-1], "progress": self.progress} | facts
        return StepCall(step=step, workspace=self.workspace, **given)

    async def run(self, step: Step, **facts: Any) -> StepResult:
        return await self.running(self.call(step, **facts))

    def running(
        self, call: StepCall, within: ActivityEnvironment | None = None, *, attempt: int = 0
    ) -> Coroutine[Any, Any, StepResult]:
        kind = call.name if call.reads else call.step.value
        work, name = self.parts.own[kind], kind if call.attempt == 1 else f"{kind}-{call.attempt}"
        name = f"{name}-again" if call.settles else name
        return self._activity(name, work, call, within, attempt)

    async def failing(self, call: StepCall, match: str | None = None, attempt: int = 0) -> ApplicationError:
        with pytest.raises(ApplicationError, match=match) as failed:
            await self.running(call, attempt=attempt)
        return failed.value

    async def refused(self, **options: Any) -> ApplicationError:
        with pytest.raises(ApplicationError) as refused:
            await self.open(**options)
        return refused.value

    async def prepare_rework(self, call: StepCall) -> PreparedRework:
        prepared: PreparedRework = await self._activity("prepare", self.parts.own["prepare_rework"], call)
        return prepared

    async def end_work(
        self, step: Step, known: StepResult | None = None, activity_id: str | None = None
    ) -> StepResult:
        """End the work in the workspace, as for a cancelled work order with this known result."""
        call = EndCall.of(self.call(step), known, activity_id)
        ended: StepResult = await self._activity("99", self.parts.own["end_work"], call)
        return ended

    async def finalize(
        self, call: StepCall, result: StepResult, attempt: int = 1, within: ActivityEnvironment | None = None
    ) -> StepResult:
        assert result.session_id is not None
        finalizing = FinalizeCall(
            call=call, session_id=result.session_id, reasons=result.reasons, attempt=attempt, result=result
        )
        work = self.parts.own["finalize_json"]
        answered: StepResult = await self._activity(f"finalize-{attempt}", work, finalizing, within)
        return answered

    async def summarise(self, call: SummariseCall, within: ActivityEnvironment | None = None) -> SessionSummary:
        work = self.parts.own["summarise_session"]
        summarised: SessionSummary = await self._activity("summarise", work, call, within)
        return summarised

    def write(self, path: str, content: str) -> Path:
        file = self.worktree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
        return file

    @property
    def place(self) -> Place:
        return self.parts.host.place("wo-1")

    @property
    def worktree(self) -> Path:
        return self.parts.host.state.workspaces / "wo-1"

    @property
    def runs(self) -> list[Run]:
        return Runs(self.parts.host.state.runs).of("wo-1")

    @property
    def pull_requests(self) -> list[str]:
        names = git(self.origin.bare, "ls-tree", "--name-only", REF, check=False).split()
        return [git(self.origin.bare, "show", f"{REF}:{name}") for name in names if name.startswith("pull-")]

    @property
    def prompts(self) -> list[str]:
        return [(run.folder / "prompt.md").read_text(encoding="utf-8") for run in self.runs]

    @property
    def attempts(self) -> int:
        file = self.parts.host.state.runs / "wo-1" / "attempts.jsonl"
        *_, last = file.read_bytes().splitlines()
        return int(json.loads(last)["epoch"])

    @property
    def journal(self) -> list[str]:
        path = self.root / "journal"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def snapshots(self, *kinds: str) -> list[str]:
        taken = list_snapshots(vault_at(self.place), "wo-1")
        return [snapshot.name for snapshot in taken if not kinds or snapshot.kind in kinds]

    @property
    def _named(self) -> dict[str, str]:
        return {"work_order_id": "wo-1", "repository": str(self.origin.bare)}

    async def _activity(
        self,
        activity_id: str,
        work: Any,
        given: Any,
        within: ActivityEnvironment | None = None,
        attempt: int = 0,
    ) -> Any:
        environment = within or ActivityEnvironment()
        self.begun[self.run_id, activity_id] += 1
        self.handed_out += 1
        environment.info = replace(
            ActivityEnvironment.default_info(),
            workflow_id="wo-1",
            workflow_run_id=self.run_id,
            activity_id=activity_id,
            activity_type=activity_id,
            attempt=attempt or self.begun[self.run_id, activity_id],
            heartbeat_timeout=timedelta(seconds=1),
            started_time=datetime.fromtimestamp(self.handed_out, UTC),
        )
        environment.on_heartbeat = lambda *details: self.heartbeats.append(details)
        return await asyncio.wait_for(environment.run(work, given), 60)


_ANSWER = """\
import json, subprocess

def answer(value):
    init()
    result(json.dumps(value).replace('\\\\', '\\\\\\\\').replace('"', '\\\\"'))

def git(*args):
    subprocess.run(["git", *args], check=True, stdout=2)

def write(path, content):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w") as file:
        file.write(content)

"""
