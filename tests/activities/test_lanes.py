"""Lanes on a real host: one workspace for many work orders, and each work order finds it as if new."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from fakes.repositories import Origin, git
from fakes.step_lab import PLAN, StepLab, halted, settings_of
from pydantic import SecretStr
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.host.remote_checkpoints import expect_hold, keep
from activities.workspaces.pipelines import LaneActivities
from septet.agents.runs.folders import Runs
from septet.agents.turns.end_of_turn import end_all
from septet.contracts.lanes import EnterLane, Lane
from septet.contracts.names import IssueClass, Step, Verdict
from septet.contracts.steps import EndCall, Progress, StepCall, StepResult
from septet.contracts.workspace import MoveWorkspace, OpenWorkspace, Workspace
from septet.errors import NotFoundError
from septet.git.commits.push import is_own_push, note_push, pushed_branches
from septet.git.vault.vault import list_snapshots, vault_at
from workers.registry import Parts, parts_of

PLANNER = Lane(id="pl-planner", pipeline="pl", opened_by="pl-run")
EXECUTOR = Lane(id="pl-executor-1", pipeline="pl", opened_by="pl-run")
SLEEPER = """
if not resumed:
    init()
    turn('m1')
    open('began', 'w').close()
    time.sleep(300)
"""


@dataclass
class Floor:
    """One host, and the work orders that enter its lanes."""

    root: Path
    origin: Origin
    parts: Parts
    visits: int = 0
    handed_out: int = field(default=0)

    async def enter(
        self, order_id: str, lane: Lane, plan: tuple[str, str] | None = None, **opening: Any
    ) -> Workspace:
        self.visits += 1
        request = EnterLane(
            opening=OpenWorkspace(
                work_order_id=order_id,
                repository=str(self.origin.bare),
                title="Totals are wrong",
                description="Add them up.",
                first_run_id=f"run-of-{order_id}",
                **opening,
            ),
            lane=lane,
            visit=f"/{self.visits}",
            plan_snapshot=plan[0] if plan else "",
            plan_path=plan[1] if plan else None,
        )
        entered: Workspace = await self.run(order_id, self.named("enter_lane"), request)
        return entered

    async def plan(self, *others: str) -> tuple[tuple[str, str], Workspace]:
        """Let the planner of `pl-a` write its plan and these files, and return the plan and the planner's lane."""
        entered = await self.enter("pl-a", PLANNER)
        (Path(entered.path) / PLAN).parent.mkdir(parents=True)
        for name in (PLAN, *others):
            (Path(entered.path) / name).write_text("# Plan\n", encoding="utf-8")
        return (self.keep(PLANNER.id), PLAN), entered

    def named(self, name: str) -> Any:
        return self.parts.own.get(name) or self.parts.shared[name]

    async def run(
        self,
        order_id: str,
        work: Any,
        given: Any,
        within: ActivityEnvironment | None = None,
        queue: str = "septet",
    ) -> Any:
        environment = within or ActivityEnvironment()
        self.handed_out += 1
        environment.info = replace(
            ActivityEnvironment.default_info(),
            workflow_id=order_id,
            workflow_run_id=f"run-of-{order_id}",
            activity_id=f"a-{self.handed_out}",
            task_queue=queue,
            attempt=1,
            started_time=datetime.fromtimestamp(self.handed_out, UTC),
        )
        return await asyncio.wait_for(environment.run(work, given), 60)

    async def step(self, step: Step, workspace: Workspace, **call: Any) -> StepResult:
        request = StepCall(step=step, workspace=workspace, starts_from=workspace.checkpoint, pipeline="pl", **call)
        result: StepResult = await self.run(workspace.work_order_id, self.named(step.value), request)
        return result

    def snapshots(self, lane: str, *kinds: str) -> list[str]:
        snapshots = list_snapshots(vault_at(self.parts.host.place(lane)), lane)
        return [each.name for each in snapshots if not kinds or each.kind in kinds]

    def keep(self, lane: str) -> str:
        place = self.parts.host.place(lane)
        taken = self.parts.host.snapshots.take(place, "checkpoint", "a step is done")
        assert taken is not None
        assert keep(self.parts.host, place) == ()
        return taken.name


