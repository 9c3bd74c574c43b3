"""A guest's changes in its worktree neither steer the engine's git nor reveal others' files."""

import uuid
from collections.abc import Iterator

import pytest
from fakes.escape_git import (
    GIT_ROUTES,
    PERSON_ROUTES,
    PROTECTED_ROUTES,
    GitMachine,
    GitRoute,
    ask_engine,
    git_machine,
    look_after_engine,
    plant,
    plant_secrets,
    waiting_paths,
)
from fakes.guests import CANARY
from fakes.repositories import git_env
from fakes.snapshots import begin

from septet.git.snapshots.repository_stamp import note_baseline

pytestmark = pytest.mark.needs("bubblewrap")


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitMachine]:
    root = tmp_path_factory.mktemp("machine")
    with git_machine(root) as made:
        plant_secrets(root, git_env(root / "nobody"))
        yield made


@pytest.fixture
def left(machine: GitMachine, route: GitRoute) -> GitMachine:
    place = machine.open_workspace(f"git-{uuid.uuid4().hex}")
    note_baseline(place, begin(place))
    assert "it ended otherwise" not in plant(machine, route)
    return machine


@pytest.mark.parametrize("route", GIT_ROUTES, ids=lambda route: route.name)
def test_the_engines_git_finds_no_canary_after_a_guest(left: GitMachine, route: GitRoute) -> None:
    """The engine's git reads, commits and pushes without running the guest's changes, waiting, or printing a canary."""
    assert left.place is not None
    assert CANARY not in ask_engine(left.place), route.attack


@pytest.mark.parametrize("route", PERSON_ROUTES, ids=lambda route: route.name)
def test_a_persons_git_runs_nothing_of_a_guests(left: GitMachine, route: GitRoute) -> None:
    """A person's git in the worktree, after the engine's git, runs no program of the guest."""
    assert left.place is not None
    assert CANARY not in look_after_engine(left.place), route.attack


@pytest.mark.parametrize("route", [*GIT_ROUTES, *PERSON_ROUTES], ids=lambda route: route.name)
def test_what_a_guest_leaves_is_harmless_by_its_protection_alone(left: GitMachine, route: GitRoute) -> None:
    """Without its protection the route finds the canary, so the route is real."""
    assert left.place is not None
    assert CANARY in route.without(left.place)


@pytest.mark.parametrize(
    ("path", "route"), PROTECTED_ROUTES.items(), ids=[route.name for route in PROTECTED_ROUTES.values()]
)
def test_what_ci_and_agents_act_on_waits_and_would_be_pushed(left: GitMachine, path: str, route: GitRoute) -> None:
    """The gate names the protected path; without the gate the path reaches the origin."""
    assert left.place is not None
    assert path in waiting_paths(left.place), route.attack
    assert CANARY in route.without(left.place)
