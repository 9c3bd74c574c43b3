"""Files and folders that a guest sees at another path, for example the folders of its own home.

A guest may have written in its own folders before. A mount over a name in an own folder would follow a link that
the guest left, and so leave the guest's world. So `make_mount_points` first makes mount points that are no links.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from septet.agents.guest.world import Protection
from septet.system.guarded_folder import GuardedFolder


@dataclass(frozen=True, slots=True)
class OwnFolder:
    """A folder of the guest's own, at the path that its program expects."""

    source: Path
    """The folder on the machine."""
    path: Path
    """The path for the guest."""
    writable: bool = True
    """Whether the guest may write; several guests read a folder that is not writable."""

    def arguments(self) -> tuple[str, ...]:
        """Bind the folder; without the folder the guest does not start."""
        return ("--bind" if self.writable else "--ro-bind", str(self.source), str(self.path))


@dataclass(frozen=True, slots=True)
class PlacedInOwnFolder:
    """A file or folder of the machine inside one of the guest's own folders."""

    source: Path
    folder: OwnFolder
    name: Path
    """The path relative to `folder`."""
    writable: bool = False

    def arguments(self) -> tuple[str, ...]:
        """Bind the source; a missing source is no error."""
        how = "--bind-try" if self.writable else "--ro-bind-try"
        return (how, str(self.source), str(self.folder.path / self.name))


def make_mount_points(protections: Iterable[Protection]) -> None:
    """Make the mount points, without links; the caller holds the writer's lock, so no guest is at work.

    Raises:
        OSError: The disk refused.
    """
    for each in protections:
        if isinstance(each, PlacedInOwnFolder) and each.source.exists():
            place = GuardedFolder(each.folder.source)
            place.make_place(str(each.name), is_folder=each.source.is_dir())
