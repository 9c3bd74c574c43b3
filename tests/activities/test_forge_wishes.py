"""A repository's settings for its forge: one progress comment, the stage label, and the form of pull requests."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fakes.activities import Doubles, done
from fakes.forges.connecting import FAKES, settings_for
from fakes.forges.serving import serving_forge
from fakes.forges.state import Fault, ForgeFake
from fakes.step_lab import StepLab

from activities.host.host import Host
from activities.outgoing.progress import note_progress, set_stage_label
from septet.agents.sandbox.supervisors import Supervisors
from septet.contracts.facts import Usage
from septet.contracts.names import Step, Verdict
from septet.contracts.steps import StepCall, StepResult
from septet.contracts.workspace import OpenWorkspace
from septet.forges.http.pauses import PAUSES
from septet.forges.local.forge import LocalForge
from septet.git.engine.place import Place
from septet.settings import Settings
from septet.state import StateDir

pytestmark = pytest.mark.law
WORDS = {"title": "bug: sum the prices", "body": "Totals were always 0."}


@pytest.fixture(params=FAKES, ids=lambda fake: fake.name)
def fake(request: pytest.FixtureRequest) -> Iterator[ForgeFake]:
    PAUSES.clear()
    with serving_forge(request.param(heads={"o/foo.js": {"main": "a" * 40}})) as fake:
        fake.add_issue("Totals are wrong")
        yield fake


class Teller:
    """Reports steps to a forge, as a worker does."""

    def __init__(self, fake: ForgeFake, root: Path) -> None:
        settings = Settings.model_validate(settings_for(fake, root))
        self.fake = fake
        self.host = Host("host-1", settings, StateDir(root), Supervisors())
        self.place = Place("wo-1", root / "tree", root / "mirror", root / "vault", "origin", "main", "0" * 40)
        self.place.records.mkdir(parents=True)

    def tell(
        self,
        step: Step,
        result_text: str = "it",
        *,
        verdict: Verdict = Verdict.DONE,
        by: Callable[[Host, Place, StepCall, StepResult], tuple[str, ...]] = note_progress,
    ) -> tuple[str, ...]:
        repository = f"{self.fake.url}/{self.fake.project}.git"
        opening = OpenWorkspace(work_order_id="wo-1", repository=repository, issue=1)
        there = {"forge": self.fake.name, "project": self.fake.project}
        workspace = Doubles("queue").workspace(opening).model_copy(update=there)
        call = StepCall(step=step, workspace=workspace, starts_from="")
        result = done(call, result_text, duration_seconds=65, usage=Usage(cost_usd=0.5))
        return by(self.host, self.place, call, result.model_copy(update={"verdict": verdict}))

    @property
    def comments(self) -> list[str]:
        return [note.body for note in self.fake.issues[1].notes]


def test_one_comment_tells_of_all_steps(fake: ForgeFake, tmp_path: Path) -> None:
    """The one comment holds steps, times, costs, branch and pull request."""
    teller = Teller(fake, tmp_path)
    for step in Step:
        assert teller.tell(step, "https://forge/pull/2" if step is Step.CREATE_PULL_REQUEST else "it") == ()
    (comment,) = teller.comments
    assert "7 of 7 steps done" in comment
    assert "| implement_plan | done | 1 min 5 s | $0.50 |" in comment
    assert "| together | | 7 min 35 s | $3.50 |" in comment
    assert "Pull request: https://forge/pull/2" in comment
    assert "<!-- septet: wo-1 -->" in comment


@pytest.mark.parametrize("status", [0, 502])
def test_a_comment_whose_answer_was_lost_is_not_written_twice(
    fake: ForgeFake, tmp_path: Path, status: int
) -> None:
    """After a lost or unclear answer the next step finds the comment and edits it."""
    teller = Teller(fake, tmp_path)
    path = "/notes" if fake.name == "gitlab" else "/comments"
    fake.faults = [
        Fault("status" if status else "drop", status=status, method="POST", path=path, about="wo-1", after=True)
    ]
    assert teller.tell(Step.CLASSIFY_ISSUE) == ()
    assert teller.tell(Step.BUILD_PLAN) == ()
    assert len(teller.comments) == 1


def test_a_forge_without_the_right_costs_a_warning(fake: ForgeFake, tmp_path: Path) -> None:
    """If the forge refuses the comment, the step has a warning."""
    teller = Teller(fake, tmp_path)
    fake.faults = [Fault(status=403, method="POST", text="Resource not accessible", about="wo-1")]
    (warning,) = teller.tell(Step.CLASSIFY_ISSUE)
    assert "the progress comment was not written" in warning
    assert teller.comments == []


def test_the_stage_label_follows_the_steps(fake: ForgeFake, tmp_path: Path) -> None:
    """The label is `executing` until the pull request is open, then `review`, and `blocked` after a failed step."""
    teller = Teller(fake, tmp_path)
    fake.issues[1].labels = ["bug"]
    seen = []
    for step, verdict in (
        (Step.CLASSIFY_ISSUE, Verdict.DONE),
        (Step.BUILD_PLAN, Verdict.UNPARSED),
        (Step.BUILD_PLAN, Verdict.DONE),
        (Step.CREATE_PULL_REQUEST, Verdict.DONE),
    ):
        assert teller.tell(step, verdict=verdict, by=set_stage_label) == ()
        seen.append(sorted(fake.issues[1].labels))
    assert [labels[0] for labels in seen] == ["bug"] * 4
    assert [labels[1:] for labels in seen] == [
        ["septet:executing"],
        ["septet:blocked"],
        ["septet:executing"],
        ["septet:review"],
    ]


def test_a_label_that_is_refused_costs_a_warning(fake: ForgeFake, tmp_path: Path) -> None:
    """If the forge refuses the label, the step has a warning."""
    teller = Teller(fake, tmp_path)
    fake.faults = [Fault(status=403, method=method, text="no") for method in ("POST", "PUT")]
    (warning,) = teller.tell(Step.CLASSIFY_ISSUE, by=set_stage_label)
    assert "the stage label was not set" in warning


async def test_a_repository_says_how_its_pull_requests_look(lab: StepLab) -> None:
    """Draft and labels follow `.septet/septet.toml`, and the text closes the issue."""
    settings = "[pull_request]\ndraft = true\nlabels = ['good first issue']\n[issue]\nprogress_comment = true\nstage_labels = true\n"
    lab.origin.push({".septet/septet.toml": settings})
    forge = LocalForge(lab.origin.bare, lab.parts.host.settings.git_env)
    forge.add_issue("Totals are wrong", labels=("bug", "septet:executing"))
    await lab.open_to(Step.CREATE_PULL_REQUEST, {"answer": WORDS}, issue=1)
    done = await lab.run(Step.CREATE_PULL_REQUEST)
    assert (done.verdict, done.warnings) == (Verdict.DONE, ())
    assert "Closes #1" in forge.pull_request_text(1)[1]
    assert forge.issue(1).labels == ("bug", "septet:review")
    (comment,) = forge.issue(1).comments
    assert f"Pull request: {lab.origin.bare.as_uri()}/pull/1" in comment.body
    (record,) = lab.pull_requests
    assert '"good first issue"' in record
    assert '"draft": true' in record
