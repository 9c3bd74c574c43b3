"""A reply in a session selects only a verb, a plan and a step."""

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
    """A verb at the beginning, in any case, is a command with words; any other text is unknown."""
    command = parse_reply(body)
    assert (command.verb, command.words) == (verb, words)


def test_a_plan_and_a_step_are_named() -> None:
    """A plan is approved only by its SHA-256, a rejection needs words, and a step has a known name."""
    assert parse_reply(f"approve {SHA}").plan_sha256 == SHA
    assert parse_reply("retry build_plan").step is Step.BUILD_PLAN
    missing = [what_is_missing(parse_reply(body)) for body in ("approve", "reject", "hello", "retry", "cancel")]
    assert ["PLAN_SHA256" in missing[0], "wrong" in missing[1], "Reply with" in missing[2]] == [True] * 3
    assert missing[3:] == ["", ""]


def test_the_settings_say_where_the_code_of_an_issue_lives() -> None:
    """A repository comes from the project or else from the team; the error names the missing setting."""
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
