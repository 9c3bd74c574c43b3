"""The `local` forge: issues and pull requests as JSON under the ref `refs/septet/forge` of a repository on disk.

The ref's tree has files `issue-<n>.json` and `pull-<n>.json`. Concurrent writers lose nothing, even from several
machines: a writer that another writer has overtaken reads and writes again.
"""

import hashlib
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

from septet.errors import ForgeError, InvalidInputError, NotFoundError, RefusedTransitionError, SeptetError
from septet.forges.limits import MOST_BRANCHES
from septet.forges.local.issues import LocalIssues
from septet.forges.local.merge import holds, merge_branch
from septet.forges.local.records import REF, LocalPull, StoreContents, next_number
from septet.forges.values import (
    Branch,
    CommitCheck,
    NewPullRequest,
    PullRequest,
    RecentPullRequests,
    Review,
    label_names,
)

_CLOSES: Final = re.compile(r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):? +#([1-9][0-9]{0,8})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LocalForge(LocalIssues):
    """The forge of a repository on disk: of a bare repository, or of a person's checkout."""

    def expect_fork(self, fork: str) -> None:
        """Refuse every fork; see `Forge.expect_fork`."""
        message = f"push_to: {self.path} is a repository on this machine, which has no forks such as {fork}."
        raise InvalidInputError(message, remedy="Leave push_to out, or name the fork as the repository.")

    def find_pull_request(self, head: str, fork: str = "") -> PullRequest | None:
        """Return the open pull request of branch `head`; see `Forge.find_pull_request`."""
        del fork
        return self._open(self.store.read(), head)

    def pull_requests_of(self, head: str, fork: str = "") -> tuple[PullRequest, ...]:
        """Return the pull requests of branch `head` in every state; see `Forge.pull_requests_of`."""
        del fork
        records = self.records_of(self.store.read(), "pull", LocalPull, naming=head)
        return tuple(self._as_it_is(record, "") for record in reversed(records) if record.head == head)

    def branches(self, prefix: str) -> tuple[Branch, ...]:
        """Return the branches whose names begin with `prefix`; see `Forge.branches`."""
        listing = self.git.text(
            "for-each-ref", f"--count={MOST_BRANCHES}", "--format=%(refname:lstrip=2) %(objectname)", "refs/heads/"
        )
        pairs = (line.rpartition(" ") for line in listing.splitlines())
        return tuple(Branch(name, sha) for name, _, sha in pairs if name.startswith(prefix))

    def reviews(self, number: int) -> tuple[Review, ...]:
        """Return an empty tuple, because this forge has no reviews; see `Forge.reviews`."""
        self.pull_record(self.store.read(), number)
        return ()

    def checks(self, commit: str) -> tuple[CommitCheck, ...]:
        """Return an empty tuple, because this forge has no checks; see `Forge.checks`."""
        del commit
        return ()

    def may_write(self, account: str) -> bool:
        """Return false, because this forge has no accounts; see `Forge.may_write`."""
        del account
        return False

    def is_own(self, account: str) -> bool:
        """Return true, because this forge has no other accounts; see `Forge.is_own`."""
        del account
        return True

    def pull_request(self, number: int, commit: str = "") -> PullRequest:
        """Return a pull request in its present state; see `Forge.pull_request`.

        It counts as merged if the base contains the branch's commit, and as closed if the branch is missing.
        """
        return self._as_it_is(self.pull_record(self.store.read(), number), commit)

    def recent_pull_requests(self, etag: str = "", page: int = 1) -> RecentPullRequests | None:
        """Return all pull requests, except open ones without a branch; see `Forge.recent_pull_requests`."""
        del page
        tips = self._tips()
        new_etag = hashlib.sha256(repr(tips).encode()).hexdigest()
        if new_etag == etag:
            return None
        records = self.records_of(self.store.read(), "pull", LocalPull)
        known = [each for each in records if each.state != "open" or each.head in tips]
        found = (replace(each, updated_at=new_etag) for each in self._as_they_are(known, tips))
        return RecentPullRequests(tuple(found), is_all=True, etag=new_etag)

    def merge_pull_request(self, number: int) -> PullRequest:
        """Merge an open pull request into its base, and close the issues that its body closes.

        Raises:
            NotFoundError: The repository has no pull request of this number.
            RefusedTransitionError: The pull request is not open or has conflicts, or only a person can merge it.
            ForgeUnavailableError: Other processes kept moving the base.
        """
        record = self._open_pull(number)
        merge = partial(merge_branch, self.git, record.base, record.head, f"Merge #{number}: {record.title}")
        self.until_done(lambda _stored: merge() or None)
        merged = self._mark(number, "merged")
        for issue in dict.fromkeys(_CLOSES.findall(record.body)):
            with suppress(NotFoundError):
                self.close_issue(int(issue))
        return merged

    def find_obstacle(self, number: int) -> SeptetError | None:
        """Return why Septet cannot merge a pull request; `None` if it can."""
        try:
            record = self._open_pull(number)
            merge_branch(self.git, record.base, record.head, "", only_try=True)
        except SeptetError as error:
            return error
        return None

    def close_pull_request(self, number: int) -> PullRequest:
        """Close an open pull request without a merge; its branch stays.

        Raises:
            NotFoundError: The repository has no pull request of this number.
            RefusedTransitionError: The pull request is not open.
        """
        self._open_pull(number)
        return self._mark(number, "closed")

    def open_pull_request(self, new: NewPullRequest) -> PullRequest:
        """Return the open pull request of branch `new.head`; if there is none, open one."""
        for branch in (new.head, new.base):
            if not self.sha_of(branch):
                raise ForgeError(f"{self.path} has no branch {branch}.", remedy="Push the branch first.")

        def find_or_open(contents: StoreContents) -> PullRequest | None:
            if pull_request := self._open(contents, new.head):
                return pull_request
            record = LocalPull(
                number=next_number(contents, "pull"),
                head=new.head,
                base=new.base,
                title=new.bounded_title,
                body=new.marked_body,
                draft=new.draft,
                labels=label_names(new.labels),
            )
            return self.pull_from(record) if self.put(contents, "pull", record) else None

        return self.until_done(find_or_open)

    def add_to_pull_request(self, number: int, new: NewPullRequest) -> None:
        """Add another work order to a pull request's text; see `Forge.add_to_pull_request`."""

        def add(contents: StoreContents) -> bool | None:
            there = self.pull_record(contents, number)
            body = new.added_to(there.body)
            is_there = body == there.body or self.put(contents, "pull", there.model_copy(update={"body": body}))
            return is_there or None

        self.until_done(add)

    def list_pull_requests(self) -> tuple[tuple[PullRequest, str], ...]:
        """Return all pull requests in their present state, with their titles, oldest first.

        Raises:
            NotFoundError: There is no repository.
        """
        records = self.records_of(self.store.read(), "pull", LocalPull)
        titles = (record.title for record in records)
        return tuple(zip(self._as_they_are(records, self._tips()), titles, strict=True))

    def pull_request_text(self, number: int) -> tuple[str, str]:
        """Return title and body of a pull request.

        Raises:
            NotFoundError: The repository has no pull request of this number.
        """
        record = self.pull_record(self.store.read(), number)
        return record.title, record.body

    def pull_request_patch(self, number: int) -> str:
        """Return the changes of a pull request's branch as a patch, even after its merge.

        Raises:
            NotFoundError: The repository has no pull request of this number.
            ForgeError: Its branch is gone.
        """
        pull = self.pull_request(number)
        if not pull.head_sha:
            raise ForgeError(f"The branch {pull.head} of pull request {number} is gone.")
        base = f"refs/heads/{pull.base}"
        if pull.state == "merged":
            merges = map(str.split, self.git.text("rev-list", "--merges", "--parents", base).splitlines())
            base = next((parents[0] for _, *parents in merges if pull.head_sha in parents[1:]), base)
        options = ("--no-color", "--no-ext-diff", "--no-textconv")
        return self.git.run("diff", *options, f"{base}...{pull.head_sha}").decode("utf-8", "replace")

    def _open_pull(self, number: int) -> LocalPull:
        record = self.pull_record(self.store.read(), number)
        if (state := self._as_it_is(record, "").state) != "open":
            message = f"Pull request {number} of {self.path} is {state}."
            raise RefusedTransitionError(message, remedy=f"See it: septet pr show {number}")
        return record

    def _mark(self, number: int, state: Literal["closed", "merged"]) -> PullRequest:
        def mark(contents: StoreContents) -> PullRequest | None:
            record = self.pull_record(contents, number).model_copy(update={"state": state})
            return self.pull_from(record) if self.put(contents, "pull", record) else None

        return self.until_done(mark)

    def _tips(self) -> dict[str, str]:
        """Return the commit of each branch, and of the ref with the records."""
        listing = self.git.text("for-each-ref", "--format=%(refname) %(objectname)", REF, "refs/heads/")
        pairs = (line.rpartition(" ") for line in listing.splitlines())
        return {name.removeprefix("refs/heads/"): sha for name, _, sha in pairs}

    def _as_they_are(self, records: list[LocalPull], tips: dict[str, str]) -> Iterator[PullRequest]:
        """Yield pull requests in their present state; git runs once for each base, not for each pull request."""
        merged = {
            base: self._merged_branches(base) for base in {each.base for each in records if each.state == "open"}
        }
        for record in records:
            is_merged = record.head in merged.get(record.base, ())
            yield _in_state(self.pull_from(record, tips.get(record.head, "")), is_merged=is_merged)

    def _merged_branches(self, base: str) -> frozenset[str]:
        """Return the branches whose commits a base contains; empty if the base does not exist."""
        options = (f"--merged=refs/heads/{base}", "--format=%(refname:lstrip=2)")
        return frozenset(self.git.try_run("for-each-ref", *options, "refs/heads/").stdout.decode().splitlines())

    def _as_it_is(self, record: LocalPull, commit: str) -> PullRequest:
        pull_request = self.pull_from(record)
        if record.state != "open":
            return pull_request
        is_merged = holds(self.git, record.base, pull_request.head_sha or commit)
        return _in_state(pull_request, is_merged=is_merged)

    def _open(self, contents: StoreContents, head: str) -> PullRequest | None:
        pulls = self.records_of(contents, "pull", LocalPull, naming=head)
        return next((self.pull_from(pull) for pull in pulls if pull.head == head and pull.state == "open"), None)


def _in_state(pull_request: PullRequest, *, is_merged: bool) -> PullRequest:
    """Return a pull request in its present state; an open one without its branch is closed."""
    if pull_request.state != "open" or (pull_request.head_sha and not is_merged):
        return pull_request
    return replace(pull_request, state="merged" if is_merged else "closed")
