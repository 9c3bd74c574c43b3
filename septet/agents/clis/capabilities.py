"""The facts about a CLI that the engine uses."""

from collections.abc import Collection
from dataclasses import dataclass

from septet.agents.clis.login_files import LoginFile
from septet.agents.clis.plain_settings import SettingsFile


@dataclass(frozen=True, slots=True)
class ModelVariables:
    """Variables that name a CLI's model address and the keys for that address."""

    address: str
    keys: tuple[str, ...]
    requests: tuple[str, ...]
    """The requests that reach a model: see `model_place.py`."""
    usual_address: str = ""
    """The address without the variable; empty if the CLI then chooses it."""


@dataclass(frozen=True, slots=True)
class CompiledCode:
    """The compiled code that a CLI caches for a quick next start."""

    variable: str
    """The variable that names the folder."""
    place: str
    """A folder for it; `~` is the user's home."""
    words: tuple[str, ...]
    """The arguments with which the CLI only compiles all code of a turn, without a login."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Facts about one CLI, measured with the named versions."""

    tested_version: str
    """The newest tested version; empty for a configured program."""
    memory_mib: int
    """The measured resident memory of all its processes in a turn, without its tools."""
    provider: str = ""
    """The provider of its models, as OpenTelemetry names providers; empty if it may be any."""
    tested_since: str = ""
    """The oldest tested version; empty for the newest itself."""
    own_session_id: bool = False
    """Whether it takes the id of a new session, which is then known before the first event."""
    resumes: bool = True
    """Whether it can continue a session that ended."""
    resumes_after_kill: bool = True
    """Whether it can continue a session whose process was killed."""
    keeps_model: bool = False
    """Whether a resume without a model uses the session's last model, and not the CLI's default."""
    schema: bool = False
    """Whether it takes the answer's JSON Schema."""
    without_tools: bool = False
    """Whether it can start without any tool; else it starts in its most restricted mode."""
    input_stream: bool = False
    """Whether one process can serve many turns, which it reads from stdin as JSON lines, as claude does."""
    tells: tuple[str, ...] = ("usd", "tokens")
    """The amounts that its stream reports; the seconds of every CLI are known."""
    turn_limit: bool = False
    """Whether it enforces a limit of turns itself."""
    needs_login: bool = True
    """Whether it works only with a login or a key."""
    login_files: tuple[str, ...] = ()
    """The files of its login, beside variables, the login itself first; `~` is the user's home."""
    login_variables: tuple[str, ...] = ()
    """The variables that are logins, each by itself."""
    model_hosts: tuple[str, ...] = ()
    """The internet hosts that it reaches by https for its model and its login."""
    model_variables: tuple[ModelVariables, ...] = ()
    """The variables of model addresses and keys, with which its keys stay out of the sandbox."""
    home: tuple[str, str] = ("", "")
    """The variable that moves its folder, and the folder's place without the variable."""
    packages: tuple[str, ...] = ()
    """The folders that it, or the engine for it, unpacks in the user's home, and all guests read; `~` as above."""
    unpacks: str = ""
    """The folder among `packages` that its first start fills, even a start that only prints the version."""
    compiled: CompiledCode | None = None
    """Its compiled code: without `variable` it is in a temporary folder, and each guest would compile again."""
    logins: tuple[LoginFile, ...] = ()
    """The login files that are copied for a guest."""
    settings: tuple[SettingsFile, ...] = ()
    """Its settings files, with the keys that a guest gets."""
    session_copies: tuple[str, ...] = ()
    """Further patterns of a session's files in its first folder, for a copy to another home of the same host;
    `{start}` is the id's first eight characters."""
    notes_of_workspace: str = ""
    """The pattern of its notes about a workspace in that folder, which a new home receives; `{order}` is the work
    order in letters, digits and `-`."""
    session_database: str = ""
    """The database in that folder with all sessions."""
    names_files: bool = False
    """Whether its command line is the worker's own, and may name files that it reads."""
    closing: str = ""
    """The beginning of the line that ends an answer in plain text."""
    session_files: str = ""
    """The pattern of a session's files in that folder, with `{id}`; empty if files do not restore a session."""

    def untold(self, limited: Collection[str]) -> str:
        """Return a text on the limited amounts that the CLI does not report; empty if any limited amount is known.

        Args:
            limited: The amounts that a budget limits, of `usd`, `tokens` and `seconds`.
        """
        if not limited or "seconds" in limited or not {*self.tells}.isdisjoint(limited):
            return ""
        return "no dollars" if self.tells else "neither dollars nor tokens"
