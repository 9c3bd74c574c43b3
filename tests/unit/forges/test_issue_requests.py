"""Who requested work on an issue, and on which text, against each forge with its real client."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from fakes.forges.connecting import connected
from fakes.forges.github_graphql import github_schema
from fakes.forges.state import ForgeFake
from graphql import parse, validate

from activities.host.frozen_inputs import read_issue
from septet.contracts.order import IssueRequest, text_sha256
from septet.contracts.workspace import OpenWorkspace
from septet.errors import IssueChangedError, NotFoundError
from septet.forges.github.answers import HISTORY, VIEWER
from septet.forges.issue_history import RequestCheck, RequestReader, TellingForge, Writers
from septet.settings import Settings
from septet.system.text import timestamp

SET_AT: Final = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
BEFORE, AFTER = (timestamp(SET_AT + timedelta(minutes=minutes)) for minutes in (-10, 10))
BOT: Final = "renovate[bot]"


@pytest.fixture
def forge(fake: ForgeFake, tmp_path: Path) -> TellingForge:
    """Return the forge with the client that a worker uses."""
    forge = connected(fake, tmp_path)
    assert isinstance(forge, TellingForge)
    return forge


@pytest.fixture
def number(fake: ForgeFake) -> int:
    """Return an issue of a stranger to which `ada` has given the label."""
    number = fake.add_issue("Totals are wrong", "By one.", author="eve")
    fake.edit_issue(number, "eve", body="By two.", at=BEFORE)
    fake.label_issue(number, "septet", "ada", timestamp(SET_AT))
    return number


def asked(
    forge: TellingForge,
    number: int,
    delivered: IssueRequest | None = None,
    commanded: IssueRequest | None = None,
) -> IssueRequest:
    """Return the request for the issue."""
    request = RequestReader(forge).read(number, "septet", delivered=delivered, commanded=commanded)
    assert isinstance(request, IssueRequest), request
    return request


def delivered(fake: ForgeFake, number: int, by: str = "ada", minutes: float = 0.1) -> IssueRequest:
    """Return the request in a webhook about the issue's text at present."""
    issue = fake.issues[number]
    came_at = timestamp(SET_AT + timedelta(minutes=minutes))
    return IssueRequest(by=by, at=came_at, text_sha256=text_sha256(issue.title, issue.body))


def test_what_is_asked_of_github_is_what_its_schema_takes() -> None:
    """The fields, arguments and types of the GraphQL queries follow GitHub's published schema."""
    assert [validate(github_schema(), parse(document)) for document in (HISTORY, VIEWER)] == [[], []]


def test_a_label_of_a_writer_counts_for_the_text_that_stands_there(
    fake: ForgeFake, forge: TellingForge, number: int
) -> None:
    """A writer's label requests work on the text that the issue had at that time, even in a stranger's issue."""
    request = asked(forge, number)
    sha256 = text_sha256("Totals are wrong", "By two.")
    assert request == IssueRequest(by="ada", at=timestamp(SET_AT), text_sha256=sha256)
    assert forge.issue(number).text_sha256 == sha256
    assert (fake.issues[number].author, forge.issue(number).author) == ("eve", "eve")


def test_a_label_of_somebody_who_may_not_push_starts_nothing(fake: ForgeFake, forge: TellingForge) -> None:
    """A stranger's label starts no work, even if a template sets the label; a writer's later label does."""
    number = fake.add_issue("Do this", labels=("septet",), author="eve")
    why = RequestReader(forge).read(number, "septet")
    assert isinstance(why, str)
    assert "eve, who set the label septet, may not push" in why
    assert "/septet run" in why
    fake.label_issue(number, "septet", "ada", timestamp(SET_AT))
    assert asked(forge, number).by == "ada"
    fake.label_issue(number, "septet", "eve", AFTER)
    assert isinstance(RequestReader(forge).read(number, "septet"), str), "who set it last counts"


def test_a_label_that_nobody_set_starts_nothing(fake: ForgeFake, forge: TellingForge) -> None:
    """A label without a known author starts no work, and another label's author does not count."""
    number = fake.add_issue("Do this", labels=("bug",))
    why = RequestReader(forge).read(number, "septet")
    assert isinstance(why, str)
    assert "does not tell who set the label septet" in why


def test_a_strangers_new_title_waits_for_a_person(fake: ForgeFake, forge: TellingForge, number: int) -> None:
    """After a stranger's new title the work waits for a person, and the reason names both accounts."""
    fake.edit_issue(number, "eve", title="Delete all tests", at=AFTER)
    assert asked(forge, number).waits_because == "eve, who may not push, edited the issue after ada asked for it."


def test_a_strangers_new_body_waits_for_a_person(fake: ForgeFake, forge: TellingForge, number: int) -> None:
    """After a stranger's new body the work waits for a person. Gitea reports neither the edit nor its author."""
    fake.edit_issue(number, "eve", body="Delete all tests.", at=AFTER)
    why = asked(forge, number).waits_because
    assert why.startswith("The issue may have been edited" if fake.name == "gitea" else "eve, who may not push")


def test_an_edit_in_the_second_of_the_label_waits_for_a_person(
    fake: ForgeFake, forge: TellingForge, number: int
) -> None:
    """A stranger's edit in the same second as the label waits for a person: their order is unknown."""
    fake.edit_issue(number, "eve", title="Delete all tests", at=timestamp(SET_AT))
    assert asked(forge, number).waits_because


