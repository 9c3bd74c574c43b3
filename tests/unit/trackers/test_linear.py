"""The client of Linear: valid documents, and no duplicate after a refusal, a lost answer or a limit."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from fakes.trackers.linear import ADA, APP, EVE, Fault, LinearFake, serving_linear

from septet.contracts.tracker import SessionMessage, TrackedIssue
from septet.errors import NotFoundError, TrackerError, TrackerUnavailableError
from septet.forges.http.pauses import PAUSES
from septet.trackers.linear.api import LinearApi
from septet.trackers.linear.tracker import LinearTracker
from septet.trackers.tracker import IssueMark, LabelledIssue, LabelSetter

Ask = Callable[[LinearTracker, LinearFake], Any]


@pytest.fixture
def linear() -> Iterator[LinearFake]:
    with serving_linear(LinearFake()) as fake:
        fake.delegate(fake.add_issue("Totals are wrong", "By one."))
        yield fake
        PAUSES.clear()


@pytest.fixture
def tracker(linear: LinearFake) -> LinearTracker:
    return LinearTracker(LinearApi(linear.token, linear.url))


def message(linear: LinearFake, key: str = "k") -> SessionMessage:
    issue = TrackedIssue(tracker="linear", id=linear.issues[0]["id"], session=next(iter(linear.sessions)))
    return SessionMessage(issue=issue, key=key, kind="thought", text="Looking.")


def _mark(tracker: LinearTracker, _: LinearFake) -> None:
    tracker.put_mark(tracker.read_issue("ENG-1"), IssueMark("wo-linear-eng-1", "me"))


def _say(tracker: LinearTracker, linear: LinearFake) -> None:
    tracker.say(message(linear))


def _attach(tracker: LinearTracker, linear: LinearFake) -> None:
    tracker.attach("ENG-1", next(iter(linear.sessions)), "https://example.com/pull/1", "Pull request")


@pytest.mark.parametrize("lost", [Fault("mutation", drops=True, after=True), Fault("mutation", 502, after=True)])
@pytest.mark.parametrize("ask", [_mark, _say, _attach])
def test_what_was_done_before_the_answer_was_lost_is_there_once(
    linear: LinearFake, tracker: LinearTracker, ask: Ask, lost: Fault
) -> None:
    """A mutation with a lost answer is sent again and leaves one attachment or activity."""
    linear.faults.append(replace(lost))
    with pytest.raises(TrackerUnavailableError):
        ask(tracker, linear)
    ask(tracker, linear)
    ask(tracker, linear)
    assert len(linear.attachments) + len(linear.activities) == 1
    assert len(linear.sessions[next(iter(linear.sessions))].get("externalLinks", [])) <= 1


def test_a_read_that_is_refused_for_a_moment_is_asked_again(linear: LinearFake, tracker: LinearTracker) -> None:
    """The client repeats a refused read after a short pause, and reports a refused mutation."""
    headers = {"retry-after": "1"}
    linear.faults.append(Fault("query Issue", 400, code="RATELIMITED", headers=headers))
    assert tracker.read_issue("ENG-1").title == "Totals are wrong"
    linear.faults.append(Fault("mutation", 429, headers=headers))
    with pytest.raises(TrackerUnavailableError) as limited:
        tracker.say(message(linear))
    assert limited.value.retry_after_seconds == 1


def test_a_limit_is_waited_for_until_its_reset(linear: LinearFake, tracker: LinearTracker) -> None:
    """RATELIMITED causes a pause until the reset of the spent budget, without another request."""
    headers = {
        "x-ratelimit-requests-remaining": "12",
        "x-ratelimit-requests-reset": str(int((time.time() + 9000) * 1000)),
        "x-ratelimit-complexity-remaining": "0",
        "x-ratelimit-complexity-reset": str(int((time.time() + 100) * 1000)),
    }
    linear.faults.append(Fault("query Issue", 400, code="RATELIMITED", headers=headers))
    with pytest.raises(TrackerUnavailableError) as limited:
        tracker.read_issue("ENG-1")
    assert limited.value.retry_after_seconds == pytest.approx(100, abs=60)
    asked = len(linear.asked)
    with pytest.raises(TrackerUnavailableError) as waits:
        tracker.say(message(linear))
    assert waits.value.retry_after_seconds == pytest.approx(100, abs=60)
    assert len(linear.asked) == asked, "it was asked nothing"


@pytest.mark.parametrize("fault", [Fault("query", 503), Fault("query", 200), Fault("query", drops=True)])
def test_an_answer_that_is_none_is_worth_another_try(
    linear: LinearFake, tracker: LinearTracker, fault: Fault
) -> None:
    """A page of a proxy and a broken connection cause an error, and the next read succeeds."""
    linear.faults.append(replace(fault))
    with pytest.raises(TrackerUnavailableError):
        tracker.read_issue("ENG-1")
    assert tracker.read_issue("ENG-1").title == "Totals are wrong"


def test_what_is_not_there_and_who_may_not_ask_are_told_apart(linear: LinearFake, tracker: LinearTracker) -> None:
    """A missing issue, a missing session and a wrong key cause different errors without a retry."""
    with pytest.raises(NotFoundError, match="Entity not found: Issue"):
        tracker.read_issue("ENG-99")
    gone = message(linear)
    gone = gone.model_copy(update={"issue": gone.issue.model_copy(update={"session": "gone"})})
    with pytest.raises(NotFoundError, match="AgentSession"):
        tracker.say(gone)
    with pytest.raises(TrackerError, match="Authentication") as refused:
        LinearTracker(LinearApi("lin_api_wrong", linear.url)).read_issue("ENG-1")
    assert "SEPTET_LINEAR_TOKEN" in refused.value.remedy
    assert not refused.value.retryable


def test_only_an_own_attachment_is_a_mark(linear: LinearFake, tracker: LinearTracker) -> None:
    """Only an attachment of our own account is a mark, and the oldest mark counts."""
    issue = tracker.read_issue("ENG-1")
    tracker.put_mark(issue, IssueMark("wo-linear-eng-1", "theirs"))
    linear.attachments[0]["creator"] = ADA
    assert tracker.find_mark("ENG-1") is None
    tracker.put_mark(issue, IssueMark("wo-second", "second"))
    linear.attachments[1]["createdAt"] = "2026-02-02T00:00:00.000Z"
    tracker.put_mark(issue, IssueMark("wo-first", "first"))
    linear.attachments[2]["createdAt"] = "2026-02-01T00:00:00.000Z"
    assert tracker.find_mark("ENG-1") == IssueMark("wo-first", "first")


def test_an_issue_is_bounded_and_says_whose_words_it_holds(linear: LinearFake, tracker: LinearTracker) -> None:
    """An issue has the newest comments with author and role, within a limit, and a note replaces older ones."""
    comments = [
        {"body": "old" * 100_000, "createdAt": "2026-01-01T00:00:00.000Z", "user": ADA},
        {"body": "from Slack", "createdAt": "2026-01-02T00:00:00.000Z", "externalUser": {"name": "Bo"}},
        {"body": "hi", "createdAt": "2026-01-03T00:00:00.000Z", "user": {**ADA, "guest": True}},
        {"body": "beep", "createdAt": "2026-01-04T00:00:00.000Z", "botActor": {"name": "CI"}},
    ]
    linear.add_issue("One\nline", "x" * 300_000)
    assert len(tracker.read_issue("ENG-2").body) < 263_000
    linear.add_issue("One\nline", comments=comments, labels=("bug", "bug"))
    issue = tracker.read_issue("ENG-3")
    told = [(each.author, each.standing, each.body) for each in issue.comments]
    assert told[0][:2] == ("septet", "")
    assert told[1:] == [("Bo", "external", "from Slack"), ("ada", "guest", "hi"), ("CI", "app", "beep")]
    assert (issue.title, issue.labels) == ("One line", ("bug",))
    assert issue.as_agents_see_it()["number"] == ""


def test_an_issue_that_somebody_has_begun_stays_where_it_is(linear: LinearFake, tracker: LinearTracker) -> None:
    """An issue that is not started moves to the first started state, and a completed issue stays."""
    tracker.mark_started("ENG-1")
    first = min(linear.states_of("started"), key=lambda each: float(each["position"]))
    assert linear.issues[0]["state"] is first
    linear.issues[0]["state"] = done = linear.states_of("completed")[0]
    tracker.mark_started("ENG-1")
    assert linear.issues[0]["state"] is done


def test_open_issues_of_a_team_are_found_by_their_label_with_whose_they_are(
    linear: LinearFake, tracker: LinearTracker
) -> None:
    """The client finds a team's open labelled issues with their marks, oldest first, over several pages."""
    linear.page = 2
    for name in ("free", "taken", "mine", "theirs", "closed", "elsewhere", "unmarked"):
        linear.add_issue(name, labels=("septet", "bug"))
    _, free, taken, mine, theirs, closed, elsewhere, unmarked = linear.issues
    linear.add_issue("No label", labels=("Septet",))
    tracker.put_mark(tracker.read_issue(taken["id"]), IssueMark("wo-linear-eng-3", "septet-intake-1"))
    mine["delegate"], theirs["delegate"] = APP, {**APP, "id": "another"}
    closed["state"] = linear.states_of("canceled")[0]
    elsewhere["team"] = {**elsewhere["team"], "key": "OPS"}
    tracker.put_mark(tracker.read_issue(unmarked["id"]), IssueMark("wo-linear-eng-8", "x"))
    linear.attachments[-1]["creator"] = ADA

    found = tracker.open_issues("ENG", "septet")

    assert found == (
        LabelledIssue(int(free["number"])),
        LabelledIssue(int(taken["number"]), IssueMark("wo-linear-eng-3", "septet-intake-1")),
        LabelledIssue(int(mine["number"])),
        LabelledIssue(int(unmarked["number"])),
    )


