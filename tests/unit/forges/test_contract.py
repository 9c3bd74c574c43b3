"""The contract of every forge, checked for three forges over HTTP on loopback with their real clients."""

import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from fakes.forges.connecting import connected
from fakes.forges.github import GitHubFake
from fakes.forges.gitlab import GitLabFake
from fakes.forges.state import Fault, ForgeFake, PullState

from septet.errors import (
    ForgeError,
    ForgeLagsError,
    ForgeUnavailableError,
    InvalidInputError,
    NotFoundError,
)
from septet.forges.forge import CommentedForge, FollowedForge, Forge
from septet.forges.http.pauses import PAUSES
from septet.forges.values import NewPullRequest, marker_of, pull_request_number

SHA = "b" * 40
NEW = NewPullRequest("feat-1", "main", "A thing", "Body.\n\nCloses #1", "wo-1")

pytestmark = pytest.mark.law


@pytest.fixture
def forge(fake: ForgeFake, tmp_path: Path) -> Forge:
    """Return the forge with the client that a worker uses."""
    return connected(fake, tmp_path)


def test_an_issue_is_read_with_whose_words_are_whose(fake: ForgeFake, forge: Forge) -> None:
    """The forge returns an issue's title, body, labels and comments, and each author's role in the repository."""
    number = fake.add_issue("Größe", "Body.", ("bug", "ui"))
    fake.add_comment(number, "First.", "ada")
    fake.add_comment(number, "Second.", "eve")

    issue = forge.issue(number)

    assert (issue.number, issue.title, issue.body, issue.state) == (1, "Größe", "Body.", "open")
    assert issue.labels == ("bug", "ui")
    assert [(each.author, each.body, each.standing) for each in issue.comments] == [
        ("ada", "First.", fake.owner_standing),
        ("eve", "Second.", "none"),
    ]
    assert forge.name == fake.name


def test_all_comments_are_read_in_order(fake: ForgeFake, forge: Forge) -> None:
    """The forge returns the comments of several pages from the oldest to the newest."""
    number = fake.add_issue("Title")
    for count in range(230):
        fake.add_comment(number, str(count))

    assert [comment.body for comment in forge.issue(number).comments] == [str(count) for count in range(230)]


def test_what_is_not_there_is_named(forge: Forge) -> None:
    """The error for an unknown issue or pull request names its number, and the remedy says what to check."""
    with pytest.raises(NotFoundError, match="request 9 of o/foo.js"):
        forge.pull_request(9)
    with pytest.raises(NotFoundError, match="issue 7 of o/foo.js") as refused:
        forge.issue(7)
    assert refused.value.remedy


def test_issues_are_found_by_number_and_by_label(fake: ForgeFake, forge: Forge) -> None:
    """The forge returns the known numbers in the requested order, and for a label all open issues that have it."""
    for count in range(120):
        fake.add_issue(f"Issue {count}", labels=("septet",) if count % 2 == 0 else ("other",))
    fake.issues[1].state = "closed"

    assert [issue.number for issue in forge.find_issues((3, 999, 2))] == [3, 2]
    assert [issue.number for issue in forge.open_issues("septet")] == list(range(3, 121, 2))
    assert forge.open_issues("unknown") == ()


def test_a_pull_request_is_opened_once_with_all_that_belongs_to_it(fake: ForgeFake, forge: Forge) -> None:
    """The first request opens the pull request with all fields; a second request returns the same one."""
    new = replace(NEW, draft=True, labels=("septet", "ui"), reviewers=("ada",), assignees=("eve",))
    assert forge.find_pull_request("feat-1") is None

    opened = forge.open_pull_request(new)

    assert (opened.head, opened.base, opened.head_sha, opened.state) == ("feat-1", "main", SHA, "open")
    assert opened.warnings == ()
    assert opened.is_of("wo-1")
    assert pull_request_number(opened.url) == opened.number
    assert forge.open_pull_request(NEW) == opened == forge.find_pull_request("feat-1")
    (pull,) = fake.pulls.values()
    assert (pull.title, pull.draft, pull.labels) == ("A thing", True, ["septet", "ui"])
    assert (pull.reviewers, pull.assignees) == (["ada"], ["eve"])
    assert pull.body == f"Body.\n\nCloses #1\n\n{marker_of('wo-1')}\n"


