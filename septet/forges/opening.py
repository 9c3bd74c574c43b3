"""Exactly one pull request, whatever the forge answers."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from septet.errors import ForgeError, ForgeLagsError, ForgeUnavailableError, NotFoundError, SeptetError
from septet.forges.forge import Forge, NewPullRequest, PullRequest, marker_of

if TYPE_CHECKING:
    from septet.forges.http.client import ApiClient

Find = Callable[[str], PullRequest | None]
Create = Callable[[NewPullRequest], PullRequest]
Addition = tuple[str, Sequence[str], Callable[["ApiClient", int], object]]
"""What is set on a pull request besides: what for people, the names, and what sets them."""

_LAGS: Final = re.compile(
    r"PullRequest head invalid|no commits between|no changes between|source.branch.* does not exist"
    r"|target couldn't be found",
    re.IGNORECASE,
)
"""What GitHub, GitLab 19 and Gitea say of a branch that they took a moment ago: servers of theirs lag behind."""
_LAG_SECONDS: Final = 2.0


def send_addition(method: str, path: str, body: Mapping[str, object], client: "ApiClient", number: int) -> None:
    """Set something on a pull request by one request, whose path has its number in braces."""
    client.write(method, path.format(number), body)


def open_once(find: Find, create: Create, new: NewPullRequest) -> PullRequest:
    """Return the one open pull request of `new.head`: the one that is there, or else a new one.

    An answer that is an error says nothing of what the forge has done: it is looked up again, and only what is
    not there then has failed. Two who ask at once get the same one, for each forge itself refuses a second.

    Args:
        find: Looks for the open pull request of a branch.
        create: Asks for a new one, without looking.
        new: What it is opened with.

    Raises:
        ForgeUnavailableError: The forge did not answer, or says that there is one and does not show it yet.
        ForgeLagsError: It does not know yet what was pushed, or there is nothing to open one for: tries tell.
        ForgeError: The forge refused.
    """
    if (there := find(new.head)) is not None:
        return there
    try:
        return create(new)
    except (ForgeError, NotFoundError) as error:
        there = None
        with suppress(SeptetError):  # the first error says more
            there = find(new.head)
        if there is not None:
            return there
        if "already exists" in error.message and not isinstance(error, ForgeUnavailableError):
            raise ForgeUnavailableError(f"{error.message} It is not shown yet.") from error
        if _LAGS.search(error.message):
            raise ForgeLagsError(error.message, remedy=error.remedy, retry_after_seconds=_LAG_SECONDS) from error
        raise


def own_pull_request(  # noqa: PLR0913 -- whose it is, and where it stands
    forge: Forge, head: str, fork: str, work_order_id: str, sha: str, *, states: Collection[str] = ("open",)
) -> PullRequest | None:
    """Return the pull request by which a work order has brought a branch to a commit; `None` where none has.

    Anybody who may push can copy a branch's name, a commit and a mark, but not the worker's account.

    Raises:
        ForgeUnavailableError: The forge did not answer.
        ForgeError: The forge refused.
    """
    there = [each for each in forge.pull_requests_of(head, fork) if each.is_of(work_order_id)]
    stands = [each for each in there if each.state in states and each.head_sha == sha]
    return next((each for each in stands if forge.is_own(each.author)), None)


@dataclass(frozen=True, slots=True)
class MarkedComment:
    """A comment that may carry a mark: anybody may copy one."""

    id: int
    author: str
    body: str


@dataclass(frozen=True, slots=True)
class CommentPlace:
    """Where comments stand: on an issue, on a pull request, or in a thread."""

    comments: Callable[[], Sequence[MarkedComment]]
    """Lists those that there are, from the oldest."""
    create: Callable[[str], object]
    edit: Callable[[int, str], object]
    is_own: Callable[[str], bool]
    """Says whether an account is the one that the worker writes by."""

    def find_marked(self, marker: str) -> Iterator[MarkedComment]:
        """Yield the comments with the mark of `marker` that the worker has written, from the oldest."""
        mark = marker_of(marker)
        yield from (each for each in self.comments() if mark in each.body and self.is_own(each.author))

    def has(self, marker: str) -> bool:
        """Return whether there is one."""
        return next(self.find_marked(marker), None) is not None


def put_once(place: CommentPlace, marker: str, body: str) -> None:
    """Have one comment with a mark say `body`: the worker's oldest that carries it, or a new one.

    After an answer that is an error the comments are looked up again, as `open_once` does.

    Args:
        place: Where.
        marker: The work order's id.
        body: What it is to say.

    Raises:
        ForgeUnavailableError: The forge did not answer.
        ForgeError: The forge refused.
    """
    text = f"{body.rstrip()}\n\n{marker_of(marker)}\n"
    for there in place.find_marked(marker):
        if there.body.strip() == text.strip():
            return
        try:
            place.edit(there.id, text)
        except ForgeUnavailableError:
            raise
        except (ForgeError, NotFoundError):  # of an account that cannot be told from the worker's
            continue
        return
    try:
        place.create(text)
    except (ForgeError, NotFoundError):
        is_there = False
        with suppress(SeptetError):  # the first error says more
            is_there = place.has(marker)
        if not is_there:
            raise


def label_once(
    labels: Callable[[], Collection[str]],
    change: Callable[[str, Sequence[str]], object],
    label: str,
    others: Sequence[str],
) -> None:
    """Have an issue carry `label` and none of `others`; what carries it already is left alone.

    After an answer that is an error the labels are looked up again, as `open_once` does.

    Args:
        labels: Lists the labels that it carries.
        change: Adds the one, where it is not empty, and removes the others: those alone that have to change.
        label: What it is to carry.
        others: What it is not to carry.

    Raises:
        NotFoundError: There is no such issue.
        ForgeUnavailableError: The forge did not answer.
        ForgeError: The forge refused.
    """

    def lacking() -> tuple[str, list[str]]:
        there = labels()
        return "" if label in there else label, [each for each in others if each in there and each != label]

    missing, surplus = lacking()
    if not missing and not surplus:
        return
    try:
        change(missing, surplus)
    except (ForgeError, NotFoundError):
        missing, surplus = label, [""]
        with suppress(SeptetError):  # the first error says more
            missing, surplus = lacking()
        if missing or surplus:
            raise


def without_links_to(plan: str, body: str) -> str:
    """Return a body that does not link to a plan that the branch lacks, as where the repository ignores it."""
    target = rf"[^)\s>]{{0,500}}{re.escape(plan)}(?:#[^)\s>]{{0,100}})?"
    body = re.sub(rf"\[([^\]\n]{{0,300}})\]\({target}\)", r"\1", body)
    body = re.sub(rf"<?https?://{target}>?", f"`{plan}`", body)
    return f"{body.rstrip()}\n\nThe plan `{plan}` is not on this branch."
