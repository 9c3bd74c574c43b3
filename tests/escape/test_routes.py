"""Each route of a guest fails, and succeeds without its protection."""

import os
from pathlib import Path

import pytest
from fakes.escape_homes import TRAPS, Trap, leave, scene_for
from fakes.escape_routes import ROUTES, Route, with_needs
from fakes.guests import CANARY, Machine

from septet.agents.runs.folders import Runs
from septet.agents.sandbox.guest_run import GuestCommand, GuestRunner


@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_a_route_finds_no_canary(machine: Machine, route: Route) -> None:
    """The confined guest finds no canary."""
    printed = machine.run(route.program)
    assert CANARY not in printed
    assert "it ended otherwise" not in printed


@pytest.mark.parametrize("route", with_needs(ROUTES, root=True))
def test_a_route_is_closed_by_its_protection_alone(machine: Machine, route: Route) -> None:
    """Without its protection the route finds the canary, so the route is real."""
    printed = machine.run(
        route.program, lambda description: route.without(description, machine.root), remains_root=True
    )
    assert CANARY in printed


@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
def test_what_a_guest_leaves_in_its_home_leads_the_engine_nowhere(machine: Machine, trap: Trap) -> None:
    """The engine follows no trap in the guest's home; without its guard it does."""
    scene = scene_for(machine, trap.name, trap.cli)
    assert "it ended otherwise" not in leave(scene, trap.program)
    assert CANARY not in trap.engine(scene)
    again = scene_for(machine, f"{trap.name}-again", trap.cli)
    leave(again, trap.program)
    assert CANARY in trap.careless(again)


@pytest.mark.needs("bubblewrap")
def test_a_guest_has_what_it_needs(machine: Machine) -> None:
    """A guest can write its workspace and its CLI's folder, and read the mirror's objects."""
    printed = machine.run(
        "change('state/workspaces/wo-1/own'); change('home/.claude/.credentials.json');"
        "read('state/mirrors/app.git/objects/own'); open('/tmp/own', 'w').close(); print(os.getcwd())"
    )
    workspace = machine.files.workspace
    assert printed.split() == [CANARY, CANARY, "own", str(workspace)]


@pytest.mark.needs("bubblewrap")
def test_a_guest_inherits_no_descriptor(machine: Machine) -> None:
    """A guest has only stdin, stdout and stderr open."""
    printed = machine.run("print(sorted(int(name) for name in os.listdir('/proc/self/fd'))[:-1])")
    assert printed.strip() == "[0, 1, 2]"


@pytest.mark.needs("bubblewrap")
def test_a_guest_learns_nothing_of_the_machine_from_its_sandbox(machine: Machine) -> None:
    """The sandbox's arguments name folders of the machine, and the guest cannot read them."""
    printed = machine.run("read('/proc/1/cmdline'); read('/proc/1/environ')")
    assert str(Path("state") / "mirrors") not in printed


@pytest.mark.needs("bubblewrap")
def test_a_check_sees_no_login_and_nothing_that_its_own_words_name(machine: Machine, tmp_path: Path) -> None:
    """A repository's check cannot read a login, whatever program and words the repository chooses."""
    (tmp_path / "lock").touch()
    with (tmp_path / "lock").open() as lock:
        files = machine.files
        runs = Runs(tmp_path / "runs")
        folder, objects = tmp_path / "checks", files.objects
        runner = GuestRunner(runs, machine.supervisors, machine.sandbox, folder, objects, lock.fileno())
        for path in ("home/.ssh/id_ed25519", "home/.claude/login", "state/api-token"):
            argv = ("cat", str(machine.root / path))
            end = runner.run(GuestCommand(argv, {"PATH": os.defpath}, files.workspace, 20.0))
            assert (end.code, CANARY in end.output) == (1, False)
        end = runner.run(GuestCommand((str(machine.root / "sleeper"),), {}, files.workspace, 20.0))
        assert end.record.cause == "not_started"
