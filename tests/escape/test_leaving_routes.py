"""What a guest leaves in its commits goes to no origin where a git would refuse it, or a person would not push it."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from fakes.escape_git import GitMachine
from fakes.guests import machine_with_canaries
from fakes.leaving_routes import LEAVING_ROUTES, LeavingRoute
from fakes.repositories import git_env, make_origin

from septet.agents.sandbox.supervisors import Supervisors
from septet.errors import EvidenceError
from septet.git.commits.push import push, remote_branch
from septet.git.engine.address import parse_address
from septet.git.engine.place import Place
from septet.git.engine.remote import Remote
from septet.git.evidence.outgoing import refuse_unfit_commits
from septet.git.workspace.record import OrderStart
from septet.git.workspace.workspace import open_workspace
from septet.git.worktree.view import view_folder
from septet.state import StateDir

pytestmark = pytest.mark.needs("bubblewrap")
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitMachine]:
    """A machine with an origin."""
    supervisors, root = Supervisors(), tmp_path_factory.mktemp("machine")
    with machine_with_canaries(root, supervisors) as first:
        make_origin(root / "real").push({"README.md": "# Sample\n", "a/b.py": "1\n"})
        yield GitMachine(root, first.sandbox, supervisors, first.neighbour, first.shared_memory_key)
    supervisors.close()


def workspace(machine: GitMachine, name: str) -> Place:
    """Return a new workspace, in which the machine's guest works from now on."""
    state = StateDir(machine.root / f"state-{name}")
    state.prepare()
    address = parse_address(str(machine.root / "real" / "repo.git"))
    place = open_workspace(state, address, OrderStart("wo-1", name), env=git_env(machine.root / "nobody"))
    machine.place = replace(place, file_limit_bytes=MIB)
    return machine.place


@pytest.mark.parametrize("route", LEAVING_ROUTES, ids=lambda route: route.name)
def test_no_origin_gets_what_a_guest_has_committed_past_git(machine: GitMachine, route: LeavingRoute) -> None:
    """The push is refused in words before anything goes out; the engine's push without that check brings it there."""
    place = workspace(machine, route.name)
    *_, sha = machine.run(route.script).split()
    with pytest.raises(EvidenceError, match=route.words) as refused:
        push(place, f"feat/{route.name}", sha)
    assert "septet retry ID" in refused.value.remedy
    assert remote_branch(place, f"feat/{route.name}") is None
    ref = f"refs/heads/feat/{route.name}"
    assert Remote(place.destination, place.env, None).push(view_folder(place), sha, ref, "").is_done


def test_honest_commits_may_leave(machine: GitMachine) -> None:
    """Folders, programs, links and a file up to the limit are pushed."""
    place = workspace(machine, "honest")
    printed = machine.run(
        "import subprocess\n"
        "os.makedirs('b/c'); open('b/c/d', 'wb').write(bytes(1 << 20)); os.symlink('d', 'b/c/e')\n"
        "open('run', 'w').write('#!/bin/sh'); os.chmod('run', 0o755); os.mkdir('.github')\n"
        "open('.github/.gitkeep', 'w'); open('.gitignore', 'w').write('x')\n"
        "git = ['git', '-c', 'user.name=a', '-c', 'user.email=b']\n"
        "subprocess.run([*git, 'add', '-A'], check=True); subprocess.run([*git, 'commit', '-qm', 'x'], check=True)\n"
        "print(subprocess.run([*git, 'rev-parse', 'HEAD'], stdout=subprocess.PIPE).stdout.decode())\n"
    )
    sha = printed.split()[-1]
    refuse_unfit_commits(place, sha)
    assert push(place, "feat/honest", sha) == sha


def test_what_the_origin_has_already_is_not_held_against_the_work(machine: GitMachine) -> None:
    """Another branch of the origin has an odd folder and a large file: work on top of it may be pushed."""
    place = workspace(machine, "odd")
    *_, odd = machine.run(LEAVING_ROUTES[0].script.replace("a/../../b", "y/../../z")).split()
    assert Remote(place.destination, place.env, None).push(view_folder(place), odd, "refs/heads/odd", "").is_done
    place = workspace(machine, "on-odd")
    refuse_unfit_commits(place, odd)
    assert push(place, "feat/on-odd", odd) == odd
