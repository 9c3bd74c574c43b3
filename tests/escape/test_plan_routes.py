"""A person approves a plan: the implementor gets no other file of the planner, and no file is lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.escape_git import README, GitMachine, git_machine
from fakes.plan_routes import PLAN, PLAN_ROUTES, PlanRoute
from fakes.snapshots import begin, snapshot_of

from septet.git.engine.place import Place
from septet.git.evidence.beside_plan import BeforeAgents, Leftovers, PlanAlone
from septet.git.snapshots.repository_stamp import note_baseline
from septet.git.vault.facts import SnapshotOptions
from septet.git.vault.layout import read
from septet.git.vault.vault import vault_at

pytestmark = pytest.mark.needs("bubblewrap")
MIB = 1024 * 1024
IGNORED = "node_modules\nvendor\n.claude\nCLAUDE.local.md\n"


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitMachine]:
    with git_machine(tmp_path_factory.mktemp("machine"), {**README, ".gitignore": IGNORED}) as made:
        yield made


def set_up(machine: GitMachine, name: str) -> Place:
    """Return a workspace with the files of set-up: a small ignored folder, and a file over the limit of snapshots."""
    place = machine.open_workspace(name, file_limit_bytes=MIB)
    for path, content in (
        ("node_modules/.bin/jest", "good"),
        ("vendor/tool", "good"),
        ("vendor/big", "x" * 2 * MIB),
    ):
        file = place.worktree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    return place


def options(leftovers: Leftovers, aside: Path | None) -> SnapshotOptions:
    """Return options whose reason names the leftovers."""
    return SnapshotOptions(f"{leftovers.shown_paths} {aside}", MIB, "find_plan_file")


@pytest.mark.parametrize("route", PLAN_ROUTES, ids=lambda route: route.name)
def test_an_implementor_gets_the_plan_alone(machine: GitMachine, route: PlanRoute) -> None:
    """The planner's leftovers work until the workspace returns; then they are in a rescue or beside the workspace."""
    place = set_up(machine, route.name)
    first = begin(place)
    note_baseline(place, first)
    assert not route.hits(place.worktree)
    assert "it ended otherwise" not in machine.run(route.script)
    assert route.hits(place.worktree), "without the return"
    current = snapshot_of(place)

    is_changed, rescue = PlanAlone(place, current, BeforeAgents(first), PLAN).keep(options)

    assert is_changed
    assert not route.hits(place.worktree), route.attack
    assert (place.worktree / PLAN).read_text(encoding="utf-8") == "# Plan"
    assert (place.worktree / "node_modules" / ".bin" / "jest").read_text(encoding="utf-8") == "good"
    assert (place.worktree / "vendor" / "big").stat().st_size == 2 * MIB
    is_kept = (route.kept or route.path).encode() in read(vault_at(place), (rescue or current).commit)
    assert is_kept or route.hits(place.worktree.with_name("wo-1~left") / "0000"), "something is lost"