@pytest.mark.parametrize(
    ("by", "setter", "refusal"),
    [
        ({"actor": ADA}, LabelSetter("ada", "member"), ""),
        ({"actor": APP}, LabelSetter("septet", "member"), ""),
        ({"actor": EVE}, LabelSetter("eve", "guest"), "eve, who set the label septet, is a guest of the workspace."),
        ({"botActor": {"name": "GitHub", "type": "github"}}, LabelSetter("GitHub", "app"), ""),
        ({"botActor": {"type": "slack"}}, LabelSetter("", "app"), ", who set the label septet, is an app."),
        ({"actor": {**APP, "id": "other"}}, LabelSetter("septet", "app"), "septet, who set the label septet, is an app."),
        ({"actor": {**EVE, "displayName": "github"}}, LabelSetter("github", "guest"), "github, who set the label septet, is a"),
        ({}, LabelSetter(), "the tracker does not tell who set the label septet."),
    ],
    ids=["member", "own app", "guest", "named app", "app", "other app", "guest with an app's name", "automation"],
)  # fmt: skip
def test_a_label_counts_where_a_member_has_set_it(
    linear: LinearFake, tracker: LinearTracker, by: dict[str, Any], setter: LabelSetter, refusal: str
) -> None:
    """A label of a member or of a named app counts; a guest's, another app's or an unknown author's does not."""
    linear.set_label(linear.issues[0], "septet", **by)
    assert tracker.label_setter("ENG-1", "septet") == setter
    told = setter.refusal("septet", ("github",))
    assert told.startswith(refusal) if refusal else told == ""


