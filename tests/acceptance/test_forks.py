"""Work on a fork: work orders push to the fork, and open their one pull request in the repository itself."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from fakes.forges.gitea import GiteaFake
from fakes.forges.github import GitHubFake
from fakes.forges.gitlab import GitLabFake
from fakes.forges.serving import serving_forge
from fakes.forges.state import Fault, ForgeFake
from fakes.repositories import Origin, git, make_origin
from fakes.septet_command import Septet
from fakes.shared_server import Host

from septet.forges.values import marker_of

pytestmark = [pytest.mark.faces, pytest.mark.law]
UPSTREAM, FORK, OTHER = "o/foo.js", "me/foo.js", "you/foo.js"
FORGES = (GitHubFake, GitLabFake, GiteaFake)


@dataclass
class Hosted:
    fake: ForgeFake
    upstream: Origin
    fork: Origin
    other: Origin

    @property
    def address(self) -> str:
        return f"{self.fake.url}/{UPSTREAM}.git"


@pytest.fixture(scope="module")
def forges(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Hosted]]:
    """Three forges on which only maintainers may push to the repository itself."""
    with ExitStack() as stack:
        yield {kind.name: _host(stack, kind, tmp_path_factory.mktemp(kind.name)) for kind in FORGES}


def _host(stack: ExitStack, kind: type[ForgeFake], root: Path) -> Hosted:
    upstream = make_origin(root / "o", "foo.js.git")
    upstream.push({"README.md": "# foo\n"})
    forks = []
    for owner in ("me", "you"):
        forks.append(make_origin(root / owner, "foo.js.git"))
        git(forks[-1].bare, "fetch", "-q", str(upstream.bare), "main:main")
    fake = stack.enter_context(serving_forge(kind(repositories=root, read_only=frozenset({UPSTREAM}))))
    return Hosted(fake, upstream, *forks)


@pytest.fixture(scope="module")
def working(served: Septet, forges: dict[str, Hosted], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    host = Host.beside(served, tmp_path_factory.mktemp("forks"))
    extra = {"SEPTET_FORKS": ", ".join(f"{each.fake.host}/{UPSTREAM}={FORK}" for each in forges.values())}
    for hosted in forges.values():
        extra |= hosted.fake.settings
    with host.worker(**extra):
        yield host
    host.end()


@pytest.mark.parametrize(
    "name", [pytest.param(kind.name, marks=[pytest.mark.release] * (kind is not GitHubFake)) for kind in FORGES]
)
def test_a_work_order_pushes_to_the_fork_and_asks_upstream(
    working: Host, forges: dict[str, Hosted], name: str
) -> None:
    """The branch is on the fork only, and upstream has one pull request although the answer to its creation was lost."""
    hosted, order = forges[name], f"wo-fork-{name}"
    number = hosted.fake.add_issue("Say goodbye", "The app greets only.")
    path = "/merge_requests" if name == "gitlab" else "/pulls"
    hosted.fake.faults.append(Fault("drop", method="POST", path=path, about=order, after=True))

    ended = working.septet(
        "run", "--repo", hosted.address, "--issue", str(number), "--id", order, "--wait", "--json"
    )

    assert ended.code == 0, ended
    task = ended.json["task"]
    (pull,) = [pull for pull in hosted.fake.pulls.values() if marker_of(order) in pull.body]
    assert (pull.head_project, pull.head, pull.base) == (FORK, task["branch_name"], "main")
    assert hosted.fork.sha(pull.head) == task["commit_sha"]
    assert hosted.upstream.sha(pull.head) == ""
    assert hosted.fake.seen_faults


def test_a_work_order_names_another_fork(working: Host, forges: dict[str, Hosted]) -> None:
    """The fork of a work order takes precedence over the worker's setting."""
    hosted = forges["github"]
    ended = working.septet(
        *("run", "--repo", hosted.address, "--title", "Add two", "--id", "wo-other-fork"),
        *("--push-to", OTHER, "--wait", "--json"),
    )
    assert ended.code == 0, ended
    assert hosted.other.sha(ended.json["task"]["branch_name"]) == ended.json["task"]["commit_sha"]
