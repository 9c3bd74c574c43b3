"""The tree of errors: a class's docstring is its default message; `retryable` states whether a retry can help."""

from typing import ClassVar


class SeptetError(Exception):
    """Something went wrong."""

    retryable: ClassVar[bool] = False
    """Whether a repeated call may succeed without a person's help."""
    most_tries: ClassVar[int | None] = None
    """The number of tries after which a person must act; `None`: tries are limited only by time."""
    default_remedy: ClassVar[str] = ""

    def __init__(self, message: str = "", *, remedy: str = "", retry_after_seconds: float | None = None) -> None:
        """Make the error; `message` says what happened and where, and `remedy` how to continue."""
        self.message = message or (type(self).__doc__ or "").strip()
        self.remedy = remedy or self.default_remedy
        self.retry_after_seconds = retry_after_seconds
        super().__init__(self.message)

    def __str__(self) -> str:
        """Return the message and the remedy as one text."""
        return f"{self.message} {self.remedy}".strip()


class InvalidInputError(SeptetError):
    """The input is not valid."""


class CircleError(InvalidInputError):
    """Work orders would wait for each other for ever."""

    default_remedy = "Leave one of them out of `after` (`--after`)."


class UsageError(SeptetError):
    """The command line is wrong."""


class NotFoundError(SeptetError):
    """Not found."""


class ServerNotReachedError(SeptetError):
    """The Temporal server was not reached."""

    default_remedy = "Start one with `septet up`, or name one with --address."


class SealedError(SeptetError):
    """This is sealed, and no key is set here."""

    default_remedy = "Set SEPTET_SEAL_KEYS_FILE or SEPTET_SEAL_KEYS_COMMAND as the workers have it."


class UnknownKeyError(SealedError):
    """The key that something is sealed with is not known here."""

    retryable = True
    default_remedy = "Add the key to what SEPTET_SEAL_KEYS_FILE or SEPTET_SEAL_KEYS_COMMAND names."


class DamagedSealError(SealedError):
    """What is sealed was changed, or somebody else made it."""

    default_remedy = ""


class MetricsAddressError(SeptetError):
    """Metrics cannot be served."""

    default_remedy = "Set SEPTET_METRICS to a free address of this machine, such as 127.0.0.1:9464."


class RefusedTransitionError(SeptetError):
    """It cannot be changed that way."""


class RetryUnderWayError(RefusedTransitionError):
    """Someone else is retrying the work order right now."""

    retryable = True


class AlreadyRunningError(SeptetError):
    """It is already running."""


class CommandError(SeptetError):
    """A command file cannot be used."""


class RepositorySettingsError(SeptetError):
    """The repository's own settings cannot be used."""


class SetupError(SeptetError):
    """The repository's set-up failed."""


class BaseFailsError(SeptetError):
    """The repository's checks fail before any work."""


class LockHeldError(SeptetError):
    """Another process keeps a lock."""

    retryable = True


class GitError(SeptetError):
    """git failed."""


class GitUnavailableError(GitError):
    """git could not reach the remote."""

    retryable = True


class RemoteFullError(GitUnavailableError):
    """The remote has no room."""

    default_remedy = "Septet tries again until there is room on the remote's machine."


class GitBusyError(GitError):
    """Another git works there."""

    retryable = True
    most_tries = 5


class MirrorMendedError(GitError):
    """The mirror was damaged, and has been fetched again."""

    retryable = True
    most_tries = 3


class WorkspaceError(SeptetError):
    """The workspace cannot be used."""


class WorkspaceBusyError(WorkspaceError):
    """Somebody else writes in the workspace now."""

    retryable = True


class HostFullError(SeptetError):
    """Another host may have a slot for the agents of a work order."""

    retryable = True


class SupersededError(SeptetError):
    """A later attempt has taken over."""

    retryable = True


class HaltedError(SeptetError):
    """It was stopped from outside."""


class BudgetSpentError(SeptetError):
    """A budget is used up."""

    retryable = True


class EvidenceError(SeptetError):
    """Git or the forge does not confirm what the agent says."""


class SnapshotError(SeptetError):
    """A snapshot could not be taken or restored."""


class ForgeError(SeptetError):
    """The forge refused."""


class IssueChangedError(ForgeError):
    """The text of the issue may have changed since a person who may push requested the work."""

    default_remedy = "Read the issue as it is now: `septet retry` works on that text, `septet cancel` on none."


class ForgeUnavailableError(ForgeError):
    """The forge did not answer."""

    retryable = True


class ForgeLagsError(ForgeUnavailableError):
    """The forge does not show yet what was pushed."""

    most_tries = 30
    default_remedy = "Look at the branch and its pull request on the forge, then continue with `septet retry`."


class TrackerError(SeptetError):
    """The tracker refused."""


class TrackerUnavailableError(TrackerError):
    """The tracker did not answer."""

    retryable = True


class MachineFailedError(SeptetError):
    """The machine refused."""

    retryable = True
    most_tries = 5
    default_remedy = "Check the disk's space and permissions, then continue with `septet retry`."


class DiskFullError(MachineFailedError):
    """The disk is full."""

    default_remedy = (
        "Make room there: nothing was removed, and all work is kept. Septet tries again each minute, for "
        "SEPTET_DISK_WAIT_SECONDS; after that, run `septet retry`."
    )


class MachineBusyError(MachineFailedError):
    """The machine gives no more open files or processes."""

    default_remedy = (
        "Septet tries again until it does. Allow the worker more (`ulimit -n`, or LimitNOFILE= and TasksMax= of "
        "its unit), or set SEPTET_MAX_AGENTS lower, then restart the worker."
    )


class DiskReadOnlyError(MachineFailedError):
    """The disk is read-only."""

    most_tries = 3
    default_remedy = (
        "Find the reason in the system's log, mount it writable again, then continue with `septet retry`."
    )


class AgentError(SeptetError):
    """The agent could not do its work."""


class AgentMissingError(AgentError):
    """The agent's program was not found."""


class AgentApiError(AgentError):
    """The agent's model API refused."""

    may_be_of_session = False
    """Whether the API may refuse only this session: another session may get an answer."""


class AgentApiUnavailableError(AgentError):
    """The agent's model API is busy or out of reach."""

    retryable = True
    is_usage_limit = False
    """Whether the login's usage limit is reached: another start with the login would fail too."""


class AgentCrashedError(AgentError):
    """The agent ended without a result."""

    retryable = True


class AgentGaveUpError(AgentError):
    """The agent ended without a result, and so it did when it was resumed and started again."""


class AgentRefusedError(AgentError):
    """The agent's program refused to start."""


class SandboxError(AgentError):
    """There is no sandbox for agents."""


class AgentLimitError(AgentError):
    """The agent reached a limit."""
