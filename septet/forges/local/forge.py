"""The `local` forge: issues and pull requests as JSON under `refs/septet/forge` of a repository on disk.

The ref's tree holds `issue-<n>.json` and `pull-<n>.json`. Concurrent writers lose nothing, on one machine or on
several: each writer adds to the contents that it read, and reads again if another writer was faster.
"""

import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final, Literal, TypeVar

from pydantic import ValidationError
from pydantic_core import to_json

from septet.contracts.wire import Wire
from septet.errors import (
    ForgeError,
    ForgeUnavailableError,
    InvalidInputError,
    NotFoundError,
    RefusedTransitionError,
    SeptetError,
)
from septet.forges.forge import (
    MOST_BRANCHES,
    Branch,
    Comment,
    CommitCheck,
    Issue,
    NewPullRequest,
    PullRequest,
    Review,
    bounded_issue,
    bounded_list,
    label_names,
    marker_of,
)
from septet.forges.local.merge import holds, merge_branch
from septet.forges.local.ref_store import RefStore, StoreContents
from septet.forges.opening import CommentPlace, MarkedComment, put_once
from septet.forges.renames import asked_for
from septet.git.engine.engine import Git
from septet.system.timestamps import timestamp

REF: Final = "refs/septet/forge"
_OWN: Final = "septet"
"""The author of the engine's comments."""
_CLOSES: Final = re.compile(r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):? +#([1-9][0-9]{0,8})\b", re.IGNORECASE)
_LONGEST_PAUSE_SECONDS: Final = 0.05
_IDENTITY: Final = {
    "GIT_AUTHOR_NAME": "Septet",
    "GIT_AUTHOR_EMAIL": "septet@localhost",
    "GIT_COMMITTER_NAME": "Septet",
    "GIT_COMMITTER_EMAIL": "septet@localhost",
}

R = TypeVar("R", bound="_Record")
T = TypeVar("T")


class _Record(Wire):
    number: int


class _CommentRecord(Wire):
    author: str
    body: str
    created_at: str = ""


class _IssueRecord(_Record):
    title: str
    body: str
    labels: tuple[str, ...] = ()
    state: Literal["open", "closed"] = "open"
    comments: tuple[_CommentRecord, ...] = ()


class _PullRecord(_Record):
    head: str
    base: str
    title: str
    body: str
    draft: bool = False
    labels: tuple[str, ...] = ()
    state: Literal["open", "closed", "merged"] = "open"


