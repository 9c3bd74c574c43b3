"""The repository's own checks, run before the commit in the agent's environment: argv, never a shell."""

from typing import Final

from septet.agents.clis.adapter import FOR_EVERY_AGENT, Machine, allowed
from septet.git.place import Place
from septet.repository_settings import RepositorySettings
from septet.system import processes

_OUTPUT_SHOWN: Final = 1200
"""Characters of a failing check's output that go back to the agent: its end says most."""


def failed_check(place: Place, settings: RepositorySettings, host: Machine) -> str | None:
    """Run the checks in their order and return what the first failing one printed; `None` when all pass."""
    env = allowed(host.env, FOR_EVERY_AGENT)
    for argv in settings.checks:
        shown = " ".join(argv)
        try:
            done = processes.run(argv, env=env, cwd=place.worktree, timeout_seconds=settings.check_seconds)
        except OSError as error:
            return f"The repository's check `{shown}` could not be started: {error.strerror}."
        if done.timed_out:
            return f"The repository's check `{shown}` took longer than {settings.check_seconds:.0f} s."
        if done.exit_code != 0:
            said = (done.stdout + done.stderr).decode(errors="replace").strip()[-_OUTPUT_SHOWN:]
            return f"The repository's check `{shown}` ended with {done.exit_code}:\n{said}"
    return None
