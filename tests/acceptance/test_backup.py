"""Work continues from a backup that was taken while agents worked, and no finished step runs twice."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from fakes.repositories import Origin, git
from fakes.septet_command import FIRST_RUNS, ONCE, Septet
from fakes.shared_server import Host

from septet.contracts.names import Step

pytestmark = [pytest.mark.recovery, pytest.mark.timeout(300), pytest.mark.law]

HEARTBEAT_SECONDS = 5


def start(septet: Septet, origin: Origin, order: str, *steps: Step) -> str:
    """Start a work order whose agents wait for a file in each of these steps; return its id."""
    waits = {step.value: {"wait_for": str(gate(septet, order, step))} for step in steps}
    septet.scenario(order, {"steps": waits})
    limits = {"heartbeat_seconds": HEARTBEAT_SECONDS}
    return Host(septet, septet.address, "septet").start(origin, order, title=f"Work of {order}", timeouts=limits)


def gate(septet: Septet, order: str, step: Step) -> Path:
    return septet.root / f"{order}-{step.value}"


def lose(septet: Septet) -> None:
    """Lose the machine at once: server, worker, supervisors, agents and all files."""
    septet.end_all()
    shutil.rmtree(septet.state)


def make_backup(septet: Septet, name: str) -> dict[str, Any]:
    ended = septet("backup", septet.root / name, "--json")
    assert ended.code == 0, ended
    made: dict[str, Any] = ended.json["backup"]
    return made


def pull_requests(origin: Origin) -> int:
    return git(origin.bare, "ls-tree", "--name-only", "refs/septet/forge").count("pull")


def test_work_goes_on_from_a_backup_that_was_taken_while_agents_worked(septet: Septet, origin: Origin) -> None:
    """Of a completed work order and one held in each step, each has one pull request, and a step at most one more agent."""
    with septet.up():
        done = start(septet, origin, "wo-done")
        assert septet.closed(done)["status"] == "completed"
        held = {step: start(septet, origin, f"wo-{step.number}", step) for step in Step}
        for step, order in held.items():
            septet.until_works(order, FIRST_RUNS[step])
        made = make_backup(septet, "backup")
        assert (made["database"], made["changing"], made["left_out"]) == (True, [], [])
        assert set(made["work_orders"]) == {done, *held.values()}
        lose(septet)
    shutil.copytree(septet.root / "backup", septet.state, symlinks=True)
    for step, order in held.items():
        gate(septet, order, step).touch()
    with septet.up():
        tasks = [septet.closed(order) for order in (done, *held.values())]
        rescues = septet("rescue", "list", "--all", "--json").json["rescues"]
    assert [(task["status"], task["error"]) for task in tasks] == [("completed", None)] * len(tasks)
    assert len({task["pr_url"] for task in tasks}) == pull_requests(origin) == len(tasks)
    for step, order in held.items():
        assert septet.runs(order) == sorted([*ONCE, f"{step.number}-{step.value}-2"])
    assert {each["work_order_id"] for each in rescues} == {done, *held.values()}


def test_a_database_that_is_older_than_the_disk_reads_what_agents_have_done_since(
    septet: Septet, origin: Origin
) -> None:
    """The backup copies the database first: answers of steps that end meanwhile are read, and no agent is paid twice."""
    first, second = Step.IMPLEMENT_PLAN, Step.CREATE_PULL_REQUEST
    with septet.up():
        order = start(septet, origin, "wo-1", first, second)
        septet.until_works(order, FIRST_RUNS[first])
        make_backup(septet, "earlier")
        gate(septet, order, first).touch()
        septet.until_works(order, FIRST_RUNS[second])
        make_backup(septet, "later")
        lose(septet)
    shutil.copytree(septet.root / "later", septet.state, symlinks=True)
    shutil.copyfile(septet.root / "earlier" / "temporal.db", septet.state / "temporal.db")
    gate(septet, order, second).touch()
    with septet.up():
        task = septet.closed(order)
    assert (task["status"], task["error"]) == ("completed", None)
    assert pull_requests(origin) == 1
    assert septet.runs(order) == sorted([*ONCE, f"{second.number}-{second.value}-2"])


def test_a_backup_is_taken_where_nothing_runs_any_more(septet: Septet, origin: Origin) -> None:
    """After a crash the same command copies the state, and work continues from the copy."""
    with septet.up() as running:
        order = start(septet, origin, "wo-1", Step.IMPLEMENT_PLAN)
        septet.until_works(order, FIRST_RUNS[Step.IMPLEMENT_PLAN])
        running.kill()
        make_backup(septet, "backup")
        lose(septet)
    shutil.copytree(septet.root / "backup", septet.state, symlinks=True)
    gate(septet, order, Step.IMPLEMENT_PLAN).touch()
    with septet.up():
        task = septet.closed(order)
    assert task["status"] == "completed"
    assert pull_requests(origin) == 1


def test_a_backup_goes_to_a_new_folder_outside(septet: Septet, tmp_path: Path) -> None:
    """A backup overwrites no folder, and copies no folder into itself."""
    nothing = septet("backup", tmp_path / "backup", "--json")
    assert (nothing.code, "is not a state directory" in nothing.error["message"]) == (2, True)
    septet.state.mkdir(parents=True)
    (septet.state / "host-id").write_text("0123456789ab\n")
    inside = septet("backup", septet.state / "backup", "--json")
    assert (inside.code, "is in the state directory" in inside.error["message"]) == (2, True)
    assert septet("backup", tmp_path / "backup", "--json").code == 0
    again = septet("backup", tmp_path / "backup", "--json")
    assert (again.code, "is there already" in again.error["message"]) == (2, True)