def test_a_reviewer_who_is_not_there_is_a_warning(fake: ForgeFake, forge: Forge) -> None:
    """A reviewer that the forge does not know causes a warning, and the pull request is opened."""
    assert "reviewers" in forge.open_pull_request(replace(NEW, reviewers=("nobody",))).warnings[0]
    assert len(fake.pulls) == 1


def test_a_pull_request_takes_in_another_work_order(fake: ForgeFake, forge: Forge) -> None:
    """The first call adds the text to the pull request; a second call changes nothing."""
    opened = forge.open_pull_request(NEW)
    for _ in range(2):
        forge.add_to_pull_request(opened.number, replace(NEW, title="More", body="Closes #2", marker="wo-2"))

    body = fake.pulls[opened.number].body
    assert len([asked for asked in fake.asked if asked.method in {"PATCH", "PUT"}]) == 1
    assert body.count("## More") == 1
    assert marker_of("wo-1") in body
    assert forge.pull_request(opened.number).is_of("wo-2")


@pytest.mark.parametrize("state", ["closed", "merged"])
def test_an_ended_pull_request_is_told_and_not_taken_for_open(fake: ForgeFake, forge: Forge, state: str) -> None:
    """A branch with only ended pull requests has no open pull request; the full list has each state."""
    opened = forge.open_pull_request(NEW)
    fake.end_pull(opened.number, "closed" if state == "closed" else "merged")

    assert forge.find_pull_request("feat-1") is None
    assert forge.pull_request(opened.number).state == state
    assert [(each.number, each.state) for each in forge.pull_requests_of("feat-1")] == [(opened.number, state)]
    assert forge.pull_requests_of("feat-9") == ()


def test_work_on_a_fork_is_requested_upstream(fake: ForgeFake, forge: Forge) -> None:
    """A branch of a fork gets one pull request upstream, apart from a branch of that name in the repository."""
    new = replace(NEW, head="feat-2", head_project="me/foo.js")

    opened = forge.open_pull_request(new)

    assert opened == forge.open_pull_request(new) == forge.find_pull_request("feat-2", "me/foo.js")
    assert [pull.head_project for pull in fake.pulls.values()] == ["me/foo.js"]
    assert forge.find_pull_request("feat-2") is None
    assert forge.find_pull_request("feat-2", "you/foo.js") is None
    fake.end_pull(opened.number, "closed")
    assert forge.find_pull_request("feat-2", "me/foo.js") is None
    assert [each.state for each in forge.pull_requests_of("feat-2", "me/foo.js")] == ["closed"]
    assert forge.pull_requests_of("feat-2") == ()


def test_a_fork_is_never_taken_on_trust(fake: ForgeFake, forge: Forge) -> None:
    """The client refuses a repository that is no fork of this repository, and a fork that does not exist."""
    fake.heads["you/other"] = {}
    fake.strangers = frozenset({"you/other"})

    forge.expect_fork("me/foo.js")
    for name in ("you/other", "o/foo.js"):
        with pytest.raises(InvalidInputError, match=f"{name} is not a fork of o/foo.js"):
            forge.expect_fork(name)
    with pytest.raises(NotFoundError, match="the fork nobody/foo.js"):
        forge.expect_fork("nobody/foo.js")


def test_branches_are_listed_by_what_they_begin_with(fake: ForgeFake, forge: Forge) -> None:
    """The forge lists all branches that begin with a prefix, each with its commit, over several pages."""
    fake.heads["o/foo.js"] |= {f"feat-issue-{count}": "d" * 40 for count in range(120)}

    assert {branch.name for branch in forge.branches("feat-issue-")} == {f"feat-issue-{n}" for n in range(120)}
    assert [(branch.name, branch.sha) for branch in forge.branches("feat-1")] == [("feat-1", SHA)]


