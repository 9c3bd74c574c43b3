"""What a CLI can do for the engine beside its work."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Facts about one CLI, measured with the version that is named."""

    tested_version: str
    """Empty for a program that is configured."""
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
    turn_limit: bool = False
    """It holds a limit of turns itself."""
    login_files: tuple[str, ...] = ()
    """What it logs in with, beside variables; `~` is the user's home. Bound or linked, never copied: what
    refreshes a copy breaks the user's own login."""
