"""The content of a case's file: the events of the world, and the expected outcome."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

CASES: Final = Path(__file__).parent / "cases"
Agent = Literal["claude", "codex", "copilot", "gemini", "opencode"]
ForgeName = Literal["github", "gitlab", "gitea"]
Status = Literal["completed", "failed", "cancelled", "running", "waiting", "refused"]
Count: TypeAlias = int | tuple[int, int]
"""A count, or the least and the most."""


class Part(BaseModel):
    """A table of a case's file; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Act(Part):
    sleep: float = 0
    files: dict[str, str] = {}
    """Files that the agent writes into its worktree, before the commands."""
    shell: str = ""
    """Commands for bash in the agent's worktree."""
    read: str = ""
    """A file of the case's folder that the agent prints unchanged."""
    stderr: str = ""


class Turn(Act):
    """One start of the CLI: its acts and output. Missing keys are as in an ordinary turn."""

    text: str = "{answer}"
    """The answer. `{answer}` is the ordinary turn's answer."""
    works: bool = False
    """Whether the turn also writes an ordinary turn's files, as turns without an entry do."""
    stdout: str | list[str | float | Act] | None = None
    """The whole output: texts, seconds to wait, and acts. `{text}` is the answer in JSON, `{plain}` as it is."""
    exit: int = 0
    kill: bool = False
    """Whether the CLI is killed at its end."""
    events: list[dict[str, Any]] = []
    """For claude: the events before its message."""
    message: bool = True
    """For claude: whether its message is printed."""
    result: bool = True
    """For claude: whether its result is printed."""
    more: dict[str, Any] = {}
    """For claude: more keys of its result, or other values of them."""
    after: list[dict[str, Any]] = []
    """For claude: the events after its result; `{act = …}` is an act."""


class Answer(Part):
    """An answer of the forge in place of the true answer."""

    method: str = ""
    path: str = ""
    """A part of the path of the requests that get the answer."""
    about: str = ""
    """A part of the body or query of the requests that get the answer."""
    status: int = 500
    headers: dict[str, str] = {}
    text: str | None = None
    """The body as text, such as a page of HTML."""
    body: Any = None
    """The body as JSON."""
    after: bool = False
    """Whether the forge first carries out the request."""
    times: int = 1
    every: int = 1
    """The answer goes to each n-th of these requests."""


class Issue(Part):
    title: str
    body: str = ""
    labels: tuple[str, ...] = ()


class Forge(Part):
    """The forge with the repository `o/<case>`; without a forge the repository is a folder of this machine."""

    kind: ForgeName
    issues: tuple[Issue, ...] = (Issue(title="add() subtracts", body="It should add."),)
    issue: int = 1
    """The number of the work order's issue."""
    others: tuple[str, ...] = ()
    """Branches with open pull requests of other people."""
    answers: tuple[Answer, ...] = ()


class Next(Part):
    """The act of a person after the work order's end; the work order then continues to its next end."""

    shell: str = ""
    """Commands for bash in the origin."""
    others: int = 0
    """The number of pull requests that other people open."""
    retarget: str = ""
    """The new base of the pull request."""
    septet: tuple[str, ...] = ()


class Branch(Part):
    """The branch that the work order pushed."""

    name: str | None = None
    files: dict[str, str] = {}
    """Files with their whole texts."""
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    changed: tuple[str, ...] | None = None
    """All paths that differ from the base."""
    commits: Count | None = None
    message: tuple[str, ...] = ()
    """Words of the last commit's message."""


class Words(Part):
    """Words that a text must have, and words that it must lack."""

    says: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()


class Failure(Words):
    type: str | None = None
    remedy: tuple[str, ...] = ()
    """Words of the remedy."""


class StepEnd(Part):
    output: str | None = None
    parsed_by: str | None = None
    warnings: tuple[str, ...] | None = None
    """Words of the step's warnings; an empty list expects no warning."""


class Pull(Part):
    title: Words = Words()
    body: Words = Words()
    title_at_most: int | None = None
    base: str | None = None


