"""The answer that the agent of each step must give, and its `result_text`.

Every model is strict: it refuses a missing key, an extra key or a value of another type. The agent sees the
docstring of a field as the description in the JSON Schema.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from septet.contracts.wire import StrictWire

Line = Annotated[str, StringConstraints(min_length=1, max_length=1024, pattern=r"^[^\r\n\x00]*\S[^\r\n\x00]*$")]
"""A non-blank text on one line."""
Text = Annotated[str, StringConstraints(max_length=65_536, pattern=r"\S")]
"""A non-blank text."""


class ResultAnswer(StrictWire):
    """An answer with one main field, which becomes the `result_text`."""

    main_field: ClassVar[str]

    @property
    def result_text(self) -> str:
        """The main field, as people see the answer."""
        return str(getattr(self, self.main_field))


class ClassifyIssueAnswer(ResultAnswer):
    """The kind of work that the issue requests."""

    issue_class: Literal["/bug", "/feature", "/chore"]
    """The kind: `/bug`, `/feature` or `/chore`."""
    main_field: ClassVar[str] = "issue_class"


class BuildPlanAnswer(ResultAnswer):
    """The file of the plan."""

    plan_path: Line
    """The plan's path, relative to the repository's root."""
    summary: str
    """The plan in one or two sentences."""
    main_field: ClassVar[str] = "plan_path"


class FindPlanFileAnswer(ResultAnswer):
    """The file that holds the plan."""

    plan_path: Line
    """The plan's path, relative to the repository's root, or "0" when there is none."""
    main_field: ClassVar[str] = "plan_path"


class GenerateBranchAnswer(ResultAnswer):
    """The branch for this work."""

    branch_name: Line
    """The branch's name, in a form that git accepts."""
    main_field: ClassVar[str] = "branch_name"


class ImplementPlanAnswer(ResultAnswer):
    """The work that was done."""

    success: bool
    """Whether the plan was carried out."""
    summary: Text
    """The work that was done, or why it could not be done."""
    key_changes_made: tuple[str, ...]
    """The most important changes, one sentence each."""
    key_learnings: tuple[str, ...]
    """The facts that the next reader of this code should know, one sentence each."""
    main_field: ClassVar[str] = "summary"


class ThreadReply(StrictWire):
    """A reply to one thread of a review."""

    thread: Line
    """The thread's id, as the prompt gives it."""
    reply: Text
    """The text of the reply, in Markdown."""


class ReworkAnswer(ResultAnswer):
    """The work on the checks, reviews and conflicts of a pull request."""

    success: bool
    """Whether every request is carried out, or answered in `replies`."""
    summary: Text
    """The work that was done, or why it could not be done."""
    commit_message: Text
    """The whole message of the commit with this work: a subject line, and a body after a blank line."""
    replies: tuple[ThreadReply, ...]
    """One reply for each thread in the prompt."""
    main_field: ClassVar[str] = "summary"


class CreateCommitAnswer(ResultAnswer):
    """The message of the commit."""

    commit_message: Text
    """The whole message: a subject line, and a body after a blank line if one is needed."""
    main_field: ClassVar[str] = "commit_message"


class PullRequestText(ResultAnswer):
    """Title and body for the pull request that Septet opens."""

    title: Line
    """The pull request's title."""
    body: str
    """The pull request's description, in Markdown."""
    main_field: ClassVar[str] = "title"


class SuspectedPlace(StrictWire):
    """One suspicious place in the outgoing changes."""

    path: Line
    """The file's path or the text's name, as the prompt gives it."""
    line: Annotated[int, Field(ge=0)]
    """The line, from 1; 0 if no line is meant."""
    kind: Literal["injected", "leak", "backdoor"]
    """The kind: `injected`, `leak` or `backdoor`."""
    what: Text
    """The suspicion and its reason, in one sentence."""


class ReadOutgoingAnswer(StrictWire):
    """The suspicious places that a reader found in the outgoing changes."""

    findings: tuple[SuspectedPlace, ...]
    """Each suspicious place; empty if there is none."""

    @property
    def result_text(self) -> str:
        """The number of findings."""
        return f"findings: {len(self.findings)}"


class PullRequestUrl(ResultAnswer):
    """A pull request that the agent opened itself."""

    url: Annotated[str, Field(pattern=r"^(https?|file)://\S+$", max_length=2048)]
    """The pull request's address."""
    main_field: ClassVar[str] = "url"


CreatePullRequestAnswer = PullRequestText | PullRequestUrl
StepAnswer = (
    ClassifyIssueAnswer
    | BuildPlanAnswer
    | FindPlanFileAnswer
    | GenerateBranchAnswer
    | ImplementPlanAnswer
    | ReworkAnswer
    | CreateCommitAnswer
    | PullRequestText
    | PullRequestUrl
    | ReadOutgoingAnswer
)