@pytest_asyncio.fixture
async def floor(tmp_path: Path, origin: Origin) -> AsyncIterator[Floor]:
    async with parts_of(settings_of(tmp_path)) as parts:
        yield Floor(tmp_path, origin, parts)
        runs = Runs(parts.host.state.runs)
        for name in runs.orders():
            await end_all(runs, name, "cancelled")


async def test_a_lane_that_any_host_may_open_is_passed_on_by_a_full_one(floor: Floor) -> None:
    """A full host refuses a new lane without opening it, and lets work orders enter a lane that it has open."""
    full = LaneActivities(replace(floor.parts.host, max_agents=0))

    def entering(lane: Lane) -> EnterLane:
        opening = OpenWorkspace(work_order_id="wo-a", repository=str(floor.origin.bare), title="Totals are wrong")
        return EnterLane(opening=opening, lane=lane, visit="/1")

    with pytest.raises(ApplicationError) as passed:
        await floor.run("wo-a", full.enter_lane, entering(PLANNER))
    assert (passed.value.type, passed.value.non_retryable) == ("HostFull", False)
    with pytest.raises(NotFoundError):
        full.host.place(PLANNER.id)
    opened = await floor.enter("wo-b", PLANNER)
    here = ActivityEnvironment()
    assert (
        await floor.run("wo-a", full.enter_lane, entering(PLANNER.at(opened)), here, full.host.task_queue)
    ).lane


async def test_a_lane_is_set_up_once_for_all_its_work_orders(floor: Floor) -> None:
    """Files of set-up stay for the next work order without a second run; an agent's changes to them do not."""
    script = "mkdir -p node_modules build; echo code > node_modules/a.js; echo made > build/made.txt; echo ran >> ran.log\n"
    settings = 'setup = ["sh install.sh"]\n'
    ignored = "*.log\nnode_modules\n"
    floor.origin.push({".septet/septet.toml": settings, "install.sh": script, ".gitignore": ignored})
    here = Path((await floor.enter("pl-a", EXECUTOR)).path)
    (here / "node_modules" / "a.js").write_text("spoilt\n", encoding="utf-8")
    (here / "src/app.py").write_text("fixed\n", encoding="utf-8")
    last = floor.keep(EXECUTOR.id)
    await floor.enter("pl-b", EXECUTOR)
    assert (here / "node_modules" / "a.js").read_text(encoding="utf-8") == "code\n"
    assert (here / "ran.log").read_text(encoding="utf-8") == "ran\n"
    assert git(here, "status", "--porcelain") == ""
    stacked = EXECUTOR.model_copy(update={"starts_from": last})
    await floor.enter("pl-c", stacked)
    assert (here / "src/app.py").read_text(encoding="utf-8") == "fixed\n"
    assert (here / "ran.log").read_text(encoding="utf-8") == "ran\n"
    assert git(here, "status", "--porcelain") == "M src/app.py"


