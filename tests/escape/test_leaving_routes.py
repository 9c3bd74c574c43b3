"""Commits of a guest that git would refuse, or that no person would push, reach no origin."""

from collections.abc import Iterator

import pytest
from fakes.escape_git import GitMachine, git_machine
from fakes.leaving_routes import LEAVING_ROUTES, LeavingRoute

from septet.errors import EvidenceError
from septet.git.commits.push import push, remote_branch
from septet.git.engine.remote import Remote
from septet.git.evidence.pushable_objects import refuse_unfit_commits
from septet.git.worktree.view import view_folder

pytestmark = pytest.mark.needs("bubblewrap")
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitMachine]:
    with git_machine(tmp_path_factory.mktemp("machine")) as made:
        yield made


@pytest.mark.parametrize("route", LEAVING_ROUTES, ids=lambda route: route.name)
def test_no_origin_gets_what_a_guest_has_committed_past_git(machine: GitMachine, route: LeavingRoute) -> None:
    """The push fails with reason and remedy before it sends anything; without the check it reaches the origin."""
    place = machine.open_workspace(route.name, file_limit_bytes=MIB)
    *_, sha = machine.run(route.script).split()
    with pytest.raises(EvidenceError, match=route.words) as refused:
        push(place, f"feat/{route.name}", sha)
    assert "septet retry ID" in refused.value.remedy
    assert remote_branch(place, f"feat/{route.name}") is None
    ref = f"refs/heads/feat/{route.name}"
    assert Remote(place.destination, place.env, None).push(view_folder(place), sha, ref, "").is_done


def test_honest_commits_may_leave(machine: GitMachine) -> None:
    """Folders, programs, links and a file at the limit may be pushed."""
    place = machine.open_workspace("honest", file_limit_bytes=MIB)
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
    """Work on top of an odd folder and a large file that the origin already has may be pushed."""
    place = machine.open_workspace("odd", file_limit_bytes=MIB)
    *_, odd = machine.run(LEAVING_ROUTES[0].script.replace("a/../../b", "y/../../z")).split()
    assert Remote(place.destination, place.env, None).push(view_folder(place), odd, "refs/heads/odd", "").is_done
    place = machine.open_workspace("on-odd", file_limit_bytes=MIB)
    refuse_unfit_commits(place, odd)
    assert push(place, "feat/on-odd", odd) == odd
