"""Feedback on a pull request that an agent must answer: failed checks, reviews, threads, conflicts.

Septet's replies have hidden marks. Therefore no event gets two replies, even if a host's records were lost or
another process reads the pull request.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pydantic import JsonValue

from septet.contracts.rework import MOST_EVENTS, TITLE_LIMIT, ReworkEvent
from septet.forges.forge import Conversation, FollowedForge
from septet.forges.issue_history import Writers
from septet.forges.limits import LOG_LIMIT
from septet.forges.values import Comment, CommitCheck, PullRequest, Review, ReviewThread
from septet.outgoing.text import readable
from septet.outgoing.visible import visible_line, visible_text
from septet.system.text import cut, without_controls

BODY_LIMIT: Final = 8000
"""The most characters of one comment."""
_MOST_SHOWN: Final = 10
"""The most comments of one thread that an agent gets; the newest ones are chosen."""
_OURS: Final = "<!-- septet: "
_ANSWERED: Final = re.compile(r"<!-- septet answers: ([\x21-\x7e]{1,200}) -->")


def mark_answer(event_id: str) -> str:
    """Return the hidden mark for a reply to an event, by which Septet finds the reply."""
    return f"<!-- septet answers: {event_id} -->"


@dataclass(slots=True)
class Feedback:
    """The feedback on a pull request, without feedback that an agent has already answered."""

    pull_request: PullRequest
    conversation: Conversation | None
    writers: Writers | None = None
    failures: tuple[CommitCheck, ...] = ()
    reviews: dict[str, Review] = field(default_factory=dict)
    threads: dict[str, ReviewThread] = field(default_factory=dict)
    events: tuple[ReworkEvent, ...] = ()

    def words_on(self, event_ids: Collection[str]) -> dict[str, JsonValue]:
        """Return the feedback of the named events as agents get it, with the end of each failed check's log.

        Raises:
            ForgeUnavailableError: The forge did not answer.
            ForgeError: The forge refused.
        """
        checks = self.failures if f"checks:{self.pull_request.head_sha}" in event_ids else ()
        shown: list[JsonValue] = []
        for check in checks[:5]:
            log = self.conversation.check_log(check) if self.conversation is not None else ""
            shown.append({"name": visible_line(check.name), "url": check.url, "log": readable(log)[-LOG_LIMIT:]})
        return {
            "checks": shown,
            "reviews": [_in_form(each) for event, each in self.reviews.items() if event in event_ids],
            "threads": [self._thread(each) for event, each in self.threads.items() if event in event_ids],
        }

    def _thread(self, thread: ReviewThread) -> JsonValue:
        """Return a thread's newest comments; of those by authors who may not push, return only the number."""
        newest = [each.comment for each in thread.comments[-_MOST_SHOWN:]]
        kept = [each for each in newest if self.writers is None or self.writers.may_write(each.author)]
        comments: list[JsonValue] = [_in_form(each) for each in kept]
        place: dict[str, JsonValue] = {"thread": thread.id, "path": thread.path, "line": thread.line}
        left_out = {"left_out": len(newest) - len(kept)} if len(kept) < len(newest) else {}
        return place | {"comments": comments} | left_out


def read_feedback(
    forge: FollowedForge, number: int, commit: str = "", trusted_accounts: Iterable[str] = ()
) -> Feedback:
    """Return the unanswered feedback on a pull request; empty if the pull request has ended.

    `commit` is the branch's last known commit; `trusted_accounts` count like accounts that may push.

    Raises:
        NotFoundError: The worker can see no pull request of this number.
        ForgeUnavailableError: The forge did not answer.
        ForgeError: The forge refused.
    """
    pull_request = forge.pull_request(number, commit)
    if pull_request.state != "open":
        return Feedback(pull_request, None)
    conversation = forge.conversation(number)
    writers = Writers(forge, trusted_accounts)
    feedback = Feedback(pull_request, conversation, writers)
    checks = forge.checks(pull_request.head_sha) if pull_request.head_sha else ()
    if not any(check.state == "pending" for check in checks):
        feedback.failures = tuple(check for check in checks if check.state == "failure")
    comments = conversation.comments()
    for event, review in _requests(forge.reviews(number), comments):
        if writers.may_write(review.author):
            feedback.reviews[event] = review
    for thread in conversation.threads():
        last = thread.comments[-1]
        if _OURS not in last.comment.body and writers.may_write(last.comment.author):
            feedback.threads[f"thread:{thread.id}:{last.id}"] = thread
    events = tuple(_events(feedback))
    answered: set[str] = set()
    for comment in comments if events else ():
        answers = _ANSWERED.findall(comment.body)
        if answers and writers.may_write(comment.author):  # because any account can add a mark
            answered.update(answers)
    feedback.events = tuple(each for each in events if each.id not in answered)[:MOST_EVENTS]
    return feedback


def _requests(reviews: Sequence[Review], comments: Sequence[Comment]) -> Iterator[tuple[str, Review]]:
    """Yield the reviews that request changes, with their event ids; skip authors who approved later.

    If the forge reports a review without text, the last comment of the review's author is the text.
    """
    standing = {each.author: each.state for each in reviews if each.state != "commented"}
    for review in reviews:
        if review.state != "changes_requested" or standing[review.author] != "changes_requested":
            continue
        if review.id:
            yield f"review:{review.id}", review
            continue
        own = [each for each in comments if each.author == review.author and _OURS not in each.body]
        if own:
            yield f"review:{review.author}@{len(own)}", replace(review, body=own[-1].body)


def _events(feedback: Feedback) -> Iterator[ReworkEvent]:
    pull_request = feedback.pull_request
    if feedback.failures:
        names = ", ".join(check.name for check in feedback.failures)
        yield _event(f"checks:{pull_request.head_sha}", "checks", f"checks failed: {names}")
    for event, review in feedback.reviews.items():
        yield _event(event, "review", f"{review.author} asks for changes")
    for event, thread in feedback.threads.items():
        last, line = thread.comments[-1].comment, f":{thread.line}" if thread.line else ""
        yield _event(event, "review", f"{last.author} on {thread.path}{line}")
    if pull_request.conflicts:
        base = pull_request.base_sha
        yield _event(
            f"conflict:{pull_request.head_sha}:{base}", "conflict", f"it conflicts with {pull_request.base}"
        )


def _event(event_id: str, kind: str, title: str) -> ReworkEvent:
    plain = "".join(character for character in event_id if "!" <= character <= "~")[:TITLE_LIMIT]
    values = {"id": plain, "kind": kind, "title": cut(" ".join(without_controls(title).split()), TITLE_LIMIT)}
    return ReworkEvent.model_validate(values)


def _in_form(words: Comment | Review) -> JsonValue:
    return {
        "author": words.author,
        "standing": words.standing,
        "body": cut(visible_text(words.body), BODY_LIMIT),
    }
