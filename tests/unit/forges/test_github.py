"""The behaviour that only GitHub has; `test_contract` checks the contract of every forge."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from fakes.forges.github import GitHubFake
from fakes.forges.serving import serving_forge
from fakes.forges.state import Asked, Fault

from septet.errors import ForgeError, ForgeUnavailableError, InvalidInputError, NotFoundError, SeptetError
from septet.forges.github.forge import GitHubForge, github_api
from septet.forges.values import NewPullRequest

SHA = "b" * 40
NEW = NewPullRequest("feat-1", "main", "A thing", "Body.", "wo-1")


@pytest.fixture
def github() -> Iterator[GitHubFake]:
    """Return a GitHub with one branch beside `main`."""
    with serving_forge(GitHubFake(heads={"o/foo.js": {"main": "a" * 40, "feat-1": SHA}})) as github:
        yield github


@pytest.fixture
def forge(github: GitHubFake) -> GitHubForge:
    """Return the forge of the fake's repository."""
    return GitHubForge(github.project, github_api(github.url, github.token))


def test_a_pull_request_is_no_issue(github: GitHubFake, forge: GitHubForge) -> None:
    """The number of a pull request is refused as an issue, and an error of GitHub's does not count as no issue."""
    opened = forge.open_pull_request(NEW)

    with pytest.raises(InvalidInputError, match="is a pull request"):
        forge.issue(opened.number)
    with pytest.raises(InvalidInputError, match="is a pull request"):
        forge.find_issues([opened.number])
    github.faults.append(Fault(status=500))
    with pytest.raises(ForgeUnavailableError):
        forge.find_issues([1])


def test_a_pull_request_of_another_branch_is_not_taken(github: GitHubFake, forge: GitHubForge) -> None:
    """The client ignores a pull request of another branch in an answer that GitHub did not filter."""
    github.heads["o/foo.js"]["other"] = "c" * 40
    forge.open_pull_request(replace(NEW, head="other"))
    _, everything = github.answer(Asked("GET", "/repos/o/foo.js/pulls", {}, {}, None))
    github.faults.append(Fault(status=200, body=everything))

    assert forge.find_pull_request("feat-1") is None


def test_labels_are_set_also_on_a_pull_request_that_is_there(github: GitHubFake, forge: GitHubForge) -> None:
    """A second attempt sets the labels that an attempt did not set after it opened the pull request."""
    forge.open_pull_request(NEW)

    assert forge.open_pull_request(replace(NEW, labels=("bug", "ui", "bug"))).warnings == ()
    assert github.pulls[1].labels == ["bug", "ui"]


def test_a_label_that_cannot_be_set_is_a_warning(github: GitHubFake, forge: GitHubForge) -> None:
    """A token without the right to label causes a warning; an unreachable forge causes an error to retry."""
    forge.open_pull_request(NEW)
    github.faults.append(Fault(status=403, text="Resource not accessible", method="POST"))

    warned = forge.open_pull_request(replace(NEW, labels=("bug",)))

    assert warned.number == 1
    assert warned.warnings[0].startswith("labels were not set (bug): ")
    assert "Resource not accessible" in warned.warnings[0]
    github.faults.append(Fault(status=503, method="POST"))
    with pytest.raises(ForgeUnavailableError):
        forge.open_pull_request(replace(NEW, labels=("bug",)))


@pytest.mark.parametrize(
    ("new", "words", "remedy", "may_pass"),
    [
        (replace(NEW, head="none"), "PullRequest head invalid", "`septet retry` pushes it again", True),
        (replace(NEW, base="none"), "PullRequest base invalid", "base", False),
        (replace(NEW, head="main", base="feat-1"), "main", "", False),
        (replace(NEW, base="same"), "No commits between", "nothing", True),
    ],
)
def test_githubs_refusals_are_told(
    github: GitHubFake, forge: GitHubForge, new: NewPullRequest, words: str, remedy: str, *, may_pass: bool
) -> None:
    """A 422 causes an error with GitHub's words and a remedy; a passing refusal has a limit of attempts."""
    github.heads["o/foo.js"]["same"] = SHA
    if new.head == "main":
        refusal = {"message": "main is no head", "errors": ["because"]}
        github.faults.append(Fault(status=422, body=refusal, method="POST"))

    with pytest.raises(ForgeError, match=words) as refused:
        forge.open_pull_request(new)

    assert remedy in refused.value.remedy
    assert refused.value.retryable is may_pass
    assert not may_pass or (refused.value.most_tries, refused.value.retry_after_seconds) == (30, 2)


NONE_LEFT = {"X-RateLimit-Remaining": "0"}


@pytest.mark.parametrize(
    ("fault", "error", "words", "seconds"),
    [
        (Fault(status=403, text="Resource not accessible"), ForgeError, "septet docs forges", None),
        (Fault(status=404, text="Not Found"), NotFoundError, "private", None),
        (Fault(status=410, text="Issues are disabled"), NotFoundError, "no issues", None),
        (Fault(status=503, body=b"", headers={"Retry-After": "7"}), ForgeUnavailableError, "", 7),
        (Fault(status=429, body={}, headers={"Retry-After": "soon"}), ForgeUnavailableError, "", 60),
        (Fault(status=403, body={}, headers=NONE_LEFT), ForgeUnavailableError, "", 60),
    ],
)
def test_a_failure_says_what_to_do(
    github: GitHubFake,
    forge: GitHubForge,
    fault: Fault,
    error: type[SeptetError],
    words: str,
    seconds: float | None,
) -> None:
    """Each status causes an error with a remedy, and the error says whether and when a retry can help."""
    github.add_issue("Title")
    github.faults.append(replace(fault))

    with pytest.raises(error) as failed:
        forge.issue(1)

    assert issubclass(error, ForgeUnavailableError) == failed.value.retryable
    assert words in failed.value.remedy
    assert seconds == failed.value.retry_after_seconds
    assert github.url in failed.value.message
    assert "good-token" not in f"{failed.value}{failed.value!r}{failed.value.__cause__!r}"
    assert failed.value.__cause__ is None or failed.value.__cause__.__cause__ is not failed.value


def test_a_public_repository_is_read_without_a_token(github: GitHubFake) -> None:
    """A client without a token sends no `Authorization` header, and reads an issue without a body."""
    github.token = ""
    github.issues[github.add_issue("Title")].body = None  # type: ignore[assignment]

    assert GitHubForge(github.project, github_api(github.url)).issue(1).body == ""
    assert "authorization" not in github.asked[0].headers


def test_open_issues_are_listed_by_their_label(github: GitHubFake, forge: GitHubForge) -> None:
    """The client reads only issues of a label over several pages, and refuses more than a thousand issues."""
    for number in range(1, 252):
        github.add_issue(f"Issue {number}", "Body.", ("go",))
    forge.open_pull_request(replace(NEW, labels=("go",)))
    github.asked.clear()
    found = forge.open_issues("go")
    assert [issue.number for issue in found] == list(range(1, 252))
    assert (found[0].title, found[0].body, found[0].labels) == ("Issue 1", "Body.", ("go",))
    assert len(github.asked) == 3
    for number in range(750):
        github.add_issue(f"Issue {number}", "", ("go",))
    with pytest.raises(InvalidInputError, match="more than 1000"):
        forge.open_issues("go")
