"""What people reply in a session selects a verb, a plan and a step, and nothing else."""

import pytest

from septet.contracts.names import Step
from septet.errors import InvalidInputError
from septet.settings import Settings
from septet.trackers.choose import repository_of, tracker_for
from septet.trackers.tracker import TrackerIssue
from septet.trackers.words import parse_reply, what_is_missing

SHA = "a" * 64


@pytest.mark.parametrize(
    ("body", "verb", "words"),
    [
        (f"approve {SHA}", "approve", ""),
        (f"Approve: {SHA.upper()}", "approve", ""),
        (f"/septet approve {SHA} fine", "approve", "fine"),
        ("reject use the other file", "reject", "use the other file"),
        ("Reject,\nuse the other file", "reject", "use the other file"),
        ("cancel", "cancel", ""),
        ("retry", "retry", ""),
        ("run it", "unknown", ""),
        ("I approve of this", "unknown", ""),
        ("approved", "unknown", ""),
        ("", "unknown", ""),
        ("retry rm -rf /", "unknown", "-rf /"),
    ],
)
def test_a_reply_begins_with_its_verb(body: str, verb: str, words: str) -> None:
    """A verb first, in any case, and words; all else is talk."""
    command = parse_reply(body)
    assert (command.verb, command.words) == (verb, words)


def test_a_plan_and_a_step_are_named() -> None:
    """A plan is approved by its SHA-256 alone, a rejection needs words, and a step is one of the seven."""
    assert parse_reply(f"approve {SHA}").plan_sha256 == SHA
    assert parse_reply("retry build_plan").step is Step.BUILD_PLAN
    missing = [what_is_missing(parse_reply(body)) for body in ("approve", "reject", "hello", "retry", "cancel")]
    assert ["PLAN_SHA256" in missing[0], "wrong" in missing[1], "Reply with" in missing[2]] == [True] * 3
    assert missing[3:] == ["", ""]


def test_the_settings_say_where_the_code_of_an_issue_lives() -> None:
    """A project goes before its team, whatever case it is written in; without either the remedy can be pasted."""
    settings = Settings.model_validate({"linear_repositories": "ENG=/eng, billing = https://github.com/o/billing"})
    issue = TrackerIssue("id", "ENG-1", "T", "repository: /evil", "https://linear.app/o/issue/ENG-1", "Eng")
    assert repository_of(issue, settings) == "/eng"
    of_project = TrackerIssue("id", "ENG-1", "T", "", "https://l", "ENG", ("slug", "uuid", "Billing"))
    assert repository_of(of_project, settings) == "https://github.com/o/billing"
    with pytest.raises(InvalidInputError) as refused:
        repository_of(TrackerIssue("id", "OPS-1", "T", "", "https://l", "OPS"), settings)
    assert "Add OPS=https://github.com/OWNER/NAME to SEPTET_LINEAR_REPOSITORIES" in refused.value.remedy
    with pytest.raises(InvalidInputError, match="No key"):
        tracker_for("linear", settings)
    with pytest.raises(ValueError, match="TEAM=REPOSITORY"):
        Settings.model_validate({"linear_repositories": "ENG"})