@pytest.mark.parametrize("stacked", [True, False])
async def test_git_carries_nothing_of_one_issues_agent_to_the_next_one(floor: Floor, *, stacked: bool) -> None:
    """Hooks, settings, messages and files do not reach the next agent; commits do if the next builds on them."""
    here = Path((await floor.enter("pl-a", EXECUTOR)).path)
    git(here, "checkout", "-q", "-b", "feat-a")
    (here / "src/app.py").write_text("fixed\n", encoding="utf-8")
    git(here, "commit", "-qam", "left-by-a")
    git(here, "config", "core.editor", "left-by-a")
    git(here, "config", "alias.st", "!left-by-a")
    for name in ("hooks/post-checkout", "info/exclude", "notes-for-the-next-one", "COMMIT_EDITMSG"):
        (here / ".git" / name).parent.mkdir(exist_ok=True)
        (here / ".git" / name).write_text("#!/bin/sh\n# left-by-a\n", encoding="utf-8")
    (here / "notes.log").write_text("ignored\n", encoding="utf-8")
    last = floor.keep(EXECUTOR.id)
    lane = EXECUTOR.model_copy(update={"starts_from": last}) if stacked else EXECUTOR
    entered = await floor.enter("pl-b", lane)
    assert (entered.path, entered.work_order_id, entered.place_id) == (str(here), "pl-b", EXECUTOR.id)
    assert (git(here, "status", "--porcelain", "--ignored") == "") is not stacked
    assert git(here, "branch", "--format=%(refname:short)").split() == (
        ["feat-a", "main"] if stacked else ["main"]
    )

    def marks() -> set[str]:
        files = (path for path in (here / ".git").rglob("*") if path.is_file() and "objects" not in path.parts)
        return {str(path) for path in files if b"left-by-a" in path.read_bytes()}

    assert marks() == set()
    assert (here / "src/app.py").read_text(encoding="utf-8").startswith("fixed") == stacked
    assert git(here, "rev-parse", "--abbrev-ref", "HEAD") == ("feat-a" if stacked else "main")
    floor.parts.host.snapshots.return_to(
        floor.parts.host.place(EXECUTOR.id), entered.checkpoint, "its step begins again", "x"
    )
    assert marks() == set()


async def test_a_rescue_is_told_of_the_work_order_alone_that_it_was_taken_of(floor: Floor) -> None:
    """Steps report rescues of their own work order, and no rescue from before its entry."""
    here = Path((await floor.enter("pl-a", PLANNER)).path)
    (here / "draft.md").write_text("half a plan\n", encoding="utf-8")
    place = floor.parts.host.place(PLANNER.id)
    assert floor.parts.host.snapshots.rescue(place, "the agent failed", "build_plan") is not None
    (here / "draft.md").write_text("more of it\n", encoding="utf-8")
    entered = await floor.enter("pl-b", PLANNER)
    assert len(floor.snapshots(PLANNER.id, "rescue")) == 2
    assert (await floor.step(Step.CLASSIFY_ISSUE, entered)).rescues == ()
    (here / "notes.md").write_text("its own\n", encoding="utf-8")
    assert floor.parts.host.snapshots.rescue(place, "its own", "classify_issue") is not None
    (own,) = (await floor.step(Step.CLASSIFY_ISSUE, entered)).rescues
    assert own.reason == "its own"


async def test_only_the_plan_goes_from_the_planner_to_the_executor(floor: Floor) -> None:
    """The executor's lane has the plan of the planner's checkpoint, and no other file of the planner."""
    planned, _ = await floor.plan("scratch.py")
    await floor.enter("pl-b", PLANNER)  # the planner works on the next issue
    entered = await floor.enter("pl-a", EXECUTOR, planned)
    here = Path(entered.path)
    assert (here / PLAN).read_text(encoding="utf-8") == "# Plan\n"
    assert git(here, "status", "--porcelain", "-uall").split() == ["??", PLAN]
    assert not floor.parts.host.snapshots.differs(floor.parts.host.place(EXECUTOR.id), entered.checkpoint)


@pytest.mark.parametrize("link", [False, True])
async def test_a_plan_that_is_no_plain_file_is_not_passed_on(floor: Floor, link: bool) -> None:
    """A plan that is missing or a link fails the entry."""
    planning = Path((await floor.enter("pl-a", PLANNER)).path)
    (planning / PLAN).parent.mkdir(parents=True)
    if link:
        (planning / PLAN).symlink_to("/etc/passwd")
    planned = floor.keep(PLANNER.id), PLAN
    with pytest.raises(ApplicationError, match="has no plain file"):
        await floor.enter("pl-a", EXECUTOR, planned)