def test_of_many_changes_the_last_that_set_the_label_counts(linear: LinearFake, tracker: LinearTracker) -> None:
    """The last change that set the label counts, or the issue's creator if no change set the label."""
    linear.page = 2
    for name, creator in (("Made by a guest", EVE), ("Made from outside", None), ("Made by a member", ADA)):
        linear.add_issue(name, labels=("septet",), creator=creator)
    assert [tracker.label_setter(f"ENG-{number}", "septet").standing for number in (2, 3, 4)] == [
        "guest",
        "",
        "member",
    ]
    issue = linear.issues[0]
    for actor in (EVE, ADA):
        issue["change"](actor=actor, toTitle="Another")
        linear.set_label(issue, "septet", actor=actor)
        linear.set_label(issue, "bug", actor=EVE)
    assert tracker.label_setter("ENG-1", "septet") == LabelSetter("ada", "member")
    issue["change"](actor=EVE, removedLabelIds=["x"])
    linear.set_label(issue, "septet", actor=EVE)
    assert tracker.label_setter("ENG-1", "septet") == LabelSetter("eve", "guest")


def test_of_a_history_without_end_nobody_is_told(linear: LinearFake, tracker: LinearTracker) -> None:
    """A history longer than the limit of pages names no author of the label."""
    linear.page = 1
    for _ in range(21):
        linear.issues[0]["change"](actor=EVE, toTitle="Another")
    assert tracker.label_setter("ENG-1", "septet") == LabelSetter()
    linear.set_label(linear.issues[0], "septet", actor=ADA)
    assert tracker.label_setter("ENG-1", "septet") == LabelSetter(), "a later change may be among those not read"


def test_who_works_on_an_issue_is_its_delegate(linear: LinearFake, tracker: LinearTracker) -> None:
    """An issue without a delegate gets this app as delegate, and an issue of another agent stays unchanged."""
    linear.issues[0]["state"] = linear.states_of("started")[0]
    tracker.mark_started("ENG-1")
    assert linear.issues[0]["delegate"] is APP
    asked = len(linear.asked)
    tracker.mark_started("ENG-1")
    assert len(linear.asked) == asked + 1, "nothing was left to change"
    other = {**APP, "id": "another"}
    linear.add_issue("Theirs")["delegate"] = other
    tracker.mark_started("ENG-2")
    assert linear.issues[1]["delegate"] is other
    assert linear.issues[1]["state"]["type"] == "started"


def test_the_token_of_an_app_is_a_bearer_token(linear: LinearFake) -> None:
    """An app's token is sent as a bearer token, a person's key as it is; neither is in the client's `repr`."""
    linear.token = "Bearer lin_oauth_1"  # noqa: S105 -- of a fake on loopback
    api = LinearApi("lin_oauth_1", linear.url)
    assert LinearTracker(api).read_issue("ENG-1").key == "ENG-1"
    assert "lin_oauth_1" not in repr(api)


def test_a_persons_key_makes_nobody_delegate(linear: LinearFake, tracker: LinearTracker) -> None:
    """With a personal key the issue gets no delegate, since only an app can be a delegate."""
    linear.viewer = ADA
    tracker.mark_started("ENG-1")
    assert (linear.issues[0].get("delegate"), linear.issues[0]["state"]["type"]) == (None, "started")