def test_reviews_and_checks_are_read(fake: ForgeFake, forge: Forge) -> None:
    """The forge returns who approved or requested changes, and which checks failed, passed or still run."""
    opened = forge.open_pull_request(NEW)
    fake.pulls[opened.number].reviews += [("ada", "approved", "Fine."), ("eve", "changes_requested", "No.")]
    fake.statuses[SHA] = [("build", "success"), ("test", "failure"), ("slow", "pending")]

    assert {each.author: each.state for each in forge.reviews(opened.number)} == {
        "ada": "approved",
        "eve": "changes_requested",
    }
    assert {each.name: each.state for each in forge.checks(SHA)} == {
        "build": "success",
        "test": "failure",
        "slow": "pending",
    }
    assert forge.checks("e" * 40) == ()


def test_an_issue_carries_one_comment_of_a_work_order(fake: ForgeFake, forge: Forge) -> None:
    """The client edits its own comment of a work order, and leaves a stranger's copy of the mark alone."""
    number = fake.add_issue("Title")
    fake.add_comment(number, f"Mine. {marker_of('wo-1')}", "eve")
    for words in ("Plan.", "Plan.", "Done."):
        forge.put_comment(number, "wo-1", words)
    forge.put_comment(number, "wo-2", "Another.")

    bodies = [(note.author, note.body.split("\n")[0]) for note in fake.issues[number].notes]
    assert bodies[1:] == [("septet", "Done."), ("septet", "Another.")]
    assert bodies[0] == ("eve", f"Mine. {marker_of('wo-1')}")


def test_an_issue_carries_one_label_of_a_set(fake: ForgeFake, forge: Forge) -> None:
    """A new label replaces the other labels of its set; further labels stay, and a second call changes nothing."""
    number = fake.add_issue("Title", labels=("bug", "septet:blocked", "septet", "a b c"))
    others = ["septet:review", "septet:blocked"]
    for _ in range(2):
        forge.set_label(number, "septet:executing", others)
        asked = len([each for each in fake.asked if each.method != "GET"])

    assert sorted(fake.issues[number].labels) == ["a b c", "bug", "septet", "septet:executing"]
    assert len([each for each in fake.asked if each.method != "GET"]) == asked
    forge.set_label(number, "septet:review", ["septet:executing", "a b c"])
    assert sorted(fake.issues[number].labels) == ["bug", "septet", "septet:review"]
    with pytest.raises((NotFoundError, ForgeError)):
        forge.set_label(99, "septet:review", others)


@pytest.mark.parametrize("fault", [Fault("drop", after=True), Fault(status=502, after=True), Fault("truncated")])
def test_a_label_whose_answer_was_lost_is_looked_up(fake: ForgeFake, forge: Forge, fault: Fault) -> None:
    """After an unclear answer the label is set once, and the call succeeds."""
    number = fake.add_issue("Title", labels=("bug", "septet:executing"))
    fake.repository_labels.append("septet:review")
    method, path = ("PUT", "/issues") if fake.name == "gitlab" else ("DELETE", "/labels")
    fake.faults.append(replace(fault, method=method, path=path))

    forge.set_label(number, "septet:review", ["septet:executing"])

    assert sorted(fake.issues[number].labels) == ["bug", "septet:review"]
    assert fake.seen_faults


UNCLEAR: Final[dict[str, Fault]] = {
    "answer dropped after the work": Fault("drop", method="POST", path="s", after=True),
    "dropped before the work": Fault("drop", method="POST", path="s"),
    "500 after the work": Fault(status=500, method="POST", after=True),
    "502 before the work": Fault(status=502, method="POST"),
    "truncated": Fault("truncated", method="POST"),
    "wrong type": Fault("wrong_type", method="POST"),
    "stale": Fault("stale", method="GET"),
}


@pytest.mark.parametrize("fault", list(UNCLEAR))
def test_an_unclear_answer_leads_to_no_second_pull_request(fake: ForgeFake, forge: Forge, fault: str) -> None:
    """After an unclear answer a few attempts return one pull request, and the forge has no second pull request."""
    fake.faults.append(replace(UNCLEAR[fault]))
    for _ in range(3):
        try:
            opened = forge.open_pull_request(NEW)
        except ForgeUnavailableError:
            continue
        break

    assert [pull.number for pull in fake.pulls.values()] == [opened.number]
    assert fake.seen_faults


