"""The `github` forge, against a small GitHub on loopback."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest
from fakes.github import FakeGitHub, Fault, serving

from septet.errors import ForgeError, ForgeUnavailableError, InvalidInputError, NotFoundError, SeptetError
from septet.forges.forge import ISSUE_LIMIT_BYTES, Comment, Issue, NewPullRequest, PullRequest
from septet.forges.github.forge import GitHubForge, github_api

SHA = "b" * 40
NEW = NewPullRequest("feat-1", "main", "A thing", "Body.", "wo-1")


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    """Return a GitHub with one branch beside `main`."""
    with serving(FakeGitHub(heads={"main": "a" * 40, "feat-1": SHA})) as github:
        yield github


@pytest.fixture
def forge(github: FakeGitHub) -> GitHubForge:
    """Return the forge of its repository."""
    return GitHubForge(github.project, github_api(github.url, "good-token"))


def test_an_issue_is_read_whole(github: FakeGitHub, forge: GitHubForge) -> None:
    """Title, body, labels and all comments are read, with their authors; nothing else is asked."""
    number = github.add_issue("Größe", "Body.", ("bug", "ui"))
    github.add_comment(number, "First.")
    github.add_comment(number, "Second.", author=None)

    assert Issue(
        number=1,
        title="Größe",
        body="Body.",
        url="https://github.com/o/foo.js/issues/1",
        state="open",
        labels=("bug", "ui"),
        comments=(
            Comment("bob", "First.", "2026-01-01T00:00:00Z"),
            Comment("ghost", "Second.", "2026-01-01T00:00:00Z"),
        ),
        author="ada",
    ) == forge.issue(1)
    assert len(github.asked) == 2
    assert {"Bearer good-token"} == {asked.headers["authorization"] for asked in github.asked}
    assert {"2022-11-28"} == {asked.headers["x-github-api-version"] for asked in github.asked}


def test_an_issue_without_body_or_comments_takes_one_question(github: FakeGitHub, forge: GitHubForge) -> None:
    """A missing body is an empty text, and comments that are not there are not asked for."""
    github.add_issue("Title", None)

    assert (forge.issue(1).body, forge.issue(1).comments) == ("", ())
    assert len(github.asked) == 2


def test_only_as_many_comments_are_read_as_can_be_used(github: FakeGitHub, forge: GitHubForge) -> None:
    """Of a thousand large comments the newest page is read, and what does not fit is left out with a note."""
    number = github.add_issue("Title")
    for count in range(1000):
        github.add_comment(number, f"{count} " + "x" * 5000)

    issue = forge.issue(number)

    assert "older comments are left out" in issue.comments[0].body
    assert issue.comments[-1].body.startswith("999 ")
    assert sum(len(comment.body) for comment in issue.comments) <= ISSUE_LIMIT_BYTES + 200
    assert len(github.asked) == 2


def test_all_pages_of_comments_are_read_in_order(github: FakeGitHub, forge: GitHubForge) -> None:
    """Comments over several pages come from the oldest to the newest."""
    number = github.add_issue("Title")
    for count in range(250):
        github.add_comment(number, str(count))

    assert [str(count) for count in range(250)] == [comment.body for comment in forge.issue(number).comments]


def test_a_pull_request_is_no_issue(github: FakeGitHub, forge: GitHubForge) -> None:
    """A number that is a pull request's is refused."""
    opened = forge.open_pull_request(NEW)

    with pytest.raises(InvalidInputError, match="is a pull request"):
        forge.issue(opened.number)


def test_a_pull_request_is_opened_once(github: FakeGitHub, forge: GitHubForge) -> None:
    """The first asking opens it with title, marked body and draft; the second finds it."""
    assert forge.find_pull_request("feat-1") is None

    opened = forge.open_pull_request(replace(NEW, draft=True))

    assert PullRequest(1, "https://github.com/o/foo.js/pull/1", "feat-1", "main", SHA) == opened
    assert opened == forge.open_pull_request(NEW)
    assert opened == forge.find_pull_request("feat-1")
    assert list(github.pulls) == [1]
    assert tuple(github.pulls[1][name] for name in ("title", "body", "draft")) == (
        "A thing",
        "Body.\n\n<!-- septet: wo-1 -->\n",
        True,
    )


