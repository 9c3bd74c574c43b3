"""The issues of the `local` forge."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from septet.errors import ForgeError, NotFoundError
from septet.forges.issue_text import bounded_issue, bounded_list
from septet.forges.local.records import LocalComment, LocalIssue, LocalRecords, StoreContents, next_number
from septet.forges.opening import CommentPlace, MarkedComment, put_once
from septet.forges.renames import asked_for
from septet.forges.values import Issue, label_names, marker_of
from septet.system.text import timestamp

_OWN: Final = "septet"
"""The author of Septet's comments."""


@dataclass(frozen=True, slots=True)
class LocalIssues(LocalRecords):
    """The issues of a repository on disk."""

    def issue(self, number: int) -> Issue:
        """Return an issue; see `Forge.issue`."""
        return bounded_issue(asked_for(self.issue_from(self.issue_record(self.store.read(), number)), "", number))

    def find_issues(self, numbers: Sequence[int]) -> tuple[Issue, ...]:
        """Return the existing issues among `numbers`; see `Forge.find_issues`."""
        records = {record.number: record for record in self.records_of(self.store.read(), "issue", LocalIssue)}
        issues = (self.issue_from(records[number]) for number in numbers if number in records)
        return tuple(bounded_issue(replace(issue, comments=())) for issue in issues)

    def open_issues(self, label: str) -> tuple[Issue, ...]:
        """Return the open issues with a label; see `Forge.open_issues`."""
        records = self.records_of(self.store.read(), "issue", LocalIssue)
        issues = [self.issue_from(each) for each in records if each.state == "open" and label in each.labels]
        return bounded_list([replace(issue, comments=()) for issue in issues], label, "")

    def add_issue(self, title: str, body: str = "", labels: Sequence[str] = ()) -> Issue:
        """Add an open issue and return it.

        Raises:
            NotFoundError: There is no repository.
            ForgeUnavailableError: Other processes kept writing, so that all tries failed.
            ForgeError: The title is blank.
        """
        if not title.strip():
            raise ForgeError("An issue needs a title.")

        def add(contents: StoreContents) -> Issue | None:
            record = LocalIssue(
                number=next_number(contents, "issue"),
                title=title.strip(),
                body=body,
                labels=label_names(labels),
            )
            return self.issue_from(record) if self.put(contents, "issue", record) else None

        return self.until_done(add)

    def list_issues(self) -> tuple[Issue, ...]:
        """Return all issues, oldest first, without their comments.

        Raises:
            NotFoundError: There is no repository.
        """
        records = self.records_of(self.store.read(), "issue", LocalIssue)
        return tuple(replace(self.issue_from(record), comments=()) for record in records)

    def close_issue(self, number: int) -> Issue:
        """Close an issue and return it; a closed issue stays closed.

        Raises:
            NotFoundError: The repository has no issue of this number.
        """

        def close(contents: StoreContents) -> Issue | None:
            records = self.records_of(contents, f"issue-{number}.json", LocalIssue)
            if not records:
                raise NotFoundError(f"{self.path} has no issue {number}.", remedy="List them: septet issue list")
            record = records[0].model_copy(update={"state": "closed"})
            return self.issue_from(record) if self.put(contents, "issue", record) else None

        return self.until_done(close)

    def put_comment(self, number: int, marker: str, body: str) -> None:
        """Write one comment with a hidden mark on an issue; see `Forge.put_comment`."""

        def put(contents: StoreContents) -> bool | None:
            record = self.issue_record(contents, number)
            comments = list(record.comments)

            def create(text: str) -> None:
                comments.append(LocalComment(author=_OWN, body=text, created_at=timestamp(datetime.now(UTC))))

            def edit(index: int, text: str) -> None:
                comments[index] = comments[index].model_copy(update={"body": text})

            there = [MarkedComment(n, each.author, each.body) for n, each in enumerate(comments)]
            put_once(CommentPlace(lambda: there, create, edit, _OWN.__eq__), marker, body)
            after = record.model_copy(update={"comments": tuple(comments)})
            return after == record or self.put(contents, "issue", after) or None

        self.until_done(put)

    def has_comment(self, number: int, marker: str) -> bool:
        """Return whether an issue has a comment with a hidden mark; see `Forge.has_comment`."""
        record = self.issue_record(self.store.read(), number)
        mark = marker_of(marker)
        return any(mark in each.body and each.author == _OWN for each in record.comments)

    def set_label(self, number: int, label: str, instead_of: Sequence[str]) -> None:
        """Add `label` to an issue and remove the labels `instead_of`; see `Forge.set_label`."""

        def set_it(contents: StoreContents) -> bool | None:
            record = self.issue_record(contents, number)
            kept = [each for each in record.labels if each == label or each not in instead_of]
            labels = label_names([*kept, label])
            after = record.model_copy(update={"labels": labels})
            return after == record or self.put(contents, "issue", after) or None

        self.until_done(set_it)
