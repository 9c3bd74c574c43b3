"""The conversation on a merge request of GitLab."""

from dataclasses import dataclass

from septet.errors import ForgeError, ForgeUnavailableError, NotFoundError
from septet.forges.gitlab.answers import GitLabDiscussionAnswer, GitLabNoteAnswer
from septet.forges.limits import LOG_LIMIT, LOG_TAIL_BYTES, MOST_THREADS
from septet.forges.opening import MarkedComment
from septet.forges.rest_conversation import RestConversation
from septet.forges.values import Comment, CommitCheck, ReviewThread, ThreadComment


@dataclass(frozen=True, slots=True)
class GitLabConversation(RestConversation):
    """The conversation on one merge request; see `Conversation`."""

    def threads(self) -> tuple[ReviewThread, ...]:
        """Return the unresolved discussions; see `Conversation.threads`."""
        threads = []
        for discussion in self._discussions():
            first = discussion.notes[0] if discussion.notes else None
            if first is None or not first.resolvable or all(note.resolved for note in discussion.notes):
                continue
            comments = tuple(ThreadComment(str(note.id), note.comment()) for note in discussion.notes)
            threads.append(ReviewThread(discussion.id, first.path, first.line, comments))
        return tuple(threads[-MOST_THREADS:])

    def comments(self) -> tuple[Comment, ...]:
        """Return the comments on the merge request as a whole; see `Conversation.comments`."""
        with self.forge.asking(f"the comments on {self.name}") as client:
            notes = self.forge.read_comments(client, self.path)
            return tuple(
                each.comment() for each in notes if isinstance(each, GitLabNoteAnswer) and each.type is None
            )

    def check_log(self, check: CommitCheck) -> str:
        """Return the end of a job's log, or a service's summary; see `Conversation.check_log`."""
        if not check.id.isdecimal():
            return check.summary[-LOG_LIMIT:]
        try:
            what = f"the log of {check.name} in {self.forge.project}"
            with self.forge.asking(what, tail_bytes=LOG_TAIL_BYTES) as client:
                headers = {"Range": f"bytes=-{LOG_TAIL_BYTES}"}
                trace = client.send("GET", f"jobs/{check.id}/trace", headers=headers).content
        except ForgeUnavailableError:
            raise
        except (ForgeError, NotFoundError):
            return check.summary[-LOG_LIMIT:]
        return trace.decode(errors="replace")[-LOG_LIMIT:]

    def replies(self, thread: ReviewThread) -> list[MarkedComment]:
        """Return the notes of a discussion."""
        discussions = (each for each in self._discussions() if each.id == thread.id)
        return [note.marked_comment() for each in discussions for note in each.notes]

    def create_reply(self, thread: ReviewThread, text: str) -> None:
        """Add a note to a discussion."""
        path = f"{self.path}/discussions/{thread.id}/notes"
        self.forge.write(f"a reply on {self.name}", "POST", path, {"body": text})

    def _discussions(self) -> list[GitLabDiscussionAnswer]:
        with self.forge.asking(f"the discussions of {self.name}") as client:
            return client.read_list(GitLabDiscussionAnswer, f"{self.path}/discussions")