def test_a_pull_request_takes_in_another_work_order(github: FakeGitHub, forge: GitHubForge) -> None:
    """It is changed once, and a second asking changes nothing."""
    opened = forge.open_pull_request(NEW)
    for _ in range(2):
        forge.add_to_pull_request(opened.number, replace(NEW, title="More", body="Closes #2", marker="wo-2"))
    told = "Body.\n\n<!-- septet: wo-1 -->\n\n## More\n\nCloses #2\n\n<!-- septet: wo-2 -->\n"
    assert github.pulls[1]["body"] == told
    assert [asked.method for asked in github.asked].count("PATCH") == 1


def test_a_closed_pull_request_is_not_found(github: FakeGitHub, forge: GitHubForge) -> None:
    """Only an open pull request counts for a branch."""
    forge.open_pull_request(NEW)
    github.pulls[1]["state"] = "closed"

    assert forge.find_pull_request("feat-1") is None


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ({}, "open"),
        ({"state": "closed"}, "closed"),
        ({"state": "closed", "merged_at": "2026-01-01T00:00:00Z"}, "merged"),
    ],
)
def test_a_pull_request_says_what_became_of_it(
    github: FakeGitHub, forge: GitHubForge, facts: dict[str, str], state: str
) -> None:
    """GitHub's `closed` is `merged` where it names the time of the merge."""
    number = forge.open_pull_request(NEW).number
    github.pulls[number].update(facts)

    assert forge.pull_request(number).state == state


def test_an_unknown_pull_request_is_not_found(forge: GitHubForge) -> None:
    """A number that no pull request has is not found."""
    with pytest.raises(NotFoundError, match="pull request 9"):
        forge.pull_request(9)


def test_a_pull_request_of_another_branch_is_not_taken(github: FakeGitHub, forge: GitHubForge) -> None:
    """A GitHub that passes over the filter does not make us take another branch's pull request."""
    github.heads["other"] = "c" * 40
    opened = forge.open_pull_request(replace(NEW, head="other"))
    github.pulls[opened.number]["head"]["label"] = "o:feat-1"

    assert forge.find_pull_request("feat-1") is None


def test_an_answer_that_was_lost_does_not_open_a_second_one(github: FakeGitHub, forge: GitHubForge) -> None:
    """After a 502 that came when the pull request was made, it is looked up again and found."""
    github.faults.append(Fault(502, method="POST", after=True))

    assert forge.open_pull_request(NEW).number == 1
    assert list(github.pulls) == [1]


def test_one_that_was_opened_in_between_is_found(github: FakeGitHub, forge: GitHubForge) -> None:
    """GitHub's own refusal of a second pull request leads to the first."""
    forge.open_pull_request(NEW)
    github.faults.append(Fault(200, b"[]", {"Content-Type": "application/json"}, method="GET"))

    assert forge.open_pull_request(NEW).number == 1


def test_a_refusal_that_leads_nowhere_is_told(github: FakeGitHub, forge: GitHubForge) -> None:
    """A second one that GitHub refuses and does not show is an error."""
    forge.open_pull_request(NEW)
    github.faults += [Fault(200, b"[]", method="GET"), Fault(200, b"[]", method="GET")]

    with pytest.raises(ForgeError, match="already exists"):
        forge.open_pull_request(NEW)


def test_labels_are_set_also_on_one_that_is_there(github: FakeGitHub, forge: GitHubForge) -> None:
    """Labels come after the opening; an attempt that died between the two is made good."""
    forge.open_pull_request(NEW)

    labelled = forge.open_pull_request(replace(NEW, labels=("bug", "ui", "bug")))

    assert labelled.warnings == ()
    assert github.pulls[1]["labels"] == ["bug", "ui"]


