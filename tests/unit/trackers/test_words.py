"""A reply in a session, a team's page, and the repository and agent of an issue."""

import pytest

from septet.contracts.intake import IntakeInput
from septet.contracts.names import Step
from septet.contracts.tracker import TrackedClaim, TrackedIssue, team_page
from septet.errors import InvalidInputError
from septet.settings import Settings
from septet.trackers.choose import agent_of, repository_of, tracker_for
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


ISSUE = TrackerIssue("id", "ENG-12", "T", "", "https://linear.app/o/issue/ENG-12", "ENG", ("abc", "Payments"))
PAGE = "https://linear.app/acme/team/ENG"


@pytest.mark.parametrize(
    ("text", "team"),
    [
        (PAGE, "ENG"),
        (f"{PAGE}/all?layout=list", "ENG"),
        (" https://linear.app/Acme/team/eng ", "ENG"),
        ("https://linear.app/acme/issue/ENG-12", None),
        ("https://linear.app/acme/team/", None),
        ("https://github.com/acme/team/ENG", None),
        ("/ENG", None),
    ],
)
def test_a_team_is_named_by_its_page(text: str, team: str | None) -> None:
    """Each page of a team leads to the team's address; another page, another site and a path are no team."""
    page = team_page(text)
    assert (page and page.team, page and page.address) == (team, team and PAGE)


def settings_with(agents: str) -> Settings:
    return Settings.model_validate({"linear_agents": agents})


def test_the_agent_of_an_issue_is_its_project_s_or_else_its_team_s() -> None:
    """An issue's agent is its project's, or else its team's, or else the default."""
    assert agent_of(ISSUE, settings_with("ENG=codex, payments = gemini")) == "gemini"
    assert agent_of(ISSUE, settings_with("ENG=codex")) == "codex"
    assert agent_of(ISSUE, settings_with("OPS=codex")) is None
    with pytest.raises(InvalidInputError, match="no agent 'clod', which SEPTET_LINEAR_AGENTS names for ENG-12"):
        agent_of(ISSUE, settings_with("ENG=clod"))


def test_an_intake_of_a_team_decides_before_the_team_s_settings() -> None:
    """An intake's agent and approval come before the settings, and the repository comes from the issue."""
    claim = TrackedClaim(
        issue=TrackedIssue(tracker="linear", id="0b4a", key="ENG-12"),
        is_own=True,
        order_id="wo-linear-eng-12",
        repository="https://github.com/o/r",
        agent="codex",
    )
    order = IntakeInput(repository=PAGE, draft=True).order_for_tracked(claim)
    assert (order.repository, order.tracker, order.issue) == ("https://github.com/o/r", claim.issue, None)
    assert (order.agent, order.approve_plan, order.draft, order.stage) == ("codex", False, True, "triaged")
    own = IntakeInput(repository=PAGE, agent="claude", approve_plan=True, at_once=True).order_for_tracked(claim)
    assert (own.agent, own.approve_plan, own.stage) == ("claude", True, None)
    asked = claim.model_copy(update={"approve_plan": True})
    assert IntakeInput(repository=PAGE).order_for_tracked(asked).approve_plan