async def test_a_lane_on_one_branch_goes_on_where_the_last_work_order_ended(floor: Floor) -> None:
    """The next work order finds branch and commit of the last, and only later changes count as its work."""
    here = Path((await floor.enter("pl-a", EXECUTOR)).path)
    git(here, "checkout", "-q", "-b", "all")
    (here / "a.py").write_text("a\n", encoding="utf-8")
    git(here, "add", "-A")
    git(here, "commit", "-qm", "a")
    goes_on = EXECUTOR.model_copy(
        update={"one_branch": True, "branch": "all", "starts_from": floor.keep(EXECUTOR.id)}
    )
    (here / "failed.py").write_text("b\n", encoding="utf-8")  # the remains of a work order that failed
    entered = await floor.enter("pl-c", goes_on)
    assert git(here, "symbolic-ref", "--short", "HEAD") == "all"
    assert entered.began_at == git(here, "rev-parse", "HEAD")
    assert not (here / "failed.py").exists()
    assert (here / "a.py").exists()


async def test_an_agent_that_works_in_a_lane_all_the_same_is_ended_before_it_is_passed_on(floor: Floor) -> None:
    """The agent of a terminated work order is stopped and its work rescued before the next work order enters."""
    async with _sleeping(floor) as workspace:
        here = Path(workspace.path)
        await floor.enter("pl-b", EXECUTOR)
        assert Runs(floor.parts.host.state.runs).living(EXECUTOR.id) is None
        assert not (here / "began").exists()
        assert len(floor.snapshots(EXECUTOR.id, "rescue")) == 1


async def test_the_end_of_a_work_order_that_left_a_lane_does_not_end_the_next_ones_agent(floor: Floor) -> None:
    """A late `end_work` of an earlier work order leaves the next work order's agent alive."""
    before = await floor.enter("pl-z", EXECUTOR)
    async with _sleeping(floor):
        late = EndCall(step=Step.IMPLEMENT_PLAN, workspace=before, progress=_PLANNED)
        with pytest.raises(ApplicationError):
            await floor.run("pl-z", floor.named("end_work"), late)
        assert Runs(floor.parts.host.state.runs).living(EXECUTOR.id) is not None


async def test_a_work_order_can_leave_its_pipeline_with_what_it_has(floor: Floor) -> None:
    """The work order's own workspace has the lane's checkpoint, base commit, branch and pushes."""
    here = Path((await floor.enter("pl-a", EXECUTOR)).path)
    git(here, "checkout", "-q", "-b", "feat-a")
    (here / "half.py").write_text("half\n", encoding="utf-8")
    snapshot = floor.keep(EXECUTOR.id)
    in_lane = replace(floor.parts.host.place(EXECUTOR.id), visitor="pl-a")
    note_push(in_lane, "feat-a", "a" * 40)
    note_push(replace(in_lane, visitor="pl-z"), "feat-z", "c" * 40)
    await floor.enter("pl-b", EXECUTOR)
    floor.origin.push({"later.py": "somebody else\n"})
    request = OpenWorkspace(
        work_order_id="pl-a",
        repository=str(floor.origin.bare),
        title="Totals",
        first_run_id="run-of-pl-a",
        restores=snapshot,
    )
    for _ in range(2):  # the second attempt finds the workspace open
        alone: Workspace = await floor.run("pl-a", floor.named("open_workspace"), request)
        own = Path(alone.path)
        assert (alone.place_id, own.name) == ("pl-a", "pl-a")
        assert (own / "half.py").read_text(encoding="utf-8") == "half\n"
        assert not (own / "later.py").exists()
        assert git(own, "symbolic-ref", "--short", "HEAD") == "feat-a"
        assert not floor.parts.host.snapshots.differs(floor.parts.host.place("pl-a"), alone.checkpoint)
        assert is_own_push(floor.parts.host.place("pl-a"), "feat-a", "a" * 40)
        assert pushed_branches(floor.parts.host.place("pl-a")) == ("feat-a",)