def test_a_label_that_cannot_be_set_is_a_warning(github: FakeGitHub, forge: GitHubForge) -> None:
    """A token without the right to label still opens the pull request; the warning names the label."""
    forge.open_pull_request(NEW)
    github.faults.append(Fault(403, b'{"message": "Resource not accessible"}', method="POST"))

    warned = forge.open_pull_request(replace(NEW, labels=("bug",)))

    assert warned.number == 1
    assert warned.warnings[0].startswith("labels were not set (bug): ")
    assert "Resource not accessible" in warned.warnings[0]


def test_a_label_is_tried_again_when_github_is_busy(github: FakeGitHub, forge: GitHubForge) -> None:
    """A label that only came at a bad moment is worth a retry."""
    forge.open_pull_request(NEW)
    github.faults.append(Fault(503, method="POST"))

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
    github: FakeGitHub, forge: GitHubForge, new: NewPullRequest, words: str, remedy: str, *, may_pass: bool
) -> None:
    """A 422 comes with GitHub's own words, and with what to do; what may pass is tried a bounded number of times."""
    github.heads["same"] = SHA
    if new.head == "main":
        github.faults.append(Fault(422, b'{"message": "main is no head", "errors": ["because"]}', method="POST"))

    with pytest.raises(ForgeError, match=words) as refused:
        forge.open_pull_request(new)

    assert remedy in refused.value.remedy
    assert refused.value.retryable is may_pass
    assert not may_pass or (refused.value.most_tries, refused.value.retry_after_seconds) == (30, 2)


@pytest.mark.parametrize(
    ("fault", "error", "words", "seconds"),
    [
        (Fault(401, b'{"message": "Bad credentials"}'), ForgeError, "SEPTET_GITHUB_TOKEN", None),
        (Fault(403, b'{"message": "Resource not accessible"}'), ForgeError, "septet docs forges", None),
        (Fault(404, b'{"message": "Not Found"}'), NotFoundError, "private", None),
        (Fault(410, b'{"message": "Issues are disabled"}'), NotFoundError, "no issues", None),
        (Fault(451, b"<html>"), ForgeError, "", None),
        (Fault(500), ForgeUnavailableError, "", None),
        (Fault(503, b"", {"Retry-After": "7"}), ForgeUnavailableError, "", 7),
        (Fault(503, b"", {"Retry-After": "Wed, 21 Oct"}), ForgeUnavailableError, "", None),
        (Fault(429, b"{}", {"Retry-After": "90"}), ForgeUnavailableError, "", 90),
        (Fault(429, b"{}"), ForgeUnavailableError, "", 60),
        (Fault(429, b"{}", {"Retry-After": "soon"}), ForgeUnavailableError, "", 60),
        (Fault(403, b"{}", {"X-RateLimit-Remaining": "0"}), ForgeUnavailableError, "", 60),
        (Fault(403, b"{}", {"X-RateLimit-Remaining": "0", "Retry-After": "60"}), ForgeUnavailableError, "", 60),
        (Fault(200, b"<html>a proxy</html>"), ForgeUnavailableError, "", None),
        (Fault(200, b'{"number": "one"}'), ForgeUnavailableError, "", None),
        (Fault(200, b"[]"), ForgeUnavailableError, "", None),
    ],
)
def test_a_failure_says_what_to_do(
    github: FakeGitHub,
    forge: GitHubForge,
    fault: Fault,
    error: type[SeptetError],
    words: str,
    seconds: float | None,
) -> None:
    """Every status becomes an error that says whether and when a retry can help, and what a person can do."""
    github.add_issue("Title")
    github.faults.append(fault)

    with pytest.raises(error) as failed:
        forge.issue(1)

    assert issubclass(error, ForgeUnavailableError) == failed.value.retryable
    assert words in failed.value.remedy
    assert seconds == failed.value.retry_after_seconds
    assert github.url in failed.value.message
    assert "good-token" not in f"{failed.value}{failed.value!r}{failed.value.__cause__!r}"
    assert failed.value.__cause__ is None or failed.value.__cause__.__cause__ is not failed.value


