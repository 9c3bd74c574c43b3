"""What a CLI can do for the engine beside its work."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Facts about one CLI, measured with the versions that are named."""

    tested_version: str
    """The newest that was tested; empty for a program that is configured."""
    memory_mib: int
    """The resident memory of all its processes in a turn, as measured with that version; its tools come on top."""
    tested_since: str = ""
    """The oldest that was tested; the newest itself when empty."""
    own_session_id: bool = False
    """It takes the id of a new session, which is then known before its first event."""
    resumes: bool = True
    """It can go on with a session that came to its end."""
    resumes_after_kill: bool = True
    """It can go on with a session whose process was killed."""
    schema: bool = False
    """It takes the answer's JSON Schema."""
    without_tools: bool = False
    """It can be started with no tools at all; else with its most restricted mode."""
    input_stream: bool = False
    """One process of it can serve many turns: it reads them from its stdin, a JSON line each, as claude does."""
    turn_limit: bool = False
    """It holds a limit of turns itself."""
    needs_login: bool = True
    """It works only with a login or a key."""
    login_files: tuple[str, ...] = ()
    """What it logs in with, beside variables, the login itself first; `~` is the user's home. Bound or linked,
    never copied: what refreshes a copy breaks the user's own login."""
    login_variables: tuple[str, ...] = ()
    """Variables of which any one is a login."""
    home: tuple[str, str] = ("", "")
    """The variable that moves its folder, and where that is without it."""
    packages: tuple[str, ...] = ()
    """What it unpacks of itself in the user's home on its first start, which takes long; `~` as above."""
    names_files: bool = False
    """Its command line is the worker's own, and may name files that it reads."""
    session_files: str = ""
    """Where in that folder a session lies, as a pattern with `{id}`; empty where files do not bring one back."""
