"""Runs that are users of their own: what is promised of them holds, and what is not promised is said."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.escape_homes import USER_TRAPS, Trap, scene_for
from fakes.guests import CANARY, machine_with_canaries
from fakes.network_routes import servers_with_canary
from fakes.user_routes import OPEN_ROUTES, USER_ROUTES, UserMachine, user_table, users_of

from septet.agents.turns.supervisors import Supervisors

pytestmark = pytest.mark.needs("root")


@pytest.fixture(scope="module")
def users() -> Iterator[UserMachine]:
    """A machine with canaries where every user may pass; its worker's keys are in its processes' environments."""
    folder = Path(tempfile.mkdtemp(prefix="septet-users-"))
    folder.chmod(0o755)
    supervisors = Supervisors(env={"WORKER_KEY": CANARY})
    with machine_with_canaries(folder, supervisors) as machine, servers_with_canary() as servers:
        with users_of(machine, servers) as users:
            yield users
        supervisors.close()
    shutil.rmtree(folder)


def test_a_user_of_its_own_finds_no_canary(users: UserMachine) -> None:
    """Of files, processes and keys; and each program came to its end."""
    found = users.try_all(USER_ROUTES)
    assert [name for name, printed in found.items() if CANARY in printed or "Traceback" in printed] == []
    assert [*found] == [route.name for route in USER_ROUTES]
    assert all(printed.strip() for name, printed in found.items()), found


@pytest.mark.parametrize("protection", dict.fromkeys(route.protection for route in USER_ROUTES))
def test_each_protection_alone_closes_its_routes(users: UserMachine, protection: str) -> None:
    """Without it, each of them finds the canary: so they are real ones."""
    routes = [route for route in USER_ROUTES if route.protection == protection]
    found = users.try_without(routes, protection)
    assert [route.name for route in routes if CANARY not in found[route.name]] == []


@pytest.mark.parametrize("trap", USER_TRAPS, ids=lambda trap: trap.name)
def test_what_a_user_of_its_own_leaves_in_its_home_leads_the_engine_nowhere(
    users: UserMachine, trap: Trap
) -> None:
    """The engine comes by as root, and nothing of root's has moved; without the guard it has."""
    for name, engine, is_found in ((trap.name, trap.engine, False), (f"{trap.name}-again", trap.careless, True)):
        scene = scene_for(users.machine, f"users-{name}")
        assert users.leave(scene, trap.program) == "left\n"
        assert (CANARY in engine(scene)) == is_found


def test_what_is_not_promised_is_open(users: UserMachine) -> None:
    """The page says so of each of these: where one is closed one day, it has to say that."""
    found = users.try_all(OPEN_ROUTES)
    assert [route.name for route in OPEN_ROUTES if CANARY not in found[route.name]] == []


def test_the_page_on_security_has_the_table_of_users_of_their_own() -> None:
    """What the document says is tried is what is tried here: `make escape` writes it."""
    assert user_table() in (Path(__file__).parents[2] / "docs" / "security.md").read_text(encoding="utf-8")
