"""Read the state and the events of pull requests from their forge."""

from dataclasses import dataclass

from temporalio import activity

from activities.board.board import not_yet
from activities.host.cancellation import cancellable_thread
from activities.host.host import Host
from septet.contracts.pull_request_watch import PullRequestEnd, PullRequestLook
from septet.errors import SeptetError
from septet.forges.events.feedback import read_feedback
from septet.forges.events.polls import PullRequestPolls
from septet.forges.forge import FollowedForge, Forge
from septet.forges.values import PullRequestState, pull_request_number


@dataclass(frozen=True, slots=True)
class PullRequestActivities:
    """Reads pull requests from a forge with this host's key, or from a `local` forge on this host's disk."""

    host: Host

    @activity.defn(name="look_at_pull_request")
    async def look_at_pull_request(self, look: PullRequestLook) -> PullRequestEnd:
        """Return how a pull request ended, or the events that its agent must answer. Idempotent; writes nothing.

        Raises:
            ApplicationError: The pull request is open and no agent follows it, or the forge did not answer;
                Temporal retries after a growing pause.
        """
        settings = self.host.settings
        try:
            end = await cancellable_thread(self.host.threads.network, look_at, self.host, look)
        except SeptetError as error:
            raise not_yet(str(error), settings, kind=error_kind(error), rarely=not error.retryable) from error
        if end.state == "open" and not look.follows:
            raise not_yet(f"{look.url} is open.", settings, kind="PullRequestOpen")
        return end


def look_at(host: Host, look: PullRequestLook) -> PullRequestEnd:
    """Return a pull request's state and events.

    Raises:
        SeptetError: The forge did not answer.
    """
    _, forge = host.forges.of(look.repository)
    state = forge.pull_request(pull_request_number(look.url), look.commit).state
    return _with_events(host, forge, look, state)


def look_by_polls(host: Host, polls: PullRequestPolls, look: PullRequestLook) -> PullRequestEnd:
    """Return the same as `look_at`, but with one request for all pull requests of the repository.

    If an agent follows the pull request, further requests read its checks, reviews and comments.

    Raises:
        SeptetError: The forge did not answer.
    """
    _, forge = host.forges.of(look.repository)
    number = pull_request_number(look.url)
    state = polls.state(look.repository, forge, number, look.commit)
    return _with_events(host, forge, look, state)


def _with_events(host: Host, forge: Forge, look: PullRequestLook, state: PullRequestState) -> PullRequestEnd:
    if state != "open" or not look.follows or not isinstance(forge, FollowedForge):
        return PullRequestEnd(state=state)
    feedback = read_feedback(forge, pull_request_number(look.url), look.commit, host.settings.trusted_accounts)
    return PullRequestEnd(state=feedback.pull_request.state, events=feedback.events)


def error_kind(error: SeptetError) -> str:
    """Return the name of an error's type without the ending "Error"."""
    return type(error).__name__.removesuffix("Error")
