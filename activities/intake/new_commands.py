"""Find commands in comments during an intake's pass, for repositories without a webhook."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog

from septet.contracts.forge_events import CommandComment, CommentWritten, comment_workflow_id
from septet.contracts.intake import OBEYED_AT_ONCE, SEEN_LIMIT, FindIssues, IssuesFound
from septet.errors import ForgeError, NotFoundError
from septet.forges.events.comment_commands import parse_command
from septet.forges.events.webhooks import bounded_text
from septet.forges.forge import CommentedForge, Forge
from septet.forges.values import NewComment
from septet.system.text import timestamp

_OLDEST: Final = timedelta(days=3)
"""The greatest age of a command that is obeyed; it is the same for commands that a webhook delivers."""
_LATE: Final = timedelta(minutes=2)
"""How late a comment may appear in a forge's list, including the difference of clocks."""
_log = structlog.get_logger()


def find_commands(forge: Forge, request: FindIssues, issues: IssuesFound, key: str) -> IssuesFound:
    """Return the found issues together with the commands in comments since the previous pass.

    If the forge refuses to list comments, the result has only the issues.

    Args:
        key: `Address.key` of the repository, a part of the ids of the workflows that obey commands.

    Raises:
        ForgeUnavailableError: The forge did not answer.
    """
    if not request.comments_since or not isinstance(forge, CommentedForge):
        return issues
    since = max(datetime.fromisoformat(request.comments_since), datetime.now(UTC) - _OLDEST)
    try:
        listed = [each for each in forge.comments_since(since - _LATE) if _written_at(each) >= since - _LATE]
    except (ForgeError, NotFoundError) as error:
        if error.retryable:
            raise
        _log.warning("comments_not_listed", repository=request.repository, error=str(error))
        return issues
    listed.sort(key=_written_at)
    new = _take(listed, request.comments_seen, since, forge, key)
    return new.model_copy(update={"numbers": issues.numbers})


def _take(
    comments: list[NewComment], known_ids: Iterable[int], since: datetime, forge: Forge, key: str
) -> IssuesFound:
    """Return the first commands, as many as one pass obeys, and the time from which the next pass continues."""
    known, passed = frozenset(known_ids), list[NewComment]()
    commands: list[CommandComment] = []
    for comment in comments:
        command = None if comment.id in known else parse_command(comment.body)
        if command is not None and len(commands) == OBEYED_AT_ONCE:
            break
        passed.append(comment)
        if command is not None:
            name = comment_workflow_id(forge.name, key, comment.id)
            event = _event(forge, comment)
            commands.append(CommandComment(event=event, command=command, workflow_id=name))
    until = max([since, *(_written_at(each) for each in passed)])
    ids = tuple(each.id for each in passed)[-SEEN_LIMIT:]
    return IssuesFound(comments=tuple(commands), comments_until=timestamp(until), comments_seen=ids)


def _event(forge: Forge, comment: NewComment) -> CommentWritten:
    """Return a comment in the form in which a webhook would have reported it."""
    url = forge.pull_request(comment.number).url if comment.is_on_pull_request else ""
    return CommentWritten(
        forge=forge.name,
        repository="",
        number=comment.number,
        url=url,
        is_on_pull_request=comment.is_on_pull_request,
        comment_id=comment.id,
        author=comment.author,
        body=bounded_text(comment.body),
        created_at=comment.created_at,
    )


def _written_at(comment: NewComment) -> datetime:
    written = datetime.fromisoformat(comment.created_at)
    return written if written.tzinfo is not None else written.replace(tzinfo=UTC)