async def test_a_lane_of_a_host_that_is_gone_is_entered_on_another_one(origin: Origin, tmp_path: Path) -> None:
    """Another host opens the lane from the checkpoint remote, with the plan and the work below."""
    async with _host(origin, tmp_path, "one") as one, _host(origin, tmp_path, "two") as two:
        planned, _ = await one.plan()
        entered = await one.enter("pl-a", EXECUTOR, planned)
        (Path(entered.path) / "below.py").write_text("below\n", encoding="utf-8")
        begun = EXECUTOR.model_copy(update={"id": "pl-executor-2", "starts_from": one.keep(EXECUTOR.id)})
        there = Path((await two.enter("pl-b", begun, planned)).path)
        assert [(there / name).exists() for name in (PLAN, "below.py")] == [True, True]
        moved: Workspace = await two.run(
            "pl-c", two.named("move_workspace"), MoveWorkspace(workspace=entered, checkpoint="")
        )
        assert (moved.host, Path(moved.path).joinpath("below.py").exists()) == (two.parts.host.id, True)
        here = Path((await two.enter("pl-c", EXECUTOR.at(moved), planned)).path)
        assert [(here / name).exists() for name in (PLAN, "below.py")] == [True, False]


async def test_a_lane_moves_before_its_first_step_is_done(origin: Origin, tmp_path: Path) -> None:
    """The entry itself keeps plan and session at the remote, so the lane can move before its first step."""
    key = {"checkpoint_key": SecretStr("a passphrase that both hosts have")}
    async with _host(origin, tmp_path, "one", **key) as one, _host(origin, tmp_path, "two", **key) as two:
        planned, _ = await one.plan()
        known = await one.step(Step.CLASSIFY_ISSUE, await one.enter("pl-a", EXECUTOR))
        lane = EXECUTOR.model_copy(update={"session_id": known.session_id})
        entered = await one.enter("pl-b", lane, planned)
        request = MoveWorkspace(workspace=entered, checkpoint=entered.checkpoint)
        moved: Workspace = await two.run("pl-b", two.named("move_workspace"), request)
        assert (Path(moved.path) / PLAN).read_text(encoding="utf-8") == "# Plan\n"
        again = await two.step(Step.CLASSIFY_ISSUE, moved, session_id=known.session_id)
        assert (again.verdict, again.session_id, again.agent_starts) == (Verdict.DONE, known.session_id, 1)


async def test_a_lane_that_its_host_had_just_opened_is_the_other_hosts(origin: Origin, tmp_path: Path) -> None:
    """If a host died after it opened a lane, the host that opens the lane instead may keep snapshots and push."""
    async with _host(origin, tmp_path, "one") as one, _host(origin, tmp_path, "two") as two:
        planned, planner = await one.plan()
        await one.enter("pl-a", EXECUTOR, planned)  # this host dies before it reports the opening
        anywhere = EXECUTOR.at(planner.model_copy(update={"host": "that opens it", "task_queue": ""}))
        entered = await two.enter("pl-a", anywhere, planned)
        (Path(entered.path) / "more.py").write_text("more\n", encoding="utf-8")
        two.keep(EXECUTOR.id)
        expect_hold(two.parts.host, two.parts.host.place(EXECUTOR.id))


@asynccontextmanager
async def _host(origin: Origin, root: Path, name: str, **settings: Any) -> AsyncIterator[Floor]:
    (root / name).mkdir()
    remote = {"checkpoint_remote": str(root / "checkpoints")}
    async with parts_of(settings_of(root / name).model_copy(update=remote | settings)) as parts:
        yield Floor(root / name, origin, parts)
        for lane in (PLANNER.id, EXECUTOR.id):
            await end_all(parts.host.runs, lane, "cancelled")


_PLANNED = Progress(issue_class=IssueClass.BUG, planner_answer=PLAN, plan_path=PLAN, branch_name="feat-a")


@asynccontextmanager
async def _sleeping(floor: Floor) -> AsyncIterator[Workspace]:
    """Yield the executor's lane while its agent works and its worker is stopped."""
    StepLab(floor.root, floor.origin, floor.parts).agent(SLEEPER)
    workspace = await floor.enter("pl-a", EXECUTOR)
    call = StepCall(
        step=Step.IMPLEMENT_PLAN, workspace=workspace, progress=_PLANNED, starts_from=workspace.checkpoint
    )
    work = partial(floor.run, "pl-a", floor.named("implement_plan"), call)
    await halted(work, (Path(workspace.path) / "began").exists, "worker_shutdown")
    yield workspace
