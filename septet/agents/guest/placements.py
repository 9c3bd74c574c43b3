"""Files and folders that a guest sees elsewhere than they lie, such as the folders of its own home.

A guest has written in its own folders before. What is mounted over a name in one of them would follow a link that
it left there, out of its world: so the places are made first, by `make_mount_points`, and are no links.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from septet.agents.guest.protections import Protection
from septet.system.guarded_folder import GuardedFolder


@dataclass(frozen=True, slots=True)
class OwnFolder:
    """A folder of the guest's own, seen where its program looks for it."""

    source: Path
    """Where it lies."""
    path: Path
    """Where it is seen."""
    writable: bool = True
    """Others see the same one where it is not."""

    def arguments(self) -> tuple[str, ...]:
        """Bind it; without it the guest does not start."""
        return ("--bind" if self.writable else "--ro-bind", str(self.source), str(self.path))


@dataclass(frozen=True, slots=True)
class PlacedInOwnFolder:
    """A file or folder of the machine that is seen in one of the guest's own folders."""

    source: Path
    folder: OwnFolder
    name: Path
    """Relative to that folder."""
    writable: bool = False

    def arguments(self) -> tuple[str, ...]:
        """Bind it; one that has gone since is no error."""
        how = "--bind-try" if self.writable else "--ro-bind-try"
        return (how, str(self.source), str(self.folder.path / self.name))


def make_mount_points(protections: Iterable[Protection]) -> None:
    """See that nothing is mounted over a link; the caller holds the writer's lock, so no guest is at work.

    Raises:
        OSError: The disk refused.
    """
    for each in protections:
        if isinstance(each, PlacedInOwnFolder) and each.source.exists():
            place = GuardedFolder(each.folder.source)
            place.make_place(str(each.name), is_folder=each.source.is_dir())