def test_a_branch_whose_pull_request_the_forge_hides_is_waited_for(fake: ForgeFake, forge: Forge) -> None:
    """A forge that refuses a second pull request and hides the first causes an error that a retry may solve."""
    forge.open_pull_request(NEW)
    fake.faults.append(Fault("stale", method="GET", times=2))

    with pytest.raises(ForgeUnavailableError):
        forge.open_pull_request(NEW)
    fake.faults.append(Fault("stale", method="GET"))
    assert [forge.open_pull_request(NEW).number] == list(fake.pulls)


@pytest.mark.parametrize("named", ["1", "0", ""])
def test_a_read_that_is_refused_for_a_moment_is_asked_again(fake: ForgeFake, forge: Forge, named: str) -> None:
    """The client repeats a refused read after a short pause; without a time GitHub requires a minute."""
    fake.add_issue("Title")
    headers = {"Content-Type": "text/plain"} | ({"Retry-After": named} if named else {})
    fake.faults.append(Fault(status=429, headers=headers, text="Retry later", method="GET", times=2))
    if fake.name == "github" and not named:
        with pytest.raises(ForgeUnavailableError) as busy:
            forge.issue(1)
        assert busy.value.retry_after_seconds == 60
        return

    began = time.monotonic()
    assert forge.issue(1).title == "Title"
    assert time.monotonic() - began >= (2 if named else 3)
    assert fake.seen_faults


def test_a_write_that_is_refused_for_a_moment_is_told(fake: ForgeFake, forge: Forge) -> None:
    """The client reports a refused write with the seconds to wait, and does not repeat the write by itself."""
    fake.faults.append(Fault(status=429, headers={"Retry-After": "1"}, text="slow down", method="POST"))
    with pytest.raises(ForgeUnavailableError) as busy:
        forge.open_pull_request(NEW)
    assert busy.value.retry_after_seconds == 1
    assert fake.pulls == {}


def test_a_short_pause_that_another_has_met_is_waited_for(fake: ForgeFake, forge: Forge) -> None:
    """A request waits for the end of a short pause that another request has met."""
    fake.add_issue("Title")
    PAUSES.note(fake.url + fake.api_path, fake.token, 1.0)
    began = time.monotonic()
    assert forge.issue(1).title == "Title"
    assert time.monotonic() - began > 0.9


def test_a_limit_that_is_spent_stops_all_who_ask_with_its_key(
    fake: ForgeFake, forge: Forge, tmp_path: Path
) -> None:
    """A spent limit stops all requests with the same key until the limit is renewed; another key still works."""
    fake.add_issue("Title")
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + 600)}
    if fake.name == "gitlab":
        headers = {name.removeprefix("X-"): value for name, value in headers.items()}
    fake.faults.append(Fault(status=429 if fake.name == "gitlab" else 403, headers=headers, text="limit exceeded"))

    pauses = []
    for _ in range(3):
        with pytest.raises(ForgeUnavailableError) as busy:
            connected(fake, tmp_path).issue(1)
        pauses.append(busy.value.retry_after_seconds or 0)

    assert len(fake.asked) == 1
    assert all(500 < pause <= 600 for pause in pauses)
    with pytest.raises(ForgeError, match="401"):
        connected(fake, tmp_path, "another-token").issue(1)


def test_the_forge_says_who_may_write(fake: ForgeFake, forge: Forge) -> None:
    """The forge reports whether an account may push; only a comment of such an account counts as an answer."""
    assert forge.may_write("ada")
    assert not forge.may_write("eve")
    assert not forge.may_write("nobody")
    number = fake.add_issue("A thing")
    forge.put_comment(number, "answer-7", "Done.")
    assert forge.has_comment(number, "answer-7")
    assert not forge.has_comment(number, "answer-70")
    fake.add_comment(number, f"So is mine. {marker_of('answer-70')}", "eve")
    assert not forge.has_comment(number, "answer-70")