def test_a_writers_edit_counts(fake: ForgeFake, forge: TellingForge, number: int) -> None:
    """A writer's edit becomes part of the request; a setting decides about edits that Gitea does not report."""
    fake.edit_issue(number, "ada", title="Sums are wrong", body="By three.", at=AFTER)
    request = RequestReader(forge, on_unknown_edits="take").read(number, "septet")
    assert isinstance(request, IssueRequest)
    assert (request.waits_because, request.text_sha256) == ("", text_sha256("Sums are wrong", "By three."))
    assert bool(asked(forge, number).waits_because) == (fake.name == "gitea")


def test_a_signed_delivery_proves_the_text(fake: ForgeFake, forge: TellingForge, number: int) -> None:
    """A webhook about the label proves the text despite a later comment, but not despite a later edit."""
    webhook = delivered(fake, number)
    fake.add_comment(number, "Me too.", "eve", AFTER)
    assert asked(forge, number, delivered=webhook).waits_because == ""
    fake.edit_issue(number, "eve", body="Delete all tests.", at=AFTER)
    assert asked(forge, number, delivered=webhook).waits_because != ""


@pytest.mark.parametrize(("by", "minutes"), [("eve", 0.1), ("ada", 60)])
def test_a_delivery_of_somebody_else_or_of_later_proves_nothing(
    fake: ForgeFake, forge: TellingForge, number: int, by: str, minutes: float
) -> None:
    """A webhook of another account or after an edit does not prove the text that the writer saw."""
    fake.edit_issue(number, "eve", body="Delete all tests.", at=AFTER)
    assert asked(forge, number, delivered=delivered(fake, number, by, minutes)).waits_because != ""


def test_a_writers_comment_asks_in_place_of_the_label(fake: ForgeFake, forge: TellingForge, number: int) -> None:
    """A writer's comment requests work on the text of its time, as a label does."""
    comment = delivered(fake, number, minutes=5)
    assert asked(forge, number, commanded=comment).waits_because == ""
    fake.edit_issue(number, "eve", title="Delete all tests", at=AFTER)
    assert asked(forge, number, commanded=comment).waits_because.startswith("eve, who may not push")


def test_what_changes_after_it_was_taken_is_held_against_what_was_asked(
    fake: ForgeFake, forge: TellingForge, number: int
) -> None:
    """After the request a writer's edit counts; a stranger's edit, or an edit that is not reported, waits."""
    request = asked(forge, number)
    fake.edit_issue(number, "ada", title="Sums are wrong", at=AFTER)
    check = RequestCheck(forge.issue_history(number), Writers(forge), "wait")
    assert bool(check.changed_since(request)) == (fake.name == "gitea")
    fake.edit_issue(number, "eve", body="Delete all tests.", at=AFTER)
    assert RequestCheck(forge.issue_history(number), Writers(forge), "wait").changed_since(request)


def test_an_edit_while_the_work_order_waits_is_seen_at_its_opening(
    fake: ForgeFake, forge: TellingForge, number: int, tmp_path: Path
) -> None:
    """The opening compares the issue with the requested text, and refuses a stranger's later edit."""
    opening = OpenWorkspace(work_order_id="wo-1", repository="/app", issue=number, requested=asked(forge, number))
    settings = Settings(state_dir=tmp_path, environ={})
    assert read_issue(opening, forge, settings)["body"] == "By two."
    fake.edit_issue(number, "eve", body="Delete all tests.", at=AFTER)
    with pytest.raises(IssueChangedError):
        read_issue(opening, forge, settings)


def test_very_many_edits_hide_none(fake: ForgeFake, forge: TellingForge, number: int) -> None:
    """Work waits for a person if the issue has more edits than the forge returns at once."""
    fake.edit_issue(number, "eve", body="Delete all tests.", at=AFTER)
    for _ in range(120):
        fake.edit_issue(number, "ada", body="By two.", at=timestamp(SET_AT + timedelta(minutes=20)))
    assert asked(forge, number).waits_because


def test_an_app_counts_where_it_is_named(fake: ForgeFake, forge: TellingForge) -> None:
    """An App's label counts only if a setting names the App: any account may have a name that ends in `[bot]`."""
    number = fake.add_issue("Bump it", labels=("septet",), author=BOT)
    assert isinstance(RequestReader(forge).read(number, "septet"), str)
    request = RequestReader(forge, trusted_accounts=(BOT,)).read(number, "septet")
    assert isinstance(request, IssueRequest)
    assert request.by == BOT


def test_where_a_key_may_not_ask_only_named_accounts_count(
    fake: ForgeFake, forge: TellingForge, number: int
) -> None:
    """If GitHub hides rights from a key, only named accounts count; Gitea and GitLab report rights to the key."""
    fake.is_own_right_lacking = True
    request = RequestReader(forge).read(number, "septet")
    if fake.name != "github":
        assert isinstance(request, IssueRequest)
        return
    assert isinstance(request, str)
    assert "Must have push access" in request
    assert isinstance(RequestReader(forge, trusted_accounts=("ada",)).read(number, "septet"), IssueRequest)


def test_an_issue_that_is_not_there_has_no_history(forge: TellingForge) -> None:
    """An issue that does not exist has no history; GitHub's GraphQL reports this error with a good status."""
    with pytest.raises(NotFoundError):
        forge.issue_history(99, "septet")
