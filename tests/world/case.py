"""What a case's file says: what happens in the world, and what must come out of it."""

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
"""So many; two figures are the least and the most."""


class Part(BaseModel):
    """A table of a case's file; a key that nobody knows is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Act(Part):
    """What the agent does."""

    sleep: float = 0
    files: dict[str, str] = {}
    """Files that it writes in its worktree, before the commands."""
    shell: str = ""
    """Commands for bash, in its worktree."""
    read: str = ""
    """A file of the case's folder that is printed as it stands."""
    stderr: str = ""


class Turn(Act):
    """What the CLI does and prints in one start; what is not said is as in an ordinary turn."""

    text: str = "{answer}"
    """The answer. `{answer}` is that of an ordinary turn."""
    works: bool = False
    """It writes the files of an ordinary turn too, as each turn does that the case does not name."""
    stdout: str | list[str | float | Act] | None = None
    """All that is printed: texts as they stand, seconds to wait, and acts. `{text}` is the answer as a JSON string, `{plain}` as it is."""
    exit: int = 0
    kill: bool = False
    """It is killed where it would end."""
    events: list[dict[str, Any]] = []
    """claude's: events before its message."""
    message: bool = True
    """claude's: whether its message is printed."""
    result: bool = True
    """claude's: whether its result is printed."""
    more: dict[str, Any] = {}
    """claude's: further keys of its result, or others."""
    after: list[dict[str, Any]] = []
    """claude's: events after its result; `{act = …}` is an act."""


class Answer(Part):
    """What the forge answers in place of the true answer."""

    method: str = ""
    path: str = ""
    """Of requests whose path holds this."""
    about: str = ""
    """Of requests whose body or query holds this."""
    status: int = 500
    headers: dict[str, str] = {}
    text: str | None = None
    """The body as it stands; a page of HTML, for example."""
    body: Any = None
    """The body as JSON."""
    lie: Literal["status", "drop", "truncated", "wrong_type", "slow", "stale"] = "status"
    seconds: float = 0
    after: bool = False
    """It does what was asked first."""
    times: int = 1
    every: int = 1
    """Each so many-th of these requests gets it."""


class Issue(Part):
    """An issue of the forge."""

    title: str
    body: str = ""
    labels: tuple[str, ...] = ()
    comments: tuple[str, ...] = ()


class Forge(Part):
    """The forge that has the repository, `o/<case>`; without one, it is a folder of this machine."""

    kind: ForgeName
    issues: tuple[Issue, ...] = (Issue(title="add() subtracts", body="It should add."),)
    issue: int = 1
    """The number that the work order is for."""
    others: tuple[str, ...] = ()
    """Branches with open pull requests of other people."""
    protected: tuple[str, ...] = ()
    """Branches that nobody may push to."""
    answers: tuple[Answer, ...] = ()


class Next(Part):
    """What a person does after the end of the work order, which then goes on to its next end."""

    shell: str = ""
    """Commands for bash, in the origin."""
    others: int = 0
    """So many pull requests that people open then."""
    retarget: str = ""
    """The base that a person then gives the pull request."""
    septet: tuple[str, ...] = ()


class Branch(Part):
    """The branch that the work order has pushed."""

    name: str | None = None
    files: dict[str, str] = {}
    """Files and their whole texts."""
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    changed: tuple[str, ...] | None = None
    """All paths that differ from the base."""
    commits: Count | None = None
    message: tuple[str, ...] = ()
    """Words of the last commit's message."""


class Words(Part):
    """What must stand in a text, and what must not."""

    says: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()


class Failure(Words):
    """The error: its message and its remedy."""

    type: str | None = None
    remedy: tuple[str, ...] = ()
    """Words of its remedy."""


class StepEnd(Part):
    """How a step ended."""

    output: str | None = None
    parsed_by: str | None = None
    warnings: tuple[str, ...] | None = None
    """Words of its warnings; an empty list: it has none."""


class Pull(Part):
    """The pull request."""

    title: Words = Words()
    body: Words = Words()
    title_at_most: int | None = None
    base: str | None = None
    draft: bool | None = None