def test_a_primary_rate_limit_names_its_end(github: FakeGitHub, forge: GitHubForge) -> None:
    """A used up quota says how long it takes until there is more."""
    github.faults.append(Fault(403, b"{}", {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "4102444800"}))

    with pytest.raises(ForgeUnavailableError) as failed:
        forge.issue(1)

    assert failed.value.retry_after_seconds is not None
    assert failed.value.retry_after_seconds > 1_000_000


def test_a_wrong_token_is_told(github: FakeGitHub) -> None:
    """GitHub's refusal of the token names the setting."""
    with pytest.raises(ForgeError, match="Bad credentials") as refused:
        GitHubForge(github.project, github_api(github.url, "wrong")).find_pull_request("feat-1")

    assert "SEPTET_GITHUB_TOKEN" in refused.value.remedy


def test_a_public_repository_is_read_without_a_token(github: FakeGitHub) -> None:
    """Without a token nothing is claimed to be one."""
    github.add_issue("Title")

    assert GitHubForge(github.project, github_api(github.url)).issue(1).title == "Title"
    assert "authorization" not in github.asked[0].headers


def test_a_host_that_is_not_there_is_worth_another_try() -> None:
    """A port where nobody listens is network trouble."""
    with pytest.raises(ForgeUnavailableError, match="could not be reached"):
        GitHubForge("o/r", github_api("http://127.0.0.1:1")).issue(1)


def test_an_http_client_is_imported_only_when_a_forge_is_asked() -> None:
    """A worker with local repositories alone does not pay for the client's import."""
    code = "import sys, septet.forges.choose; sys.exit('httpx' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_open_issues_are_listed_by_their_label(github: FakeGitHub, forge: GitHubForge) -> None:
    """Over pages, without closed ones, pull requests and others; comments are not asked for."""
    for number in range(1, 252):
        github.add_issue(f"Issue {number}", "Body.", ("go",) if number != 7 else ("stay",))
    github.issues[9]["state"] = "closed"
    forge.open_pull_request(replace(NEW, labels=("go",)))
    github.asked.clear()
    found = forge.open_issues("go")
    assert [issue.number for issue in found] == [number for number in range(1, 252) if number not in {7, 9}]
    assert (found[0].title, found[0].body, found[0].labels) == ("Issue 1", "Body.", ("go",))
    assert len(github.asked) == 3
    assert forge.open_issues("none") == ()


def test_a_label_of_too_many_issues_is_refused(github: FakeGitHub, forge: GitHubForge) -> None:
    """More than a thousand are no list for one pipeline."""
    for number in range(1001):
        github.add_issue(f"Issue {number}", "", ("go",))
    with pytest.raises(InvalidInputError, match="more than 1000"):
        forge.open_issues("go")


def test_issues_are_found_by_their_numbers(github: FakeGitHub, forge: GitHubForge) -> None:
    """Those that there are, closed ones too; a pull request is refused, and a refusal is not taken for a gap."""
    github.add_issue("First", None)
    github.add_issue("Second")
    github.issues[2]["state"] = "closed"
    github.add_comment(1, "Not asked for.")
    found = forge.find_issues([2, 9, 1])
    assert [(issue.number, issue.state, issue.comments) for issue in found] == [(2, "closed", ()), (1, "open", ())]
    number = forge.open_pull_request(NEW).number
    with pytest.raises(InvalidInputError, match="is a pull request"):
        forge.find_issues([number])
    github.faults.append(Fault(500))
    with pytest.raises(ForgeUnavailableError):
        forge.find_issues([1])