def test_what_was_written_since_is_found_in_the_whole_repository(fake: ForgeFake, forge: Forge) -> None:
    """The forge returns newer comments on issues and pull requests from the oldest to the newest."""
    assert isinstance(forge, CommentedForge)
    issue = fake.add_issue("Title")
    fake.heads = {fake.project: {"main": "a" * 40, "feat": "b" * 40}}
    pull = fake.open_pull(fake.project, "feat", "main", "A thing", "")
    assert isinstance(pull, PullState)
    fake.add_comment(issue, "Old.", created_at="2026-01-01T00:00:00Z")
    fake.add_comment(issue, "New.", created_at="2026-03-01T00:00:01Z")
    fake.add_comment(issue, "Gone.", None, created_at="2026-03-01T00:00:02Z") if fake.name == "github" else None
    note = fake.add_pull_note(pull.number, "eve", "On it.")
    note.created_at = "2026-03-01T00:00:03Z"

    found = forge.comments_since(datetime(2026, 3, 1, tzinfo=UTC))

    known = [(each.number, each.is_on_pull_request, each.author, each.body) for each in found]
    gone = [(issue, False, "ghost", "Gone.")] if fake.name == "github" else []
    assert known == [(issue, False, "ada", "New."), *gone, (pull.number, True, "eve", "On it.")]
    assert found[-1].id == note.id


def test_a_wrong_key_is_refused_with_a_remedy(fake: ForgeFake, tmp_path: Path) -> None:
    """The error for a wrong key names the setting and does not contain the key."""
    fake.add_issue("Title")

    with pytest.raises(ForgeError) as refused:
        connected(fake, tmp_path, "wrong-token").issue(1)
    assert not refused.value.retryable
    assert f"SEPTET_{fake.name.upper()}_TOKEN" in refused.value.remedy
    assert "wrong-token" not in str(refused.value)


def test_a_branch_that_is_not_there_is_asked_for_a_bounded_number_of_times(fake: ForgeFake, forge: Forge) -> None:
    """An unknown branch causes an error with a limit of attempts: the forge may learn of a push late."""
    with pytest.raises(ForgeLagsError) as refused:
        forge.open_pull_request(replace(NEW, head="feat-none"))
    assert refused.value.most_tries is not None
    assert refused.value.remedy
    assert fake.pulls == {}


def test_a_push_that_the_forge_does_not_know_yet_is_waited_for(fake: ForgeFake, forge: Forge) -> None:
    """The forge refuses a branch until it knows the push, and then opens one pull request."""
    fake.lags += ["no head"] if fake.name == "gitlab" else ["no head", "no commits"]
    while fake.lags:
        with pytest.raises(ForgeLagsError):
            forge.open_pull_request(NEW)

    assert forge.open_pull_request(NEW).number in fake.pulls
    assert len(fake.pulls) == 1


def test_a_limit_of_which_no_header_tells_is_a_pause_that_grows(
    fake: ForgeFake, forge: Forge, tmp_path: Path
) -> None:
    """Words without a header announce a limit too: all requests with the key wait for a minute."""
    fake.add_issue("Title")
    words = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
    fake.faults.append(Fault(status=403, text=words))

    pauses = []
    for _ in range(3):
        with pytest.raises(ForgeUnavailableError) as busy:
            connected(fake, tmp_path).issue(1)
        pauses.append(busy.value.retry_after_seconds or 0)

    assert len(fake.asked) == 1
    assert all(55 < pause <= 60 for pause in pauses)
    fake.faults.append(Fault(status=403, text="Resource not accessible"))
    with pytest.raises(ForgeError) as refused:
        connected(fake, tmp_path, "another-token").issue(1)
    assert not refused.value.retryable


@pytest.mark.parametrize("draft", [True, False])
def test_a_title_is_as_long_as_the_forge_takes(fake: ForgeFake, forge: Forge, *, draft: bool) -> None:
    """The prefix of a draft counts towards the longest title that the forge takes."""
    opened = forge.open_pull_request(replace(NEW, title="x" * 300, body="y" * 90_000, draft=draft))

    before = {"github": 0, "gitlab": 7, "gitea": 5}[fake.name] if draft else 0
    assert len(fake.pulls[opened.number].title) == (256 if fake.name == "github" else 255) - before
    assert fake.pulls[opened.number].draft is draft


