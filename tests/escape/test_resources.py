"""Acts that only the kernel's user 0 may do are refused, and bombs are ended by the name of their limit."""

import os
import resource
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.bundled_bubblewrap import program_of_all
from fakes.escape_routes import Route, with_needs
from fakes.guests import CANARY, PROMPT, Machine
from fakes.resource_routes import (
    BOMBS,
    RECORD_ROUTES,
    RECORDS,
    RESOURCE_ROUTES,
    ROOT_ROUTES,
    Bomb,
    RecordRoute,
    RootRoute,
    are_whole,
    explode,
)

from septet.agents.guest.description import GuestFiles, World, describe
from septet.agents.processes.confined import SandboxStart
from septet.agents.processes.control_group import find_parent
from septet.agents.processes.resource_limits import MOST_OPEN_FILES
from septet.agents.sandbox.sandbox import find_sandbox

root_only = pytest.mark.needs("root", "bubblewrap")


@pytest.mark.parametrize("route", with_needs(RESOURCE_ROUTES))
def test_nothing_is_left_that_runs_with_more_rights(machine: Machine, route: Route) -> None:
    """A guest leaves no file that runs with more rights; without the protection it does."""
    assert CANARY not in machine.run(route.program)
    if not route.as_root or os.getuid() == 0:
        without = machine.run(
            route.program, lambda each: route.without(each, machine.root), remains_root=route.as_root
        )
        assert CANARY in without


@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize("route", RECORD_ROUTES, ids=lambda route: route.name)
def test_a_guest_changes_nothing_of_what_is_recorded_of_it(
    machine: Machine, tmp_path: Path, route: RecordRoute
) -> None:
    """A guest cannot change its recorded prompt and output; with the files themselves it could."""
    machine.run(route.program)
    assert are_whole(machine.records)
    (tmp_path / RECORDS[0]).write_bytes(PROMPT)
    with ExitStack() as stack:
        stdin, *outputs = (stack.enter_context((tmp_path / name).open("ab+")) for name in RECORDS)
        subprocess.run(
            [sys.executable, "-IS", "-c", route.program],
            stdin=stdin,
            stdout=outputs[0],
            stderr=outputs[1],
            check=True,
        )
    assert not are_whole(tmp_path)


@root_only
@pytest.mark.parametrize("route", ROOT_ROUTES, ids=lambda route: route.name)
def test_a_worker_that_is_root_gives_that_up_for_its_guests(machine: Machine, route: RootRoute) -> None:
    """The kernel refuses a guest the acts that it allows its user 0 without a capability."""
    assert CANARY not in machine.run(route.program, lambda each: route.seen(each, machine.root))
    assert CANARY in machine.run(route.program, lambda each: route.seen(each, machine.root), remains_root=True)


@root_only
def test_what_a_guest_writes_belongs_to_the_worker(machine: Machine) -> None:
    """A guest's files belong to the worker's user, so git and rescues of a root worker accept them."""
    machine.run("os.mkdir('made'); open('made/file', 'w').close(); os.chmod('made/file', 0o2755)")
    made = machine.files.workspace / "made" / "file"
    assert (made.stat().st_uid, made.parent.stat().st_uid, made.stat().st_gid == 0) == (0, 0, False)


@root_only
def test_the_user_of_a_guest_is_its_own(machine: Machine) -> None:
    """Outside the sandbox no guest runs as root, and two guests have different users."""
    program = "import time; print(open('/proc/self/status').read().split('Uid:')[1].split()[0])"
    assert machine.run(program).strip() == "1000"
    outer = "print(next(line for line in open('/proc/self/mounts') if line.split()[1] == '/'))"
    users = {machine.run(outer).partition("uid=")[2].partition(",")[0] for _ in range(2)}
    assert (len(users), users & {"", "0"}) == (2, set())


@pytest.mark.needs("bubblewrap")
def test_a_guest_opens_its_own_output_again(machine: Machine) -> None:
    """A guest can open `/dev/stdout` and `/dev/stderr` by name, as scripts do."""
    assert machine.run("open('/dev/stdout', 'a').write('seen'); open('/dev/stderr', 'a').write('x')") == "seen"


@pytest.mark.needs("bubblewrap")
def test_a_guest_leaves_no_core(machine: Machine) -> None:
    """A guest writes no core file, and the machine's core program gets no memory of it."""
    printed = machine.run("import resource; print(resource.getrlimit(resource.RLIMIT_CORE))")
    assert printed.strip() in {"(1, 1)", "(0, 0)"}


@pytest.mark.needs("bubblewrap")
def test_a_process_of_a_guest_opens_so_many_files_and_no_more(machine: Machine) -> None:
    """A guest's hard limit of open files is low, and its soft limit is not above the machine's."""
    printed = machine.run("import resource; print(*resource.getrlimit(resource.RLIMIT_NOFILE))")
    soft, hard = map(int, printed.split())
    assert (soft <= resource.getrlimit(resource.RLIMIT_NOFILE)[0], hard <= MOST_OPEN_FILES) == (True, True)


@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.name)
def test_a_bomb_is_ended_by_the_name_of_its_limit(machine: Machine, bomb: Bomb) -> None:
    """The record names the limit and its size; without the limit the bomb completes."""
    limited = explode(machine, bomb, limited=True)
    assert f"{bomb.cause} {bomb.words}" in limited
    assert CANARY not in limited
    assert CANARY in explode(machine, bomb, limited=False)


@root_only
def test_the_kernel_makes_no_more_processes_than_a_guest_may_have(machine: Machine) -> None:
    """The kernel stops a bomb that is faster than its supervisor's polls, a little above the limit of processes."""
    program = """
import time
count = 0
try:
    while count < 500:
        if os.fork() == 0:
            time.sleep(30)
            os._exit(0)
        count += 1
except OSError:
    print("held at", count < 100)
"""
    assert "held at True" in machine.run(program + "sys.stdout.flush()", resources={"processes": 50})


@pytest.mark.needs("bubblewrap")
def test_the_kernel_holds_a_guests_memory_where_it_has_a_control_group(machine: Machine) -> None:
    """With a control group the kernel ends a bomb faster than the supervisor's polls; without, the bomb completes."""
    printed = machine.run("kept = b'x' * (300 << 20)\nprint(CANARY)", resources={"memory_bytes": 100 << 20})
    has_group = find_parent()[0] != ""
    assert ("memory_limit memory limit of 100 MiB reached" in printed, CANARY in printed) == (
        has_group,
        not has_group,
    )


@root_only
def test_the_sandbox_starts_for_a_user_without_any_right() -> None:
    """The sandbox starts for an ordinary user without capabilities and with `no_new_privs`, as in a container."""
    description = describe(World(Path("/nonexistent")), GuestFiles(Path("/usr")))
    sandbox = replace(find_sandbox("auto", os.environ), gives_up_root=False)
    rights = ("--clear-groups", "--bounding-set=-all", "--no-new-privs")
    with program_of_all(str(sandbox.program)) as program:
        around = replace(sandbox, program=program).around(description)
        assert around is not None
        start = SandboxStart(around, ("id", "-u"))
        argv = ("setpriv", "--reuid=10001", "--regid=10001", *rights, *start.argv)
        done = subprocess.run(argv, pass_fds=start.descriptors, capture_output=True, text=True, check=False)
        start.close()
    assert (done.stdout.strip(), done.stderr) == ("1000", "")
