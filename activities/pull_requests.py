"""Pull requests: what became of them on their forge."""

from dataclasses import dataclass

from temporalio import activity

from activities._polling import not_yet
from activities.cancellation import cancellable_thread
from activities.host import Host
from septet.contracts.pull_request import PullRequestEnd, PullRequestLook
from septet.errors import SeptetError
from septet.forges.forge import PullRequestState, pull_request_number
from septet.forges.polls import PolledForge, PullRequestPolls


@dataclass(frozen=True, slots=True)
class PullRequestActivities:
    """Looks at pull requests, with this host's key or at this host's disk."""

    host: Host

    @activity.defn(name="look_at_pull_request")
    async def look_at_pull_request(self, look: PullRequestLook) -> PullRequestEnd:
        """Return how a pull request ended. Idempotent; leaves nothing.

        Raises:
            ApplicationError: It is open, or the forge did not tell; Temporal looks again after a growing pause.
        """
        settings = self.host.settings
        try:
            state = await cancellable_thread(self.host.threads.network, state_of, self.host, look)
        except SeptetError as error:
            raise not_yet(str(error), settings, kind=error_kind(error), rarely=not error.retryable) from error
        if state == "open":
            raise not_yet(f"{look.url} is open.", settings, kind="PullRequestOpen")
        return PullRequestEnd(state="merged" if state == "merged" else "closed")


def state_of(host: Host, look: PullRequestLook) -> PullRequestState:
    """Return whether a pull request is open, merged or closed, with this host's key or from its disk.

    Raises:
        SeptetError: The forge did not tell.
    """
    _, forge = host.forge(look.repository)
    return forge.pull_request(pull_request_number(look.url), look.commit).state


def polled_state_of(host: Host, polls: PullRequestPolls, look: PullRequestLook) -> PullRequestState:
    """Return the same, by one question to the repository for all of its pull requests.

    Raises:
        SeptetError: The forge did not tell.
    """
    address, forge = host.forge(look.repository)
    number = pull_request_number(look.url)
    if isinstance(forge, PolledForge):
        return polls.state(address.url, forge, number)
    return forge.pull_request(number, look.commit).state


def error_kind(error: SeptetError) -> str:
    """Return an error's type as people read it."""
    return type(error).__name__.removesuffix("Error")
