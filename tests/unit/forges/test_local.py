"""The `local` forge: JSON under a ref of a repository on disk."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.repositories import Origin, git, git_env, make_origin

from septet.errors import ForgeError, ForgeUnavailableError, NotFoundError
from septet.forges.forge import ISSUE_LIMIT_BYTES, NewPullRequest, PullRequest
from septet.forges.local import LocalForge
from septet.forges.ref_store import RefStore
from septet.git.engine import Git

NEW = NewPullRequest("feat-1", "main", "A thing", "Body.", "wo-1", labels=("bug", "bug"))


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    """Return an origin with a branch that was pushed."""
    origin = make_origin(tmp_path / "my repos", name="foo.js.git")
    origin.push({"a": "1"})
    origin.push({"b": "1"}, branch="feat-1")
    return origin


@pytest.fixture
def forge(origin: Origin, tmp_path: Path) -> LocalForge:
    """Return the origin's forge."""
    return LocalForge(origin.bare, git_env(tmp_path / "home"))


def test_an_issue_is_added_and_read(forge: LocalForge, origin: Origin) -> None:
    """What is added is read back, numbers count from 1, and the URL names the repository."""
    first = forge.add_issue(" Größe\n", "Text\0 with \x1b[31m any bytes", ["bug", "bug"])
    second = forge.add_issue("Second")

    assert first == forge.issue(1)
    assert second == forge.issue(2)
    assert (first.title, first.state, first.labels, first.comments) == ("Größe", "open", ("bug",), ())
    assert f"{origin.bare.as_uri()}/issue/1" == first.url
    assert " " not in first.url


def test_an_issue_needs_a_title(forge: LocalForge) -> None:
    """A blank title is refused."""
    with pytest.raises(ForgeError, match="title"):
        forge.add_issue(" \n")


def test_an_unknown_issue_is_not_found(forge: LocalForge) -> None:
    """A number that nobody gave is not found, and the remedy names the command."""
    forge.add_issue("First")

    with pytest.raises(NotFoundError, match="no issue 2") as missing:
        forge.issue(2)

    assert "septet issue add" in missing.value.remedy


def test_a_large_issue_is_bounded(forge: LocalForge) -> None:
    """A body of a megabyte is kept whole and read cut."""
    forge.add_issue("Large", "x" * 1_000_000)

    assert len(forge.issue(1).body) == ISSUE_LIMIT_BYTES


def test_a_pull_request_is_opened_once(forge: LocalForge, origin: Origin) -> None:
    """The second asking finds what the first opened, whatever its words."""
    assert forge.find_pull_request("feat-1") is None

    opened = forge.open_pull_request(NEW)

    assert PullRequest(1, f"{origin.bare.as_uri()}/pull/1", "feat-1", "main", origin.sha("feat-1")) == opened
    assert opened == forge.open_pull_request(replace(NEW, title="Other"))
    assert opened == forge.find_pull_request("feat-1")
    assert forge.find_pull_request("main") is None


def test_it_follows_its_branch(forge: LocalForge, origin: Origin) -> None:
    """The pull request stands where its branch stands."""
    forge.open_pull_request(NEW)
    sha = origin.push({"c": "1"}, branch="feat-1")

    found = forge.find_pull_request("feat-1")

    assert found is not None
    assert sha == found.head_sha


def test_what_was_opened_can_be_read_with_git(forge: LocalForge, origin: Origin) -> None:
    """The words stand as JSON under the ref, with the marker, and no branch knows of it."""
    forge.open_pull_request(NEW)

    shown = git(origin.bare, "show", "refs/septet/forge:pull-1.json")

    assert "<!-- septet: wo-1 -->" in shown
    assert '"labels": [' in shown
    assert git(origin.bare, "branch", "--list", "*septet*") == ""


@pytest.mark.parametrize("new", [replace(NEW, head="none"), replace(NEW, base="none")])
def test_branches_must_be_there(forge: LocalForge, new: NewPullRequest) -> None:
    """A pull request of a branch that was not pushed is refused."""
    with pytest.raises(ForgeError, match="no branch none") as refused:
        forge.open_pull_request(new)

    assert "Push" in refused.value.remedy


def test_writers_at_the_same_time_lose_nothing(forge: LocalForge) -> None:
    """Issues that many add at once all stay, each with its own number; a pull request is opened once."""
    with ThreadPoolExecutor(4) as threads:
        added = list(threads.map(lambda number: forge.add_issue(f"Issue {number}"), range(12)))
        opened = set(threads.map(lambda _: forge.open_pull_request(NEW).number, range(6)))

    assert set(range(1, 13)) == {issue.number for issue in added}
    assert {f"Issue {number}" for number in range(12)} == {forge.issue(number).title for number in range(1, 13)}
    assert {1} == opened


def test_a_change_that_was_not_seen_is_not_overwritten(forge: LocalForge, origin: Origin, tmp_path: Path) -> None:
    """A write on top of what is no longer there says so, and changes nothing."""
    identity = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a",
    }
    store = RefStore(Git(origin.bare, env={**git_env(tmp_path / "home"), **identity}), "refs/septet/forge")
    before = store.read()
    forge.add_issue("First")

    assert not store.put(before, "issue-1.json", b"{}")
    assert list(store.read().files) == ["issue-1.json"]
    assert store.put(store.read(), "note", b"\xff\n\0")
    assert store.read().files["note"] == b"\xff\n\0"


def test_endless_writers_are_given_up(forge: LocalForge, origin: Origin, tmp_path: Path) -> None:
    """A ref that can never be moved is an error that a retry may help, after a bounded time."""
    lock = origin.bare / "refs" / "septet" / "forge.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    slow = replace(forge, tries=3)

    with pytest.raises(ForgeUnavailableError) as busy:
        slow.add_issue("First")

    assert busy.value.retryable


def test_what_is_no_record_is_an_error(forge: LocalForge, origin: Origin) -> None:
    """A ref that somebody else has written to is an error that says how to look at it."""
    blob = git(origin.bare, "hash-object", "-w", "--stdin", stdin=b'{"number": "one"}')
    tree = git(origin.bare, "mktree", stdin=f"100644 blob {blob}\tissue-1.json\n".encode())
    git(origin.bare, "update-ref", "refs/septet/forge", git(origin.bare, "commit-tree", "-m", "x", tree))

    with pytest.raises(ForgeError, match="refs/septet/forge") as error:
        forge.issue(1)

    assert "git show" in error.value.remedy


@pytest.mark.parametrize("given", ["checkout", "checkout/linked", "without suffix"])
def test_the_repository_is_found_as_git_finds_it(origin: Origin, tmp_path: Path, given: str) -> None:
    """A checkout, a linked worktree and a path without `.git` lead to their repository."""
    linked = tmp_path / "linked"
    git(origin.checkout, "worktree", "add", "-q", str(linked), "-b", "other")
    path = {
        "checkout": origin.checkout,
        "checkout/linked": linked,
        "without suffix": origin.bare.with_name("foo.js"),
    }[given]

    forge = LocalForge(path, git_env(tmp_path / "home"))

    assert f"{path.as_uri()}/issue/1" == forge.add_issue("First").url
    assert forge.issue(1).title == "First"


def test_a_folder_without_a_repository_is_not_found(tmp_path: Path) -> None:
    """A path that holds no repository is an error that names it."""
    with pytest.raises(NotFoundError, match="no git repository"):
        LocalForge(tmp_path, git_env(tmp_path / "home")).issue(1)
