import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.forges.github import GitHubFake
from fakes.forges.serving import serving_forge
from fakes.repositories import Origin, git, make_origin
from fakes.septet_command import Septet


def test_a_file_url_with_dots_in_its_name_and_a_trunk_becomes_a_pull_request(
    served: Septet, tmp_path: Path
) -> None:
    """A `file://` address, a name with dots and a default branch other than main work like any other."""
    origin = make_origin(tmp_path, "my.app.v1.2.git", "trunk")
    origin.push({"main.py": "print(1)\n"})
    ended = served("run", "--repo", f"file://{origin.bare}", "--title", "Add two", "--wait", "--json")
    assert ended.code == 0, ended
    task = ended.json["task"]
    assert task["project"] == "my.app.v1.2"
    assert task["pr_url"] == f"file://{origin.bare}/pull/1"
    assert git(origin.bare, "merge-base", "trunk", task["branch_name"]) == origin.sha("trunk")
    assert '"base": "trunk"' in git(origin.bare, "grep", "-h", "base", "refs/septet/forge")


@pytest.fixture
def hosted(tmp_path: Path) -> Iterator[tuple[GitHubFake, Origin]]:
    origin = make_origin(tmp_path / "o", "foo.js.git")
    origin.push({"index.js": "module.exports = 1\n"})
    with serving_forge(GitHubFake(repositories=tmp_path)) as github:
        yield github, origin


def test_an_issue_on_github_becomes_a_branch_and_a_pull_request_there(
    hosted: tuple[GitHubFake, Origin], septet: Septet
) -> None:
    """The work order reads the issue and its comments, pushes the branch, opens one pull request; no file has the token."""
    github, origin = hosted
    number = github.add_issue("The export is wrong", "It should be 2.", ("bug",))
    github.add_comment(number, "Indeed: a remark that a person made.", author="ada")
    repository = f"{github.url}/o/foo.js.git"
    with septet.up(**github.settings):
        ended = septet("run", "--repo", repository, "--issue", str(number), "--wait", "--json")
    assert ended.code == 0, ended
    task = ended.json["task"]
    assert (task["source"], task["project"], task["issue_number"]) == ("github", "o/foo.js", str(number))
    ((pull_number, pull),) = github.pulls.items()
    assert task["pr_url"] == f"{github.url}/o/foo.js/pull/{pull_number}"
    assert (pull.base, pull.head) == ("main", task["branch_name"])
    assert origin.sha(task["branch_name"]) == task["commit_sha"] == github.sha(pull)
    kept = [path.read_bytes() for path in (septet.state / "runs").rglob("*") if path.is_file()]
    assert any(b"a remark that a person made" in content for content in kept)
    assert not any(b"good-token" in content for content in kept)
    told = subprocess.run(["grep", "-rl", "good-token", septet.state], capture_output=True, check=False).stdout
    assert told == b""
