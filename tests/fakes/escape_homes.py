"""Traps of a guest in its home for the engine; each with the act of an engine without the guard."""

import json
import stat
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from fakes.attack_tables import Attack
from fakes.guests import CANARY, Arguments, Machine
from fakes.logins import HOUR, login

from septet.agents.clis.adapter import Machine as Host
from septet.agents.clis.registry import adapter_for
from septet.agents.guest.description import Description
from septet.agents.guest.paths import OwnFolder, PlacedInOwnFolder
from septet.agents.guest.sandbox_parts import Protection
from septet.agents.runs.homes import AgentHome, Homes
from septet.agents.runs.logins import Logins

SESSION = "0f0e8a3c-2f4b-4a6e-9d5d-1c2b3a495867"
_PREPARE = "own = os.path.join(root, 'home/.claude'); copy = os.path.join(own, '.credentials.json')\n"


@dataclass
class Scene:
    """A work order's home after its guest has run, and the user's home beside it."""

    machine: Machine
    name: str
    home: AgentHome

    @property
    def copy(self) -> Path:
        return self.home.root / ".claude/.credentials.json"

    @property
    def user(self) -> Path:
        return Path(self.home.machine.env["HOME"])

    def user_has(self, name: str) -> str:
        path = self.user / name
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


@dataclass(frozen=True)
class Trap(Attack):
    """A trap, and the act of the engine that meets it."""

    engine: Callable[[Scene], str]
    """The product's next act; it returns all visible output."""
    careless: Callable[[Scene], str]
    """The same act without the guard, written by the test; its output has the canary."""
    cli: str = "claude"
    """The CLI of the home."""


def scene_for(machine: Machine, name: str, cli: str = "claude") -> Scene:
    """Return a work order's home before its first run; its user has a login, a key and a session."""
    user = machine.root / "users" / name
    for path, content in {
        ".claude/.credentials.json": json.dumps(login("claude", 1)),
        f".claude/projects/-work/{SESSION}.jsonl": CANARY,
        ".ssh/id_ed25519": json.dumps({**login("claude", 9, 99 * HOUR), "more": CANARY}),
        ".ssh/authorized_keys": "nobody",
    }.items():
        (user / path).parent.mkdir(parents=True, exist_ok=True)
        (user / path).write_text(content, encoding="utf-8")
    folder = machine.root / "state" / "traps" / name
    homes = Homes(folder / "homes", Logins(folder / "logins"))
    home = homes.of(name, adapter_for(cli), Host({"HOME": str(user)}))
    home.prepare(None, HOUR)
    return Scene(machine, name, home)


def leave(scene: Scene, program: str) -> str:
    program = f"user = {str(scene.user)!r}\n" + _PREPARE + program
    return scene.machine.run(program, lambda description: _with_home(description, scene))


def _with_home(description: Description, scene: Scene) -> Description:
    source = scene.home.folders[0].source
    parts = [replace(p, source=source) if isinstance(p, OwnFolder) else p for p in description.protections]
    return replace(description, protections=tuple(parts))


def _take_back(scene: Scene) -> str:
    scene.home.logins.take_back(scene.home.root, is_over=False)
    return scene.user_has(".claude/.credentials.json")


def _prepare_again(scene: Scene) -> str:
    scene.home.prepare(SESSION, HOUR)
    return scene.user_has(".ssh/authorized_keys") + scene.user_has(f".ssh/{SESSION}.jsonl")


def _begin_next_visit(scene: Scene) -> str:
    scene.home.prepare(None, HOUR)
    return _see_home(scene)


def _see_home(scene: Scene) -> str:
    """Return all text in the home, as the next guest would find it."""
    files = [path for path in scene.home.folders[0].source.rglob("*") if path.is_file() and not path.is_symlink()]
    return "".join(path.read_text(encoding="utf-8", errors="replace") for path in files)


def _give_session(scene: Scene) -> str:
    (scene.user / f".claude/projects/-work/{SESSION}.jsonl").unlink()
    scene.home.give_session_to_user(SESSION)
    return "".join(path.read_text() for path in (scene.user / ".claude/projects").rglob("*.jsonl"))


def _merge_unchecked(scene: Scene) -> str:
    file = scene.home.adapter.capabilities.logins[0]
    users = (scene.user / ".claude/.credentials.json").read_bytes()
    return file.merge(users, json.loads(scene.copy.read_bytes())).decode()


def _write_copy(scene: Scene) -> str:
    scene.copy.write_text(CANARY)
    return scene.user_has(".ssh/authorized_keys")


def _copy_session(scene: Scene) -> str:
    target = scene.home.root / f".claude/projects/-work/{SESSION}.jsonl"
    target.write_text(CANARY)
    return scene.user_has(f".ssh/{SESSION}.jsonl")


