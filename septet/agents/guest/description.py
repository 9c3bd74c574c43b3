"""The description of a guest: the parts of its sandbox, in one form for agents, checks and set-up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from septet.agents.guest import sandbox_parts as part
from septet.agents.guest.network import ModelKey, NamedHost, NetworkSettings, OwnNetwork
from septet.agents.guest.paths import NamedPath, OwnFolder, PlacedInOwnFolder
from septet.agents.guest.programs import Needs
from septet.agents.guest.system_calls import refused_system_calls
from septet.agents.guest.toolchains import toolchain_paths

_MEANINGLESS: Final = ("XDG_RUNTIME_DIR",)
"""The variables that are left out for guests, because they name files which no guest has."""


@dataclass(frozen=True, slots=True)
class Description:
    """The parts of a guest's sandbox, in the order in which they are mounted."""

    protections: tuple[part.Protection, ...]

    def arguments(self) -> tuple[str, ...]:
        """Return bubblewrap's arguments, without the contents of files and the filter of system calls."""
        return tuple(word for each in self.protections for word in each.arguments())

    @property
    def texts(self) -> Mapping[str, str]:
        """The contents of the files that are made for the guest, by their paths in the sandbox."""
        kinds = (part.OwnAccounts, part.HostNetwork, OwnNetwork)
        parts = (each for each in self.protections if isinstance(each, kinds))
        return {path: text for each in parts for path, text in each.texts().items()}

    @property
    def network(self) -> dict[str, Any] | None:
        """The rules of the guest's private network, for the supervisor; `None` for the machine's network."""
        return next((each.order() for each in self.protections if isinstance(each, OwnNetwork)), None)

    @property
    def system_calls(self) -> bytes:
        """The filter of system calls; empty if Septet has no filter for this machine."""
        return b"".join(each.program for each in self.protections if isinstance(each, part.RefusedSystemCalls))


@dataclass(frozen=True, slots=True)
class World:
    """What all guests of a host have in common: the home, named paths, hidden folders, and the network."""

    home: Path
    """The user's home, of which guests see only named paths."""
    named_paths: tuple[NamedPath, ...] = ()
    covered: tuple[Path, ...] = ()
    """The folders, such as the state directory, of which a guest sees only the files that belong to it, even if a
    named path contains such a folder."""
    way_out: NetworkSettings = field(default_factory=NetworkSettings)


@dataclass(frozen=True, slots=True)
class GuestFiles:
    """The files of the machine that one guest sees in addition to the system's files."""

    workspace: Path
    """The guest's working folder, which it reads and writes."""
    objects: Path | None = None
    """The folder with the mirror's git objects, which the workspace borrows."""
    program: Sequence[str] = ()
    """The program's path, and files that the worker's settings name. Never put a repository's text into this
    field, because the guest sees each named file."""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The guest's environment, whose variables may name files too."""
    own_folders: tuple[Path, ...] = ()
    """The folders of the guest's CLI in the user's home, with login and sessions."""
    home_folders: tuple[OwnFolder, ...] = ()
    """The folders of the guest's CLI in the work order's home, in place of `own_folders`."""
    own_packages: tuple[Path, ...] = ()
    """The packages that the guest's CLI has unpacked in the user's home, which the guest only reads."""
    hosts: tuple[NamedHost, ...] = ()
    """The network hosts to which the guest's CLI connects for its model and its login."""
    own_hosts: tuple[NamedHost, ...] = ()
    """The network hosts of model APIs that the worker's settings name; these hosts may be on any network."""
    models: tuple[ModelKey, ...] = ()
    """The model APIs whose keys stay outside the sandbox."""
    source: Path | None = None
    """The folder that the guest sees as its workspace; `None` for the workspace itself."""


