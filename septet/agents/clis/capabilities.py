"""Facts about a CLI: what the CLI can do, and where its files are."""

from collections.abc import Collection
from dataclasses import dataclass

from septet.agents.clis.login_files import LoginFile
from septet.agents.clis.plain_settings import SettingsFile


@dataclass(frozen=True, slots=True)
class ModelVariables:
    """The variables for a CLI's model address and for its keys."""

    address: str
    keys: tuple[str, ...]
    requests: tuple[str, ...]
    """The requests that reach a model: see `models.py`."""
    usual_address: str = ""
    """The address if the variable is not set; empty if the CLI then chooses an address."""


@dataclass(frozen=True, slots=True)
class CompiledCode:
    """The compiled code that a CLI stores to start quickly."""

    variable: str
    place: str
    """The folder for the compiled code; `~` is the user's home."""
    words: tuple[str, ...]
    """The arguments with which the CLI compiles all code of a turn, without a login, and then ends."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Facts about one CLI, measured with the named versions."""

    tested_version: str
    """The newest tested version; empty for a configured program."""
    memory_mib: int
    """The memory, in MiB, that the CLI's own processes use in a turn; tools do not count."""
    provider: str = ""
    """The provider of the CLI's models, by OpenTelemetry's name; empty if the CLI works with any provider."""
    tested_since: str = ""
    """The oldest tested version; empty if only `tested_version` was tested."""
    own_session_id: bool = False
    """Whether the CLI accepts an id for a new session; the id is then known before the first event."""
    resumes: bool = True
    resumes_after_kill: bool = True
    """Whether the CLI can continue a session whose process was killed."""
    keeps_model: bool = False
    """Whether a resume without a model uses the session's last model, and not the CLI's default."""
    schema: bool = False
    without_tools: bool = False
    """Whether the CLI can start without any tool; otherwise the CLI starts in its most restricted mode."""
    input_stream: bool = False
    """Whether one process of the CLI can serve many turns, which the process reads from stdin as JSON lines."""
    tells: tuple[str, ...] = ("usd", "tokens")
    """The amounts that the CLI's stream reports; Septet itself measures the seconds."""
    turn_limit: bool = False
    needs_login: bool = True
    login_files: tuple[str, ...] = ()
    """The files of the CLI's login; the first file holds the login itself. `~` is the user's home."""
    login_variables: tuple[str, ...] = ()
    """The variables with keys or tokens; one of the variables is enough for a login."""
    model_hosts: tuple[str, ...] = ()
    """The internet hosts to which the CLI connects by https for its model and its login."""
    model_variables: tuple[ModelVariables, ...] = ()
    """The variables of model addresses and keys; Septet replaces their values, so that keys stay out of the
    sandbox."""
    home: tuple[str, str] = ("", "")
    """The variable that names the CLI's folder, and the folder's path if the variable is not set."""
    packages: tuple[str, ...] = ()
    """The folders in the user's home into which the CLI, or Septet for the CLI, unpacks packages; all guests read
    them. `~` is the user's home."""
    unpacks: str = ""
    """The folder among `packages` that the CLI fills at its first start, even if the CLI then only
    prints its version."""
    compiled: CompiledCode | None = None
    """The CLI's compiled code. If `CompiledCode.variable` is not set, the CLI stores the code in a temporary
    folder, and each guest would compile again."""
    logins: tuple[LoginFile, ...] = ()
    settings: tuple[SettingsFile, ...] = ()
    """The CLI's settings files; each names the keys of the settings that a guest gets."""
    session_copies: tuple[str, ...] = ()
    """Further patterns of a session's files in the CLI's folder; files that match are copied only between homes of
    one host. `{start}` stands for the first eight characters of the session's id."""
    notes_of_workspace: str = ""
    """The pattern of the files with the CLI's notes about a workspace; a new home receives these files. `{order}`
    stands for the work order's id in letters, digits and `-`."""
    session_database: str = ""
    names_files: bool = False
    """Whether the worker's settings choose the whole command line, which may name files that the program reads."""
    closing: str = ""
    """The beginning of the line that the CLI prints after an answer in plain text."""
    session_files: str = ""
    """The pattern of a session's files in the CLI's folder, with `{id}`; empty if files do not restore a
    session."""

    def untold(self, limited: Collection[str]) -> str:
        """Return words such as `no dollars` if `limited` has only unknown amounts; otherwise, an empty text."""
        if not limited or "seconds" in limited or not {*self.tells}.isdisjoint(limited):
            return ""
        return "no dollars" if self.tells else "neither dollars nor tokens"