@dataclass(frozen=True, slots=True)
class LocalForge:
    """The forge of a repository on disk: a bare one, or a person's checkout."""

    path: Path
    env: Mapping[str, str] = field(default_factory=dict)
    """The environment of engine git."""
    name: str = "local"
    tries: int = 100
    """The most tries of a write if other writers are faster."""

    def issue(self, number: int) -> Issue:
        """Return an issue; as `Forge.issue`."""
        return bounded_issue(asked_for(self._issue(self._issue_record(self._store.read(), number)), "", number))

    def find_issues(self, numbers: Sequence[int]) -> tuple[Issue, ...]:
        """Return the existing issues among `numbers`; as `Forge.find_issues`."""
        records = {record.number: record for record in self._records(self._store.read(), "issue", _IssueRecord)}
        issues = (self._issue(records[number]) for number in numbers if number in records)
        return tuple(bounded_issue(replace(issue, comments=())) for issue in issues)

    def open_issues(self, label: str) -> tuple[Issue, ...]:
        """Return the open issues with a label; as `Forge.open_issues`."""
        records = self._records(self._store.read(), "issue", _IssueRecord)
        issues = [self._issue(each) for each in records if each.state == "open" and label in each.labels]
        return bounded_list([replace(issue, comments=()) for issue in issues], label, "")

    def add_issue(self, title: str, body: str = "", labels: Sequence[str] = ()) -> Issue:
        """Add an open issue and return it.

        Raises:
            NotFoundError: There is no repository.
            ForgeUnavailableError: Other processes were always faster.
            ForgeError: The title is blank.
        """
        if not title.strip():
            raise ForgeError("An issue needs a title.")

        def add(contents: StoreContents) -> Issue | None:
            record = _IssueRecord(
                number=_next_number(contents, "issue"),
                title=title.strip(),
                body=body,
                labels=label_names(labels),
            )
            return self._issue(record) if self._put(contents, "issue", record) else None

        return self._until_done(add)

    def expect_fork(self, fork: str) -> None:
        """Refuse every fork; as `Forge.expect_fork`.

        Raises:
            InvalidInputError: Always.
        """
        message = f"push_to: {self.path} is a repository on this machine, which has no forks such as {fork}."
        raise InvalidInputError(message, remedy="Leave push_to out, or name the fork as the repository.")

    def find_pull_request(self, head: str, fork: str = "") -> PullRequest | None:
        """Return the open pull request of branch `head`; as `Forge.find_pull_request`."""
        del fork
        return self._open(self._store.read(), head)

    def pull_requests_of(self, head: str, fork: str = "") -> tuple[PullRequest, ...]:
        """Return the pull requests of branch `head` in every state; as `Forge.pull_requests_of`."""
        del fork
        records = self._records(self._store.read(), "pull", _PullRecord, naming=head)
        return tuple(self._as_it_is(record, "") for record in reversed(records) if record.head == head)

    def branches(self, prefix: str) -> tuple[Branch, ...]:
        """Return the branches whose names begin with `prefix`; as `Forge.branches`."""
        listing = self._git.text(
            "for-each-ref", f"--count={MOST_BRANCHES}", "--format=%(refname:lstrip=2) %(objectname)", "refs/heads/"
        )
        pairs = (line.rpartition(" ") for line in listing.splitlines())
        return tuple(Branch(name, sha) for name, _, sha in pairs if name.startswith(prefix))

    def reviews(self, number: int) -> tuple[Review, ...]:
        """Return no review: there are none here; as `Forge.reviews`."""
        self._pull(self._store.read(), number)
        return ()

    def checks(self, commit: str) -> tuple[CommitCheck, ...]:
        """Return no check: there are none here; as `Forge.checks`."""
        del commit
        return ()

    def put_comment(self, number: int, marker: str, body: str) -> None:
        """Put one comment with a mark on an issue; as `Forge.put_comment`."""

        def put(contents: StoreContents) -> bool | None:
            record = self._issue_record(contents, number)
            comments = list(record.comments)

            def create(text: str) -> None:
                comments.append(_CommentRecord(author=_OWN, body=text, created_at=timestamp(datetime.now(UTC))))

            def edit(index: int, text: str) -> None:
                comments[index] = comments[index].model_copy(update={"body": text})

            def list_comments() -> list[MarkedComment]:
                return [MarkedComment(n, each.author, each.body) for n, each in enumerate(comments)]

            put_once(CommentPlace(list_comments, create, edit, _OWN.__eq__), marker, body)
            after = record.model_copy(update={"comments": tuple(comments)})
            return after == record or self._put(contents, "issue", after) or None

        self._until_done(put)

    def has_comment(self, number: int, marker: str) -> bool:
        """Return whether an issue has a comment with a mark; as `Forge.has_comment`."""
        record = self._issue_record(self._store.read(), number)
        mark = marker_of(marker)
        return any(mark in each.body and each.author == _OWN for each in record.comments)

    def may_write(self, account: str) -> bool:
        """Return false: there are no accounts here; as `Forge.may_write`."""
        del account
        return False

    def is_own(self, account: str) -> bool:
        """Return true: there are no other accounts here; as `Forge.is_own`."""
        del account
        return True

    def set_label(self, number: int, label: str, instead_of: Sequence[str]) -> None:
        """Replace labels of an issue by one label; as `Forge.set_label`."""

        def set_it(contents: StoreContents) -> bool | None:
            record = self._issue_record(contents, number)
            kept = [each for each in record.labels if each == label or each not in instead_of]
            labels = label_names([*kept, label])
            if labels == record.labels:
                return True
            return True if self._put(contents, "issue", record.model_copy(update={"labels": labels})) else None

        self._until_done(set_it)

    def pull_request(self, number: int, commit: str = "") -> PullRequest:
        """Return a pull request in its present state; as `Forge.pull_request`.

        It is merged as soon as its base contains its branch's commit, by any merge and push; if its branch is
        gone, it is closed.
        """
        return self._as_it_is(self._pull(self._store.read(), number), commit)

    def merge_pull_request(self, number: int) -> PullRequest:
        """Merge an open pull request into its base, and close the issues that its body closes.

        A clean checkout of the base moves to the merge as well.

        Raises:
            NotFoundError: There is none.
            RefusedTransitionError: It is not open, conflicts with its base, or a person must merge it.
            ForgeUnavailableError: Other processes kept moving the base.
        """
        record = self._open_pull(number)
        merge = partial(merge_branch, self._git, record.base, record.head, f"Merge #{number}: {record.title}")
        self._until_done(lambda _stored: merge() or None)
        merged = self._mark(number, "merged")
        for issue in dict.fromkeys(_CLOSES.findall(record.body)):
            with suppress(NotFoundError):
                self.close_issue(int(issue))
        return merged

    def find_obstacle(self, number: int) -> SeptetError | None:
        """Return why a pull request cannot be merged here; `None` if it can."""
        try:
            record = self._open_pull(number)
            merge_branch(self._git, record.base, record.head, "", only_try=True)
        except SeptetError as error:
            return error
        return None

    def close_pull_request(self, number: int) -> PullRequest:
        """Close an open pull request without a merge; its branch stays.

        Raises:
            NotFoundError: There is none.
            RefusedTransitionError: The pull request is not open.
        """
        self._open_pull(number)
        return self._mark(number, "closed")

    def open_pull_request(self, new: NewPullRequest) -> PullRequest:
        """Return the one open pull request of `new.head`; as `Forge.open_pull_request`."""
        for branch in (new.head, new.base):
            if not self._sha(branch):
                raise ForgeError(f"{self.path} has no branch {branch}.", remedy="Push the branch first.")

        def find_or_open(contents: StoreContents) -> PullRequest | None:
            if pull_request := self._open(contents, new.head):
                return pull_request
            record = _PullRecord(
                number=_next_number(contents, "pull"),
                head=new.head,
                base=new.base,
                title=new.bounded_title,
                body=new.marked_body,
                draft=new.draft,
                labels=label_names(new.labels),
            )
            return self._pull_request(record) if self._put(contents, "pull", record) else None

        return self._until_done(find_or_open)

    def add_to_pull_request(self, number: int, new: NewPullRequest) -> None:
        """Add another work order to a pull request's text; as `Forge.add_to_pull_request`."""

        def add(contents: StoreContents) -> bool | None:
            there = self._pull(contents, number)
            body = new.added_to(there.body)
            is_there = body == there.body or self._put(contents, "pull", there.model_copy(update={"body": body}))
            return is_there or None

        self._until_done(add)

    def list_issues(self) -> tuple[Issue, ...]:
        """Return all issues, oldest first, without their comments.

        Raises:
            NotFoundError: There is no repository.
        """
        records = self._records(self._store.read(), "issue", _IssueRecord)
        return tuple(replace(self._issue(record), comments=()) for record in records)

    def close_issue(self, number: int) -> Issue:
        """Close an issue and return it; a closed issue stays closed.

        Raises:
            NotFoundError: There is none.
        """

        def close(contents: StoreContents) -> Issue | None:
            records = self._records(contents, f"issue-{number}.json", _IssueRecord)
            if not records:
                raise NotFoundError(f"{self.path} has no issue {number}.", remedy="List them: septet issue list")
            record = records[0].model_copy(update={"state": "closed"})
            return self._issue(record) if self._put(contents, "issue", record) else None

        return self._until_done(close)

    def list_pull_requests(self) -> tuple[tuple[PullRequest, str], ...]:
        """Return all pull requests in their present state with their titles, oldest first.

        Raises:
            NotFoundError: There is no repository.
        """
        records = self._records(self._store.read(), "pull", _PullRecord)
        return tuple((self._as_it_is(record, ""), record.title) for record in records)

    def pull_request_text(self, number: int) -> tuple[str, str]:
        """Return title and body of a pull request.

        Raises:
            NotFoundError: There is none.
        """
        record = self._pull(self._store.read(), number)
        return record.title, record.body

    def pull_request_patch(self, number: int) -> str:
        """Return the changes of a pull request's branch as a patch, also after the merge.

        Raises:
            NotFoundError: There is none.
            ForgeError: Its branch is gone.
        """
        pull = self.pull_request(number)
        if not pull.head_sha:
            raise ForgeError(f"The branch {pull.head} of pull request {number} is gone.")
        base = f"refs/heads/{pull.base}"
        if pull.state == "merged":
            merges = map(str.split, self._git.text("rev-list", "--merges", "--parents", base).splitlines())
            base = next((parents[0] for _, *parents in merges if pull.head_sha in parents[1:]), base)
        options = ("--no-color", "--no-ext-diff", "--no-textconv")
        return self._git.run("diff", *options, f"{base}...{pull.head_sha}").decode("utf-8", "replace")

    def _issue_record(self, contents: StoreContents, number: int) -> _IssueRecord:
        for record in self._records(contents, f"issue-{number}.json", _IssueRecord):
            return record
        remedy = "List its issues with `septet issue list`, or add one with `septet issue add`."
        raise NotFoundError(f"{self.path} has no issue {number}.", remedy=remedy)

    def _pull(self, contents: StoreContents, number: int) -> _PullRecord:
        for record in self._records(contents, f"pull-{number}.json", _PullRecord):
            return record
        raise NotFoundError(f"{self.path} has no pull request {number}.", remedy="List them: septet pr list --all")

    def _open_pull(self, number: int) -> _PullRecord:
        record = self._pull(self._store.read(), number)
        if (state := self._as_it_is(record, "").state) != "open":
            raise RefusedTransitionError(
                f"Pull request {number} of {self.path} is {state}.", remedy=f"See it: septet pr show {number}"
            )
        return record

    def _mark(self, number: int, state: Literal["closed", "merged"]) -> PullRequest:
        def mark(contents: StoreContents) -> PullRequest | None:
            record = self._pull(contents, number).model_copy(update={"state": state})
            return self._pull_request(record) if self._put(contents, "pull", record) else None

        return self._until_done(mark)

    def _as_it_is(self, record: _PullRecord, commit: str) -> PullRequest:
        pull_request = self._pull_request(record)
        if record.state != "open":
            return pull_request
        if holds(self._git, record.base, pull_request.head_sha or commit):
            return replace(pull_request, state="merged")
        return pull_request if pull_request.head_sha else replace(pull_request, state="closed")

    def _open(self, contents: StoreContents, head: str) -> PullRequest | None:
        pulls = self._records(contents, "pull", _PullRecord, naming=head)
        return next(
            (self._pull_request(pull) for pull in pulls if pull.head == head and pull.state == "open"), None
        )

    def _records(self, contents: StoreContents, kind: str, form: type[R], naming: str = "") -> list[R]:
        """Return the records of a kind by number; with `naming`, only records whose text contains `naming`."""
        mark = to_json(naming).strip(b'"')
        texts = (text for name, text in contents.files.items() if name.startswith(kind) and mark in text)
        try:
            records = [form.model_validate_json(text) for text in texts]
        except ValidationError as error:
            message = f"{REF} of {self.path} does not hold what this forge has written."
            raise ForgeError(message, remedy=f"Look at it with `git show {REF}`.") from error
        return sorted(records, key=lambda record: record.number)

    def _put(self, contents: StoreContents, kind: str, record: _Record) -> bool:
        content = record.model_dump_json(indent=1).encode()
        return self._store.put(contents, f"{kind}-{record.number}.json", content)

    def _until_done(self, change: Callable[[StoreContents], T | None]) -> T:
        """Call `change` until it returns a result; it returns `None` if another writer was faster."""
        for _ in range(self.tries):
            if (result := change(self._store.read())) is not None:
                return result
            time.sleep(random.uniform(0, _LONGEST_PAUSE_SECONDS))  # noqa: S311 -- a pause for other writers, no secret
        raise ForgeUnavailableError(f"Other processes keep writing to {REF} of {self.path}.")

    def _issue(self, record: _IssueRecord) -> Issue:
        return Issue(
            number=record.number,
            title=record.title,
            body=record.body,
            url=f"{self.path.as_uri()}/issue/{record.number}",
            state=record.state,
            labels=record.labels,
            comments=tuple(Comment(each.author, each.body, each.created_at) for each in record.comments),
        )

    def _pull_request(self, record: _PullRecord) -> PullRequest:
        return PullRequest(
            number=record.number,
            url=f"{self.path.as_uri()}/pull/{record.number}",
            head=record.head,
            base=record.base,
            head_sha=self._sha(record.head),
            state=record.state,
            body=record.body,
        )

    def _sha(self, branch: str) -> str:
        completed = self._git.try_run("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
        return completed.stdout.decode("ascii").strip()

    @property
    def _store(self) -> RefStore:
        return RefStore(self._git, REF)

    @property
    def _git(self) -> Git:
        """The repository's git dir, found in the places where git itself searches."""
        for folder in (self.path / ".git", self.path, self.path.with_name(f"{self.path.name}.git")):
            if folder.is_file() or (folder / "objects").is_dir():
                return Git(folder, env={**self.env, **_IDENTITY})
        raise NotFoundError(f"{self.path} is not a git repository.", remedy="Give the path of a repository.")


def _next_number(contents: StoreContents, kind: str) -> int:
    names = (re.fullmatch(rf"{kind}-(\d+)\.json", name) for name in contents.files)
    return max((int(name[1]) for name in names if name), default=0) + 1