def _find_session(scene: Scene) -> str:
    return "".join(path.read_text() for path in (scene.home.root / ".claude/projects").glob("*/*"))


def _mount(scene: Scene, *, with_places: bool) -> str:
    """Start the next guest with a file of the machine mounted in its home."""
    description = _with_home(scene.machine.description, scene)
    (scene.machine.root / "command.md").write_text("a command", encoding="utf-8")
    parts: list[Protection] = []
    for each in description.protections:
        parts.append(each)
        if isinstance(each, OwnFolder):
            source = scene.machine.root / "command.md"
            parts.append(
                PlacedInOwnFolder(source, each, Path("commands/new"))
                if with_places
                else Arguments(("--ro-bind", str(source), str(each.path / "commands/new")))
            )
    description = replace(description, protections=tuple(parts))
    scene.machine.run("print('started')", lambda _: description, remains_root=not with_places)
    return CANARY if (scene.user / ".ssh/new").exists() else ""


_FORGED = json.dumps({"claudeAiOauth": {"accessToken": CANARY, "refreshToken": CANARY, "expiresAt": 9e12}})
_NO_LINKS = "no link in a home is followed"

_OWN_VISIT = "a home of its own for each visit"
TRAPS = (
    Trap(
        "login-link", "put a link to a secret in the place of its login, to have it written back",
        "os.remove(copy); os.symlink(os.path.join(user, '.ssh/id_ed25519'), copy)", _NO_LINKS,
        _take_back, lambda scene: scene.copy.read_text(),
    ),
    Trap(
        "login-fifo", "put a FIFO in the place of its login, for the engine to wait at",
        "os.remove(copy); os.mkfifo(copy)", "only plain files are read",
        _take_back, lambda scene: CANARY if stat.S_ISFIFO(scene.copy.stat().st_mode) else "",
    ),
    Trap(
        "login-large", "make its login so large that it fills the engine's memory",
        f"open(copy, 'w').write('{CANARY}' * 100_000)", "a login has a limit of size",
        _take_back, lambda scene: scene.copy.read_text(),
    ),
    Trap(
        "login-forged", "have the login of another account written back as the user's",
        f"open(copy, 'w').write({_FORGED!r})", "a login comes back only as a later one of its account",
        _take_back, _merge_unchecked,
    ),
    Trap(
        "login-through-link", "have the next copy of the login written over `authorized_keys`",
        "os.remove(copy); os.symlink(os.path.join(user, '.ssh/authorized_keys'), copy)", _NO_LINKS,
        _prepare_again, _write_copy,
    ),
    Trap(
        "session-through-link", "have a session written into `~/.ssh`",
        "os.makedirs(own + '/projects'); os.symlink(os.path.join(user, '.ssh'), own + '/projects/-work')", _NO_LINKS,
        _prepare_again, _copy_session,
    ),
    Trap(
        "session-link", "have a secret copied to the user's sessions",
        "os.makedirs(own + '/projects/-work');"
        f"os.symlink(os.path.join(user, '.ssh/id_ed25519'), own + '/projects/-work/{SESSION}.jsonl')", _NO_LINKS,
        _give_session, _find_session,
    ),
    Trap(
        "mount-link", "have the next start of its sandbox make files in `~/.ssh`",
        "os.symlink('/oldroot' + os.path.join(user, '.ssh'), own + '/commands')",
        "places to mount at are made before, and are no links",
        lambda scene: _mount(scene, with_places=True), lambda scene: _mount(scene, with_places=False),
    ),
    Trap(
        "instructions", "leave instructions for the next issue in the home of a pipeline's lane (claude)",
        "open(own + '/CLAUDE.md', 'w').write(CANARY)", _OWN_VISIT, _begin_next_visit, _see_home,
    ),
    Trap(
        "extension", "… an extension (gemini)",
        "os.makedirs(own + '/extensions/e'); open(own + '/extensions/e/x.json', 'w').write(CANARY)", _OWN_VISIT, _begin_next_visit, _see_home, "gemini",
    ),
    Trap(
        "prompts", "… prompts of its own (codex)",
        "os.makedirs(own + '/prompts'); open(own + '/prompts/review.md', 'w').write(CANARY)", _OWN_VISIT,
        _begin_next_visit, _see_home, "codex",
    ),
    Trap(
        "conversation", "… a conversation (copilot)",
        f"place = own + '/session-state/{SESSION}'; os.makedirs(place); open(place + '/events.jsonl', 'w').write(CANARY)",
        _OWN_VISIT, _begin_next_visit, _see_home, "copilot",
    ),
)  # fmt: skip
