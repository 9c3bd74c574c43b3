"""Create a pull request, comment or label only once, even if the forge creates it and reports an error."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from septet.errors import ForgeError, ForgeLagsError, ForgeUnavailableError, NotFoundError, SeptetError
from septet.forges.forge import Forge
from septet.forges.values import NewPullRequest, PullRequest, marker_of

if TYPE_CHECKING:
    from septet.forges.http.client import ApiClient

Find = Callable[[str], PullRequest | None]
Create = Callable[[NewPullRequest], PullRequest]
Addition = tuple[str, Sequence[str], Callable[["ApiClient", int], object]]
"""Something to add to a pull request: its kind in words, the names to add, and the function that adds them."""

_LAGS: Final = re.compile(
    r"PullRequest head invalid|no commits between|no changes between|source.branch.* does not exist"
    r"|target couldn't be found",
    re.IGNORECASE,
)
"""Errors of GitHub, GitLab 19 and Gitea about a branch that was just pushed, because their servers lag."""


def added_by(method: str, path: str, what: str, names: Sequence[str]) -> Addition:
    """Return an addition that sends `names` as field `what`; `{}` in `path` is the pull request's number."""
    return what, names, lambda client, number: client.write(method, path.format(number), {what: names})


def open_once(find: Find, create: Create, new: NewPullRequest) -> PullRequest:
    """Return the open pull request of branch `new.head`; if there is none, open one.

    After an error the pull request is searched again, because the forge may have opened it. Two callers at once
    get the same pull request, because each forge refuses a second one.

    Raises:
        ForgeUnavailableError: The forge did not answer, or reports an open pull request that is not listed yet.
        ForgeLagsError: The forge does not know the branch yet, or the branch has no changes; a retry shows which.
        ForgeError: The forge refused.
    """
    if (there := find(new.head)) is not None:
        return there
    try:
        return create(new)
    except (ForgeError, NotFoundError) as error:
        there = None
        with suppress(SeptetError):  # the first error has more information
            there = find(new.head)
        if there is not None:
            return there
        if "already exists" in error.message and not isinstance(error, ForgeUnavailableError):
            raise ForgeUnavailableError(f"{error.message} It is not shown yet.") from error
        if _LAGS.search(error.message):
            raise ForgeLagsError(error.message, remedy=error.remedy, retry_after_seconds=2.0) from error
        raise


def own_pull_request(
    forge: Forge,
    there: Iterable[PullRequest],
    work_order_id: str,
    sha: str,
    *,
    states: Collection[str] = ("open",),
) -> PullRequest | None:
    """Return the pull request in `there` that the worker opened for a work order at commit `sha`, or `None`.

    Anybody who may push can copy a branch's name, a commit and a mark, but cannot use the worker's account.

    Raises:
        ForgeUnavailableError: The forge did not answer.
    """
    of_order = [each for each in there if each.is_of(work_order_id)]
    stands = [each for each in of_order if each.state in states and each.head_sha == sha]
    return next((each for each in stands if forge.is_own(each.author)), None)


@dataclass(frozen=True, slots=True)
class MarkedComment:
    """A comment that may have a hidden mark of Septet; anybody can copy a mark."""

    id: int
    author: str
    body: str


@dataclass(frozen=True, slots=True)
class CommentPlace:
    """Where comments can be read and written: an issue, a pull request, or a thread."""

    comments: Callable[[], Sequence[MarkedComment]]
    """Lists the comments, from the oldest."""
    create: Callable[[str], object]
    edit: Callable[[int, str], object]
    is_own: Callable[[str], bool]
    """Returns whether an account is the worker's own."""

    def find_marked(self, marker: str) -> Iterator[MarkedComment]:
        """Yield the worker's comments with the hidden mark `marker`, oldest first."""
        mark = marker_of(marker)
        yield from (each for each in self.comments() if mark in each.body and self.is_own(each.author))

    def has(self, marker: str) -> bool:
        """Return whether the worker has written a comment with the hidden mark `marker`."""
        return next(self.find_marked(marker), None) is not None


def put_once(place: CommentPlace, marker: str, body: str) -> None:
    """Write `body` into the worker's oldest comment with the hidden mark `marker`, or else into a new one.

    After an error the comments are read again, because the forge may have written the comment.

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
        except (ForgeError, NotFoundError):  # if the own account is unknown, the comment may be another account's
            continue
        return
    try:
        place.create(text)
    except (ForgeError, NotFoundError):
        is_there = False
        with suppress(SeptetError):  # the first error has more information
            is_there = place.has(marker)
        if not is_there:
            raise


def label_once(
    labels: Callable[[], Collection[str]],
    change: Callable[[str, Sequence[str]], object],
    label: str,
    others: Sequence[str],
) -> None:
    """Add `label` to an issue and remove `others`; send nothing if the labels are right already.

    `change` takes the label to add, or an empty text, and the labels to remove. After an error the labels are read
    again, because the forge may have changed them.

    Raises:
        NotFoundError: The issue does not exist.
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
        with suppress(SeptetError):  # the first error has more information
            missing, surplus = lacking()
        if missing or surplus:
            raise


def without_links_to(plan: str, body: str) -> str:
    """Return a body without its links to the file `plan`, which the branch does not have."""
    target = rf"[^)\s>]{{0,500}}{re.escape(plan)}(?:#[^)\s>]{{0,100}})?"
    body = re.sub(rf"\[([^\]\n]{{0,300}})\]\({target}\)", r"\1", body)
    body = re.sub(rf"<?https?://{target}>?", f"`{plan}`", body)
    return f"{body.rstrip()}\n\nThe plan `{plan}` is not on this branch."
