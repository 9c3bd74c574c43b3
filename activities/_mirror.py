"""A step that fails over a damaged mirror: the mirror is fetched anew, and the agent is not paid again."""

from typing import Final

from activities._failures import is_tried_again
from activities._room import Host
from septet.errors import GitError, MirrorMendedError, SeptetError, SnapshotError, WorkspaceError
from septet.git.damage import looks_damaged
from septet.git.place import Place
from septet.system.disk import diagnosed

_RETRY: Final = "The worktree is kept; then `septet retry`."


def with_mirror_mended(host: Host, place: Place, error: SeptetError) -> SeptetError:
    """Mend the mirror where it may be what failed the step, and return the error that is left of it."""
    mended = MirrorMendedError(f"The mirror was damaged, and has been fetched again. {error.message}")
    is_git = isinstance(error, (GitError, SnapshotError, WorkspaceError))
    if error.retryable or not is_git or not looks_damaged(error.message) or not is_tried_again(mended):
        return error
    try:
        host.mend_mirror(place)
    except (SeptetError, OSError) as refusal:
        said = diagnosed(refusal, host.state.root)
        message = f"{error.message} The mirror could not be fetched again: {said.message}"
        return said if said.retryable else GitError(message, remedy=f"{said.remedy} {_RETRY}".strip())
    return mended