class Expect(Part):
    """What must come out."""

    status: Status | tuple[Status, ...] = "completed"
    """`refused`: the command did not start it. Of several, any."""
    error: Failure | None = None
    warnings: tuple[str, ...] = ()
    """Words of warnings of any step."""
    waits: tuple[float, float] | None = None
    """The next try of the step is so many seconds away, at least and at most, when the look is taken."""
    shows: tuple[str, ...] = ()
    """Words of `septet show`."""
    steps: dict[str, StepEnd] = {}
    starts: dict[str, Count] = {}
    """So often the CLI was started for a step, without its finalizers."""
    sessions: dict[str, Count] = {}
    """So many sessions did a step."""
    finalizers: Count | None = None
    """So many finalizers were paid, of all steps."""
    argv: dict[str, tuple[str, ...]] = {}
    """Words of the command line of each start for a step, or for `finalizer`."""
    branch: Branch | None = None
    base: Literal["as it was", "moved", "deleted"] = "as it was"
    """Where the base branch stands at the end."""
    pull_requests: Count | None = None
    """So many; one, where the work order is completed."""
    pull: Pull = Pull()
    labels: tuple[str, ...] = ()
    """Labels that the issue has at the end."""
    kept: dict[str, str] = {}
    """Files and their whole texts in what is rescued of the work order."""
    asked: tuple[str, ...] = ()
    """Patterns of requests (`POST .*/pulls`) that the forge was asked."""
    not_asked: tuple[str, ...] = ()
    check: str = ""
    """Commands for bash, in the origin, that end with 0; what they print is told where they do not.

    They find `$ORIGIN`, `$WORK`, `$BRANCH`, `$BASE` (its first commit), `$STATUS`, `$ERROR` and `$REMEDY`; the
    starts of the CLI stand in `$WORK/calls.jsonl`.
    """


class Case(Part):
    """One case."""

    name: str = ""
    """Its folder's."""
    source: str
    """The public report."""
    happens: str
    """One sentence: what the world does."""
    expects: str
    """One sentence: what must come out."""
    known: str = Field(default="", pattern="^(wrong: .+)?$")
    """What comes out wrong today; the runner says when that is no longer so."""
    drawn: int = 0
    """Its number in `drawn.md`, among those that were drawn before they were tried."""
    first: str = Field(default="", pattern="^(right|wrong: .+)?$")
    """What came out of a drawn one when it was tried first."""
    sample: bool = False
    """It runs in CI too."""
    agent: Agent = "claude"
    args: tuple[str, ...] = ()
    """Further arguments of `septet run`."""
    title: str = "add() subtracts"
    body: str = "It should add."
    seconds: float = 180
    """By then it must have ended."""
    ends: str = ""
    """Words of `septet show` at which the look is taken, where it is not to end by itself; it is cancelled then."""
    alone: bool = False
    """It has a worker of its own: a login that is paused would hold up other cases."""
    settings: dict[str, str] = {}
    """Variables of a worker of its own."""
    files: dict[str, str] = {}
    """Further files of the repository."""
    setup: str = ""
    """Commands for bash in the checkout, before its one commit is pushed."""
    origin: str = ""
    """Commands for bash in the origin, when the base is there."""
    base: str = "main"
    plain: bool = False
    """Whether ordinary answers are plain texts, `/bug` for example, and no JSON; two steps have no such form."""
    every: Turn = Turn()
    """For each turn: what is said here and not there."""
    turns: dict[str, Turn | list[Turn]] = {}
    """By step, `finalizer`, or `finalizer:<step>`; after `resumed:`, for starts that go on with a session.

    A list is for one start after the other, its last turn for all others.
    """
    next: tuple[Next, ...] = ()
    forge: Forge | None = None
    expect: Expect = Expect()

    @property
    def folder(self) -> Path:
        """Its folder."""
        return CASES / self.name

    @property
    def order(self) -> str:
        """The work order's id."""
        return f"wo-{self.name.replace('_', '-')}"

    @property
    def plan(self) -> str:
        """The path of the plan in an ordinary turn."""
        return f"specs/{self._about}-planner-plan.md"

    @property
    def branch(self) -> str:
        """The branch's name in an ordinary turn."""
        return f"septet/bug-{self.forge.issue if self.forge else self.order}-add-adds"

    @property
    def _about(self) -> str:
        return f"issue-{self.forge.issue}-{self.order}" if self.forge else self.order


def read_case(folder: Path) -> Case:
    """Read the case of a folder; `{order}`, `{plan}` and `{branch}` in it stand for its own."""
    text = (folder / "case.toml").read_text(encoding="utf-8")
    case = Case.model_validate({**tomllib.loads(text), "name": folder.name})
    names = {"{order}": case.order, "{plan}": case.plan, "{branch}": case.branch}
    return Case.model_validate({**tomllib.loads(fill(text, names)), "name": folder.name})


def read_cases() -> list[Case]:
    """Read all cases, by name."""
    return [read_case(path.parent) for path in sorted(CASES.glob("*/case.toml"))]


def fill(text: str, names: Mapping[str, str]) -> str:
    """Return a text with names in place of what stands for them."""
    return re.sub("|".join(map(re.escape, names)), lambda found: names[found[0]], text)