def describe(world: World, files: GuestFiles) -> Description:
    """Return the description of a guest; later mounts lie on top of earlier mounts.

    Every path is mounted at its real place, with the links that lead to this place.
    """
    needs = Needs(files.env.get("PATH", ""), world.home)
    home, workspace = needs.trace(world.home), needs.trace(files.workspace)
    home_folders = tuple(replace(each, path=needs.trace(each.path)) for each in files.home_folders)
    inside = tuple(_place(each, files.home_folders, home_folders) for each in world.named_paths)
    named = tuple(
        part.Binding(needs.trace(each.path), each.writable)
        for each, place in zip(world.named_paths, inside, strict=True)
        if place is None
    )
    folders = (needs.trace(path) for path in files.own_folders if path.exists())
    own_folders = tuple(part.Binding(path, writable=True) for path in folders)
    objects = () if files.objects is None else (part.Binding(needs.trace(files.objects)),)
    needs.add_all(files.program, files.env)
    for package in (*files.own_packages, *toolchain_paths(world.home, files.env)):
        needs.add(package)
    covered = tuple(needs.trace(path) for path in world.covered if path.is_dir())
    own_home = (part.OwnHome(home),) if home != Path("/") else ()
    home_is_covered = any(home.is_relative_to(folder) for folder in covered)
    own_workspace: OwnFolder | part.Binding = part.Binding(workspace, writable=True)
    if files.source is not None and files.source != files.workspace:
        own_workspace = OwnFolder(files.source, workspace)
    own_parts = (*own_folders, own_workspace, *objects)
    visible = [each.path for each in (*named, *own_parts)]
    placed = (*needs.placed_in(home_folders), *filter(None, inside))
    return Description(
        (
            *(part.OwnNamespace(kind) for kind in ("user", "pid", "ipc", "uts", "cgroup")),
            part.OwnUser(),
            part.NoCapabilities(),
            part.EndsWithSupervisor(),
            part.OwnAccounts(home),
            part.SystemFiles(),
            _network(world.way_out, files),
            part.OwnProcesses(),
            part.OwnDevices(),
            part.OwnTemporaryFiles(),
            *(() if home_is_covered else own_home),
            *needs.made_links(visible),
            *named,
            *needs.bindings((*visible, *covered)),
            *map(part.Cover, covered),
            *(own_home if home_is_covered else ()),
            *home_folders,
            *placed,
            *own_parts,
            part.SealedFolders((*covered, Path("/"))),
            part.StartsIn(workspace),
            part.RefusedSystemCalls(refused_system_calls()),
        )
    )


def _network(way_out: NetworkSettings, files: GuestFiles) -> OwnNetwork | part.HostNetwork:
    if way_out.is_open:
        return part.HostNetwork()
    hosts = tuple(dict.fromkeys((*files.hosts, *way_out.hosts)))
    ca_file = files.env.get("SSL_CERT_FILE") or files.env.get("NODE_EXTRA_CA_CERTS") or ""
    further = way_out.model_requests
    models = tuple(replace(each, requests=each.requests and (*each.requests, *further)) for each in files.models)
    return OwnNetwork(hosts, files.own_hosts, way_out.proxies, models, ca_file)


def _place(
    opening: NamedPath, usual: tuple[OwnFolder, ...], home_folders: tuple[OwnFolder, ...]
) -> PlacedInOwnFolder | None:
    """If the n-th folder of `usual` has `opening`, return its mount in the n-th of `home_folders`; else `None`."""
    for folder, real in zip(usual, home_folders, strict=True):
        if folder.path in opening.path.parents:
            return PlacedInOwnFolder(
                opening.path.resolve(), real, opening.path.relative_to(folder.path), opening.writable
            )
    return None


def guest_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return `env` for a guest: without `XDG_RUNTIME_DIR`; a `TMPDIR` gets the path of the guest's own folder."""
    inside = {name: value for name, value in env.items() if name not in _MEANINGLESS}
    return inside | ({"TMPDIR": part.TEMPORARY_FOLDER} if "TMPDIR" in env else {})