@pytest.mark.parametrize("fake", [GitHubFake, GitLabFake], ids=lambda fake: fake.name, indirect=True)
def test_an_issue_that_has_moved_is_told_with_its_new_address(fake: ForgeFake, forge: Forge) -> None:
    """The error for a moved issue names its new address, and the client writes nothing. Gitea moves no issue."""
    for count in range(5):
        fake.add_issue(f"Own {count}")
    number = fake.add_issue("Moved")
    fake.moved_issues[number] = ("o/other", 5)

    for ask in (forge.issue, lambda number: forge.find_issues((number,))):
        with pytest.raises(
            InvalidInputError, match="issue: 6 of o/foo.js has moved: it is issue 5 of o/other"
        ) as told:
            ask(number)
        assert f"--repo {fake.url}/o/other --issue 5" in told.value.remedy
    with pytest.raises(InvalidInputError, match="has moved"):
        forge.set_label(number, "septet:executing", ())
    if fake.name == "github":
        with pytest.raises(InvalidInputError, match="has moved"):
            forge.put_comment(number, "wo-1", "Plan.")
    assert not any(issue.notes or issue.labels for issue in fake.issues.values())


def renamed(fake: ForgeFake, tmp_path: Path) -> Forge:
    """Return a forge whose client knows the repository by an old name."""
    fake.old_names = ("old/name",)
    now, fake.project = fake.project, "old/name"
    forge = connected(fake, tmp_path)
    fake.project = now
    return forge


def test_a_repository_that_was_renamed_is_told_with_its_new_name(fake: ForgeFake, tmp_path: Path) -> None:
    """The error for a renamed repository names the new name, and work on an issue does not begin."""
    forge, number = renamed(fake, tmp_path), fake.add_issue("Title", labels=("go",))

    with pytest.raises(ForgeUnavailableError, match="old/name is named o/foo.js on .* now"):
        forge.issue(number)
    for ask in (forge.issue, lambda number: forge.find_issues((number,)), lambda _: forge.open_issues("go")):
        with pytest.raises(InvalidInputError, match=r"repository: old/name is named o/foo.js now") as told:
            ask(number)
        assert f"--repo {fake.url}/o/foo.js" in told.value.remedy


def test_a_repository_that_is_renamed_meanwhile_keeps_its_pull_request(fake: ForgeFake, tmp_path: Path) -> None:
    """The client finds the pull request under the repository's new name, and opens no second pull request."""
    opened = connected(fake, tmp_path).open_pull_request(NEW)
    forge = renamed(fake, tmp_path)

    with pytest.raises(ForgeUnavailableError) as told:
        forge.find_pull_request("feat-1")
    assert told.value.retry_after_seconds == pytest.approx(0.2)
    assert forge.find_pull_request("feat-1") == opened == forge.open_pull_request(NEW)
    assert forge.pull_request(opened.number) == opened == forge.pull_requests_of("feat-1")[0]
    assert isinstance(forge, FollowedForge)
    forge.conversation(opened.number).put_comment("wo-1", "On it.")
    assert len(fake.pulls) == len(fake.pulls[opened.number].notes) == 1


def test_an_answer_about_something_else_is_not_taken(fake: ForgeFake, forge: Forge) -> None:
    """The client refuses an answer with another number than the requested number."""
    number = fake.add_issue("Title")
    fake.issues[99] = fake.issues[number]
    opened = forge.open_pull_request(NEW)
    fake.pulls[98] = fake.pulls[opened.number]

    for ask in (lambda: forge.issue(99), lambda: forge.pull_request(98)):
        with pytest.raises(InvalidInputError):
            ask()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"<html><title>Sign in</title></html>", "answered a page “Sign in” in place of JSON"),
        (b"", "the answer was empty"),
        (b'{"error": "quota"}', "the answer began with"),
    ],
)
def test_an_answer_that_is_not_the_forges_is_told_as_what_it_is(
    fake: ForgeFake, forge: Forge, content: bytes, words: str
) -> None:
    """The client reports a login page, an empty answer and an error with status 200; the next read succeeds."""
    number = fake.add_issue("Title")
    fake.faults.append(Fault(status=200, body=content))

    with pytest.raises(ForgeUnavailableError, match=words):
        forge.issue(number)
    assert forge.issue(number).title == "Title"
