"""Files that a pass of the janitor removes, and files that a pass never touches."""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import psutil
import pytest
from fakes.agent_lab import Lab, agent_of
from fakes.logins import HOUR, log_in, login
from fakes.pictures import picture, restored_picture
from fakes.repositories import Origin, git_env, make_origin
from fakes.snapshots import LIMIT_BYTES, begin, snapshot_of

from septet.agents.clis.adapter import Machine, Turn
from septet.agents.clis.registry import adapter_for
from septet.agents.runs.folders import Runs
from septet.agents.runs.homes import Homes
from septet.agents.runs.logins import Logins
from septet.agents.sandbox.connections import RUNNER_LOCK, listen
from septet.agents.sandbox.supervisors import Supervisors
from septet.agents.turns.request import AgentRuntime
from septet.agents.turns.warm import WarmProcess
from septet.git.engine.address import parse_address
from septet.git.engine.place import Place
from septet.git.snapshots.restore import restore
from septet.git.vault.vault import find, list_snapshots, publish, vault_at, verify
from septet.git.workspace.workspace import OrderStart, open_workspace
from septet.janitor.sweep import Sweep
from septet.janitor.terms import Owner, SweepReport, Terms
from septet.state import StateDir

pytestmark = pytest.mark.law

TERMS = Terms(
    workspaces_days=14, runs_days=30, snapshots_days=90, mirrors_days=14, ignored_limit_bytes=LIMIT_BYTES
)


@dataclass
class Home:
    """A host whose work orders have ends that a test sets."""

    state: StateDir
    origin: Origin
    env: dict[str, str]
    runner: Path | None = None
    """The lock of the host's runner; `None` for a host without a runner."""
    owners: dict[str, Owner] = field(default_factory=dict)

    def open(self, order_id: str) -> Place:
        """Open a workspace with a file of an agent and the files of a run."""
        address = parse_address(str(self.origin.bare))
        place = open_workspace(self.state, address, OrderStart(order_id, "run"), env=self.env)
        begin(place)
        (place.worktree / "work.txt").write_text(f"work of {order_id}\n")
        run = self.state.runs / order_id / "5-implement_plan-1"
        run.mkdir(parents=True)
        (run / "stdout.jsonl").write_text("{}\n")
        self.owners[order_id] = Owner("closed", datetime.now(UTC))
        return place

    def sweep(self, days: float, terms: Terms = TERMS, go_on: Callable[[], bool] = lambda: True) -> SweepReport:
        """Make a pass at a time that many days from now."""
        now = datetime.now(UTC) + timedelta(days=days)
        runs = Runs(self.state.runs, self.runner)
        return Sweep(self.state, runs, terms, self.env, self._ask, now, go_on).run()

    def _ask(self, order_id: str) -> Owner:
        return self.owners.get(order_id, Owner("unknown"))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    state = StateDir(tmp_path / "state")
    state.prepare()
    origin = make_origin(tmp_path / "origins")
    origin.push({"README.md": "# Sample\n", ".gitignore": "dist/\n"})
    return Home(state, origin, git_env(tmp_path / "home"))


def names(swept: SweepReport) -> list[tuple[str, str]]:
    return [(thing.kind, thing.name) for thing in swept.removed]


def test_a_workspace_goes_when_its_time_is_over_and_its_last_state_is_kept(home: Home, tmp_path: Path) -> None:
    """Fourteen days after the end a worktree is removed, and a verified snapshot has every byte of it."""
    place = home.open("wo-1")
    before = picture(place.worktree)
    assert names(home.sweep(13.9)) == []
    assert place.worktree.exists()

    swept = home.sweep(14.1)

    assert names(swept) == [("workspace", "wo-1")]
    assert not place.worktree.exists()
    (thing,) = swept.removed
    assert thing.snapshot is not None
    snapshot = find(vault_at(place), thing.snapshot)
    verify(vault_at(place), snapshot)
    assert thing.size_bytes == snapshot.size_bytes > 0
    restore(vault_at(place), snapshot, tmp_path / "back")
    assert restored_picture(tmp_path / "back", before) == before
    assert (home.state.runs / "wo-1").exists()
    assert names(home.sweep(14.2)) == []