class Expect(Part):
    status: Status | tuple[Status, ...] = "completed"
    """The status, or several allowed statuses; `refused` means that the command did not start the work order."""
    error: Failure | None = None
    warnings: tuple[str, ...] = ()
    """Words of warnings of any step."""
    waits: tuple[float, float] | None = None
    """The least and the most seconds until the step's next try."""
    shows: tuple[str, ...] = ()
    """Words of `septet show`."""
    steps: dict[str, StepEnd] = {}
    starts: dict[str, Count] = {}
    """The starts of the CLI for each step, without finalizers."""
    sessions: dict[str, Count] = {}
    """The sessions of each step."""
    finalizers: Count | None = None
    """The finalizers of all steps."""
    argv: dict[str, tuple[str, ...]] = {}
    """Words of the command line of each start for a step, or for `finalizer`."""
    branch: Branch | None = None
    base: Literal["as it was", "moved", "deleted"] = "as it was"
    """The state of the base branch at the end."""
    pull_requests: Count | None = None
    """The number of pull requests; `None` means one after a completed work order."""
    pull: Pull = Pull()
    labels: tuple[str, ...] = ()
    """Labels of the issue at the end."""
    kept: dict[str, str] = {}
    """Files with their whole texts in the work order's rescues."""
    not_asked: tuple[str, ...] = ()
    """Patterns of requests to the forge, such as `POST .*/pulls`."""
    check: str = ""
    """Commands for bash in the origin that must exit with 0; their output is printed otherwise.

    The environment has `$ORIGIN`, `$WORK`, `$BRANCH`, `$BASE` (its first commit), `$STATUS`, `$ERROR` and `$REMEDY`;
    `$WORK/calls.jsonl` holds the starts of the CLI.
    """


class Case(Part):
    name: str = ""
    """The name of the case's folder."""
    source: str
    """The address of the public report."""
    happens: str
    """One sentence about the events of the world."""
    expects: str
    """One sentence about the expected outcome."""
    known: str = Field(default="", pattern="^(wrong: .+)?$")
    """The wrong outcome of today; the test fails once the outcome is right."""
    drawn: int = 0
    """The case's number in `drawn.md`; 0 for a case that was not drawn before its first trial."""
    first: str = Field(default="", pattern="^(right|wrong: .+)?$")
    """The outcome of a drawn case at its first trial."""
    sample: bool = False
    """Whether CI runs the case too."""
    agent: Agent = "claude"
    args: tuple[str, ...] = ()
    """More arguments of `septet run`."""
    title: str = "add() subtracts"
    body: str = "It should add."
    seconds: float = 180
    """The most seconds until the work order's end."""
    ends: str = ""
    """Words of `septet show` at which the outcome is read and the work order cancelled; empty waits for its end."""
    alone: bool = False
    """Whether the case has its own worker; a paused login would hold up other cases."""
    settings: dict[str, str] = {}
    """Variables of the case's own worker."""
    files: dict[str, str] = {}
    """More files of the repository."""
    setup: str = ""
    """Commands for bash in the checkout, before the push of its one commit."""
    origin: str = ""
    """Commands for bash in the origin, after the push of the base."""
    plain: bool = False
    """Whether ordinary answers are plain texts, such as `/bug`, instead of JSON; two steps have no plain form."""
    every: Turn = Turn()
    """Keys of all turns that do not set them."""
    turns: dict[str, Turn | list[Turn]] = {}
    """Turns by step, `finalizer`, or `finalizer:<step>`; with `resumed:` before it, for starts that resume a session.

    A list has a turn for each start in order; its last turn serves all later starts.
    """
    next: tuple[Next, ...] = ()
    forge: Forge | None = None
    expect: Expect = Expect()

    @property
    def folder(self) -> Path:
        return CASES / self.name

    @property
    def order(self) -> str:
        return f"wo-{self.name.replace('_', '-')}"

    @property
    def plan(self) -> str:
        return f"specs/{self._about}-planner-plan.md"

    @property
    def branch(self) -> str:
        return f"septet/bug-{self.forge.issue if self.forge else self.order}-add-adds"

    @property
    def _about(self) -> str:
        return f"issue-{self.forge.issue}-{self.order}" if self.forge else self.order


def read_case(folder: Path) -> Case:
    """Read the case of a folder, with its own values of `{order}`, `{plan}` and `{branch}`."""
    text = (folder / "case.toml").read_text(encoding="utf-8")
    case = Case.model_validate({**tomllib.loads(text), "name": folder.name})
    names = {"{order}": case.order, "{plan}": case.plan, "{branch}": case.branch}
    return Case.model_validate({**tomllib.loads(fill(text, names)), "name": folder.name})


def read_cases() -> list[Case]:
    return [read_case(path.parent) for path in sorted(CASES.glob("*/case.toml"))]


def fill(text: str, names: Mapping[str, str]) -> str:
    return re.sub("|".join(map(re.escape, names)), lambda found: names[found[0]], text)
