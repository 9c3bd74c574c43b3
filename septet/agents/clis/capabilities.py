"""What a CLI can do for the engine beside its work."""

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
    """A command line on which it compiles all that a turn needs, and does nothing else: without a login."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Facts about one CLI, measured with the versions that are named."""

    tested_version: str
    """The newest that was tested; empty for a program that is configured."""
    memory_mib: int
    """The resident memory of all its processes in a turn, as measured with that version; its tools come on top."""
    provider: str = ""
    """The provider of its models, as OpenTelemetry names providers; empty if it may be any."""
    tested_since: str = ""
    """The oldest that was tested; the newest itself when empty."""
    own_session_id: bool = False
    """It takes the id of a new session, which is then known before its first event."""
    resumes: bool = True
    """It can continue a session that ended."""
    resumes_after_kill: bool = True
    """It can continue a session whose process was killed."""
    keeps_model: bool = False
    """A resume without a model uses the session's last model, and not the CLI's default."""
    schema: bool = False
    """It takes the answer's JSON Schema."""
    without_tools: bool = False
    """It can be started with no tools at all; else with its most restricted mode."""
    input_stream: bool = False
    """One process of it can serve many turns: it reads them from its stdin, a JSON line each, as claude does."""
    tells: tuple[str, ...] = ("usd", "tokens")
    """The amounts that its stream reports; the seconds of every CLI are known."""
    turn_limit: bool = False
    """It holds a limit of turns itself."""
    needs_login: bool = True
    """It works only with a login or a key."""
    login_files: tuple[str, ...] = ()
    """The files of its login, beside variables, the login itself first; `~` is the user's home."""
    login_variables: tuple[str, ...] = ()
    """Variables of which any one is a login."""
    model_hosts: tuple[str, ...] = ()
    """The internet hosts that it reaches by https for its model and its login."""
    model_variables: tuple[ModelVariables, ...] = ()
    """With these its keys stay out of the sandbox."""
    home: tuple[str, str] = ("", "")
    """The variable that moves its folder, and the folder's place without the variable."""
    packages: tuple[str, ...] = ()
    """What it, or the engine for it, unpacks in the user's home, to be read by all guests; `~` as above."""
    unpacks: str = ""
    """The folder among `packages` that its first start fills, even a start that only prints the version."""
    compiled: CompiledCode | None = None
    """Its compiled code: without `variable` it is in a temporary folder, and each guest would compile again."""
    logins: tuple[LoginFile, ...] = ()
    """The login files that are copied for a guest."""
    settings: tuple[SettingsFile, ...] = ()
    """Its settings: what of them a guest gets; what is not kept, a guest has not."""
    session_copies: tuple[str, ...] = ()
    """Where in the first of its folders else a session lies that is copied to another home of the same host;
    `{start}` is the id's first eight characters."""
    notes_of_workspace: str = ""
    """Where there it notes what it did in a workspace, as a pattern with `{order}`: the work order in letters,
    digits and `-`: these go along when a home is made."""
    session_database: str = ""
    """A database there that holds all sessions."""
    names_files: bool = False
    """Its command line is the worker's own, and may name files that it reads."""
    closing: str = ""
    """How a line begins behind which an answer that it prints as text is over."""
    session_files: str = ""
    """Where in that folder a session lies, as a pattern with `{id}`; empty where files do not bring one back."""

    def untold(self, limited: Collection[str]) -> str:
        """Return in words the limited amounts that the CLI does not report; empty if any limited amount is known.

        Args:
            limited: The amounts that a budget limits, of `usd`, `tokens` and `seconds`.
        """
        if not limited or "seconds" in limited or not {*self.tells}.isdisjoint(limited):
            return ""
        return "no dollars" if self.tells else "neither dollars nor tokens"