def test_nothing_of_a_work_order_is_left_when_all_its_times_are_over(home: Home) -> None:
    """The locks of a closed work order and a failed opening are removed; a running work order keeps its lock."""
    for order_id in ("wo-1", "wo-2"):
        home.open(order_id)
    home.owners["wo-2"] = Owner("running")
    (home.state.workspaces / "wo-refused~lock").touch()
    home.sweep(15)
    assert (home.state.workspaces / "wo-1~lock").exists()
    home.sweep(91)
    home.sweep(91)
    assert sorted(path.name for path in home.state.workspaces.iterdir()) == ["wo-2", "wo-2~lock"]


def test_a_home_goes_with_its_workspace_and_no_login_with_it(home: Home, tmp_path: Path) -> None:
    """A work order's home is removed after its refreshed login went to the user's login; another home stays."""
    users = log_in(tmp_path / "user", "claude", login("claude", 1))
    homes = Homes(home.state.homes, Logins(home.state.logins))
    machine = Machine({"HOME": str(tmp_path / "user")})
    for order_id in ("wo-1", "wo-2"):
        home.open(order_id)
        homes.of(order_id, adapter_for("claude"), machine).prepare(None, HOUR)
    home.owners["wo-2"] = Owner("running")
    copy = home.state.homes / "wo-1/claude/.claude/.credentials.json"
    copy.write_text(json.dumps(login("claude", 2, 9 * HOUR)))
    (copy.parent / "projects").symlink_to(tmp_path / "origins")
    assert names(home.sweep(13.9)) == []
    assert names(home.sweep(14.1)) == [("workspace", "wo-1")]
    assert [path.name for path in home.state.homes.iterdir()] == ["wo-2"]
    assert "refresh-ann-2" in users.read_text()
    assert (tmp_path / "origins").is_dir()


def test_a_home_that_a_pass_has_left_goes_with_the_runs(home: Home) -> None:
    """A home without a workspace is removed with the runs of its work order."""
    (home.state.homes / "wo-9/claude").mkdir(parents=True)
    (home.state.runs / "wo-9").mkdir()
    assert names(home.sweep(31)) == [("runs", "wo-9")]
    assert not (home.state.homes / "wo-9").exists()


def test_everything_goes_in_its_turn(home: Home) -> None:
    """Worktree, runs and snapshots are removed in turn, and the last snapshot's mirror and vault with it."""
    place = home.open("wo-1")
    assert names(home.sweep(14.1)) == [("workspace", "wo-1")]
    assert ("runs", "wo-1") in names(home.sweep(30.1))
    every = [one.name for one in list_snapshots(vault_at(place))]
    assert names(home.sweep(89.9)) == []
    swept = home.sweep(91)
    assert names(swept) == [*(("snapshot", name) for name in every), ("mirror", place.mirror.name)]
    assert swept.refused == ()
    assert not place.mirror.exists()
    assert not place.vault.exists()
    assert list(home.state.trash.iterdir()) == []
    assert list(home.state.runs.iterdir()) == []
    assert home.open("wo-1").worktree.exists()


def test_runs_that_are_kept_for_longer_than_snapshots_go_in_their_turn_too(home: Home) -> None:
    """Runs that are kept for longer than snapshots are removed after their own time."""
    terms = replace(TERMS, runs_days=100)
    home.open("wo-1")
    home.sweep(14.1, terms)
    assert {kind for kind, _ in names(home.sweep(91, terms))} == {"snapshot", "mirror"}
    assert (home.state.runs / "wo-1" / "5-implement_plan-1").exists()
    assert names(home.sweep(99, terms)) == []
    home.owners["wo-1"] = Owner("running")
    assert names(home.sweep(101, terms)) == []
    home.owners["wo-1"] = Owner("closed", datetime.now(UTC))
    assert names(home.sweep(101, terms)) == [("runs", "wo-1")]
    assert list(home.state.runs.iterdir()) == []


def test_an_unknown_work_order_goes_by_its_age_here(home: Home) -> None:
    """A work order that its server does not know counts from its last file on this host."""
    place = home.open("wo-1")
    del home.owners["wo-1"]
    assert names(home.sweep(13.9)) == []
    assert names(home.sweep(14.1)) == [("workspace", "wo-1")]
    assert list_snapshots(vault_at(place), "wo-1")[-1].kind == "rescue"


def test_who_writes_is_left_alone(home: Home) -> None:
    """A workspace with a writer keeps its files, and the pass reports the refusal."""
    place = home.open("wo-1")
    lock = Runs(home.state.runs).lock_writer("wo-1")
    assert lock is not None
    try:
        swept = home.sweep(31)
    finally:
        os.close(lock)
    assert names(swept) == []
    assert {thing.kind for thing in swept.refused} == {"workspace", "runs"}
    assert "works there" in swept.refused[0].why
    assert (place.worktree / "work.txt").exists()


def test_an_agent_that_waits_in_a_workspace_goes_with_it(home: Home, tmp_path: Path) -> None:
    """A stopped process that waits for a next turn is ended before its workspace and runs are removed."""
    place = home.open("wo-1")
    host = Machine(env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    runs = Runs(home.state.runs)
    lab = Lab(tmp_path, AgentRuntime(runs, Supervisors(), host))
    lab.warm_agent("result('done')")
    turn = Turn("Work.\n", place.worktree, warm=True)
    carried = asyncio.run(lab.run_turn(lab.request(turn=turn)))
    lab.runtime.supervisors.close()
    waits = psutil.Process(agent_of(carried.run))
    assert waits.status() == psutil.STATUS_STOPPED
    swept = home.sweep(days=40)
    assert {(thing.kind, thing.name) for thing in swept.removed} >= {("workspace", "wo-1"), ("runs", "wo-1")}
    assert not waits.is_running() or waits.status() == psutil.STATUS_ZOMBIE


def test_a_runner_ends_what_a_killed_supervisor_left_before_a_workspace_goes(home: Home) -> None:
    """The janitor waits for the runner to end a supervisor's rest, since only the runner sees the processes."""
    home.open("wo-1")
    left = WarmProcess("mark", str(home.state.runs / "wo-1" / "5-implement_plan-1"), None, "")
    (home.state.runs / "wo-1" / "warm.lock").write_bytes(msgspec.json.encode(left))
    home.runner = home.state.runner / RUNNER_LOCK
    with listen(home.state.runner) as listener, ThreadPoolExecutor(1) as threads:
        listener.settimeout(60)
        swept = threads.submit(home.sweep, 31)
        connected, _ = listener.accept()
        assert not swept.done()
        assert (home.state.workspaces / "wo-1").exists()
        connected.close()
        removed = swept.result(60).removed
    assert {(thing.kind, thing.name) for thing in removed} == {("workspace", "wo-1"), ("runs", "wo-1")}


def test_a_snapshot_that_is_not_whole_keeps_its_workspace(home: Home) -> None:
    """A workspace stays if the vault lost objects of its snapshot."""
    place = home.open("wo-1")
    snapshot_of(place, "rescue")
    for pack in (place.vault / "objects/pack").glob("*.pack"):
        pack.unlink()
    swept = home.sweep(15)
    assert names(swept) == []
    assert swept.refused_count == 1
    assert (place.worktree / "work.txt").exists()


def test_links_are_not_followed(home: Home, tmp_path: Path) -> None:
    """A link in a worktree is removed as a link; a link in the place of a folder is refused."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "precious").write_text("theirs")
    place = home.open("wo-1")
    (place.worktree / "out").symlink_to(theirs)
    assert names(home.sweep(15)) == [("workspace", "wo-1")]
    home.open("wo-2").worktree.rename(tmp_path / "moved")
    (home.state.workspaces / "wo-2").symlink_to(theirs)
    runs = home.state.runs / "wo-2"
    runs.rename(tmp_path / "moved-runs")
    runs.symlink_to(theirs)
    swept = home.sweep(31)
    assert {thing.kind for thing in swept.refused if thing.name == "wo-2"} == {"workspace", "runs"}
    assert [path.name for path in theirs.iterdir()] == ["precious"]


def test_what_was_brought_from_another_host_goes_in_its_turn_too(home: Home) -> None:
    """A snapshot from another host stays while its pipeline runs, and is removed later with the mirror."""
    place = home.open("wo-1")
    (first, *_) = list_snapshots(vault_at(place))
    publish(place, "pl.1-executor-2/0001-checkpoint", first.commit)
    home.owners["pl.1-executor-2"] = Owner("running")
    home.sweep(14.1)
    home.sweep(91)
    assert [one.name for one in list_snapshots(vault_at(place))] == ["pl.1-executor-2/0001-checkpoint"]
    home.owners["pl.1-executor-2"] = Owner("closed", datetime.now(UTC) + timedelta(days=10))
    assert names(home.sweep(99)) == []
    assert names(home.sweep(101)) == [
        ("snapshot", "pl.1-executor-2/0001-checkpoint"),
        ("mirror", place.mirror.name),
    ]
    assert not place.vault.exists()


def test_a_draft_that_a_killed_process_left_goes_when_nobody_can_be_writing_it(home: Home) -> None:
    """A draft of a killed process is removed after some days, and the notes in the same folder stay."""
    state = home.state
    places = (
        state.root,
        state.held_turns,
        state.cost_notes,
        state.forge_pauses,
        state.logins / "0123456789abcdef",
    )
    drafts, notes = ([folder / name for folder in places] for name in (".0123456789abcdef.lock", "wo-1.json"))
    for path in (*drafts, *notes):
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}")
    home.sweep(1)
    assert [path.exists() for path in (*drafts, *notes)] == [True] * 2 * len(places)
    home.sweep(3)
    assert [path.exists() for path in drafts] == [False] * len(places)
    assert [path.exists() for path in notes] == [True] * len(places)


def test_a_pack_that_a_killed_process_left_goes_when_nobody_can_be_writing_it(home: Home) -> None:
    """An unfinished pack of a killed process is removed when it is old, even if no snapshot is forgotten."""
    place = home.open("wo-1")
    folders = (place.vault / "objects/pack", place.mirror / "objects/pack")
    for folder in folders:
        for name in ("tmp_pack_old", ".tmp-1-pack-old.pack", "tmp_pack_young"):
            (folder / name).write_bytes(b"PACK")
        for name in ("tmp_pack_old", ".tmp-1-pack-old.pack"):
            os.utime(folder / name, (0, 0))
    home.sweep(1)
    assert [[path.name for path in folder.glob("*tmp*")] for folder in folders] == [["tmp_pack_young"]] * 2


def test_what_is_not_ours_is_not_touched(home: Home) -> None:
    """A folder without a work order's record stays."""
    home.open("wo-1")
    other = home.state.workspaces / "a-person-s"
    other.mkdir()
    (other / "file").write_text("theirs")
    home.sweep(1000)
    assert (other / "file").read_text() == "theirs"


def test_an_interrupted_pass_is_gone_on_with(home: Home) -> None:
    """An interrupted pass reports the interruption, and the next pass removes the rest."""
    home.open("wo-1")
    home.open("wo-2")
    answers = iter([True, False])
    swept = home.sweep(15, go_on=lambda: next(answers))
    assert names(swept) == [("workspace", "wo-1")]
    assert "interrupted" in swept.note
    half = home.state.workspaces / "wo-1~removed"
    half.mkdir()
    (half / "rest").write_text("rest")
    assert names(home.sweep(15)) == [("workspace", "wo-2")]
    assert not half.exists()


@contextmanager
def folders_looked_into() -> Iterator[set[str]]:
    seen: set[str] = set()
    on = [True]

    def hear(event: str, args: tuple[object, ...]) -> None:
        if on and event in {"os.scandir", "os.listdir"}:
            seen.add(str(args[0]))

    sys.addaudithook(hear)
    try:
        yield seen
    finally:
        on.clear()


def test_files_of_worktrees_that_stay_cost_nothing(home: Home) -> None:
    """A pass lists no folder of a worktree or run that stays, so that a million files cost no more than one.

    Of a mirror the pass lists the packs and the folders of loose objects.
    """
    place = home.open("wo-1")
    with folders_looked_into() as seen:
        home.sweep(1)
    inside = (str(place.worktree), str(place.mirror), str(home.state.runs / "wo-1"))
    assert {folder for folder in seen if folder.startswith(inside)} == {
        str(place.objects),
        str(place.objects / "pack"),
    }


def test_a_pass_gives_back_the_room_of_what_it_forgot_earlier(home: Home) -> None:
    """A later pass drops the objects that an earlier pass forgot, even if it forgets no snapshot itself."""
    terms = replace(TERMS, forgotten_days=1e-6)
    place = home.open("wo-1")
    home.open("wo-2")
    home.sweep(15, terms)
    home.owners["wo-2"] = Owner("running")
    folder = place.vault / "objects/pack"
    assert "snapshot" in {kind for kind, _ in names(home.sweep(91))}
    (cruft,) = folder.glob("*.mtimes")
    os.utime(cruft, (0, 0))
    time.sleep(1.1)  # git counts the age of objects in seconds
    assert names(home.sweep(91, terms)) == []
    assert list(folder.glob("*.mtimes")) == []
    assert len(list_snapshots(vault_at(place), "wo-2")) == 2
