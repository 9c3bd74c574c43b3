"""Derive a repository's first settings from its files: set-up, checks, and the network addresses for set-up.

No address of a package registry is written here: the addresses come from lock files and from tools' output.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from septet.agents.guest.network import NamedHost, hosts_in
from septet.contracts.names import SETTINGS_PATH
from septet.repository_file import load_repository_settings
from septet.system import processes

_READ_BYTES: Final = 32 * 1024 * 1024
_NODE_LOCKS: Final = (
    "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock", "bun.lockb",
)  # fmt: skip
_TARGET: Final = re.compile(r"^(lint|check|test)\s*:(?!=)", re.MULTILINE)
_ADDRESS_OF_LOCK: Final = re.compile(
    r"(?:\"?resolved\"?:? |\bregistry = |\burl = |\btarball: |\bsource = \"registry\+)[\"']?"
    r"(?:sparse\+)?(https?://[^\s\"'#]+)"
)
_DEFAULT_INDEX: Final = re.compile(r"default:?\s+(https?://[^\s)]+)")
_VENV: Final = ".venv/bin/python"
_CARGO: Final = ("env", "CARGO_HOME=target/cargo-home", "cargo")
_KEPT: Final = "what set-up downloads outside of the workspace is gone afterwards"
LOOKED_FOR: Final = (
    "package.json, pyproject.toml, setup.py, requirements.txt, Cargo.toml, go.mod, Makefile or test*.py"
)


@dataclass(frozen=True, slots=True)
class FirstSettings:
    """The settings of a first `.septet/septet.toml`, the addresses that set-up needs, and notes for a person."""

    sources: tuple[str, ...] = ()
    setup: tuple[tuple[str, ...], ...] = ()
    checks: tuple[tuple[str, ...], ...] = ()
    hosts: tuple[str, ...] = ()
    """The addresses that set-up connects to, as `name:port`."""
    notes: tuple[str, ...] = ()
    """Sentences about facts that a person must find out, because this module cannot."""

    def text(self) -> str:
        """Return the text of `.septet/septet.toml`."""
        lines = ["# How Septet works on this repository: `septet docs commands` lists all settings.", ""]
        lines += ["# Once in each workspace, before its first agent, without a shell."] if self.setup else []
        lines += _list("setup", self.setup) if self.setup else []
        lines += ["# Before each commit. An agent gets the output of one that fails."]
        lines += _list("checks", self.checks)
        text = "\n".join(lines) + "\n"
        load_repository_settings({SETTINGS_PATH: text.encode()}.get)
        return text


@dataclass(slots=True)
class _Draft:
    """The settings that were found so far in a repository's files."""

    folder: Path
    env: Mapping[str, str]
    sources: list[str] = field(default_factory=list)
    setup: list[tuple[str, ...]] = field(default_factory=list)
    checks: list[tuple[str, ...]] = field(default_factory=list)
    hosts: set[NamedHost] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    def has(self, *names: str) -> str:
        """Return the first of `names` that is a file, and record this file; an empty text if none is a file."""
        name = next((name for name in names if (self.folder / name).is_file()), "")
        if name and name not in self.sources:
            self.sources.append(name)
        return name

    def read(self, name: str) -> str:
        """Return the text of a file; empty if the file cannot be read."""
        try:
            with (self.folder / name).open("rb") as file:
                return file.read(_READ_BYTES).decode("utf-8", errors="replace")
        except OSError:
            return ""

    def take_hosts(self, texts: Sequence[str], unknown: str) -> None:
        """Record the network addresses in the texts, as `name:port`; without any, record the note `unknown`."""
        hosts = hosts_in(texts)
        self.hosts.update(hosts)
        if not hosts:
            self.notes.append(unknown)

    def addresses_of_lock(self, name: str) -> list[str]:
        """Return the web addresses of a lock file's packages."""
        return _ADDRESS_OF_LOCK.findall(self.read(name)) if name else []

    def ask(self, *argv: str) -> str:
        """Return the output of a tool; empty if the tool is not installed or fails.

        The tool runs outside of the repository, because files there might make the tool run other programs.
        """
        try:
            done = processes.run(argv, env=self.env, cwd=Path("/"), timeout_seconds=30.0)
        except OSError:
            return ""
        return done.stdout.decode("utf-8", errors="replace") if done.exit_code == 0 else ""


def first_settings(folder: Path, env: Mapping[str, str]) -> FirstSettings:
    """Return the first settings for a repository's working tree; `env` is the environment of tools such as pip."""
    draft = _Draft(folder, env)
    for look in (_node, _python, _rust, _go, _make, _tests):
        look(draft)
    unique = dict.fromkeys
    return FirstSettings(
        tuple(draft.sources),
        tuple(unique(draft.setup)),
        tuple(unique(draft.checks)),
        tuple(map(str, sorted(draft.hosts))),
        tuple(unique(draft.notes)),
    )


def _node(draft: _Draft) -> None:
    if not draft.has("package.json"):
        return
    berry = bool(draft.has(".yarnrc.yml"))
    lock = draft.has(*_NODE_LOCKS)
    runner, install = {
        "pnpm-lock.yaml": ("pnpm", ("pnpm", "install", "--frozen-lockfile")),
        "yarn.lock": ("yarn", ("yarn", "install", "--immutable" if berry else "--frozen-lockfile")),
        "bun.lock": ("bun", ("bun", "install", "--frozen-lockfile")),
        "bun.lockb": ("bun", ("bun", "install", "--frozen-lockfile")),
    }.get(lock, ("npm", ("npm", "ci")))
    package = _json(draft.read("package.json"))
    scripts = _table(package, "scripts")
    for name in ("lint", "typecheck", "test"):
        if isinstance(scripts.get(name), str) and "no test specified" not in scripts[name]:
            draft.checks.append((runner, "test") if name == "test" else (runner, "run", name))
    if not lock:
        if _table(package, "dependencies") or _table(package, "devDependencies"):
            draft.notes.append("Commit a lock file, such as that of `npm install`: then set-up can be `npm ci`.")
        return
    draft.setup.append(install)
    key = "npmRegistryServer" if berry else "registry"
    question = ("npm" if runner == "bun" else runner, "config", "get", key)
    unknown = f"Ask `{' '.join(question)}` for the host of packages."
    settings = map(draft.read, (".npmrc", ".yarnrc", ".yarnrc.yml"))
    draft.take_hosts([draft.ask(*question), *settings, *draft.addresses_of_lock(lock)], unknown)


def _python(draft: _Draft) -> None:
    project = draft.has("pyproject.toml", "setup.py", "setup.cfg")
    requirements = sorted(path.name for path in draft.folder.glob("requirements*.txt"))
    if not project and not requirements:
        return
    declared = " ".join(map(draft.read, ("pyproject.toml", "setup.cfg", "setup.py", *requirements)))
    if draft.has("uv.lock"):
        python: tuple[str, ...] = ("uv", "run", "--no-sync", "python")
        draft.setup.append(("uv", "sync", "--locked"))
        draft.take_hosts(draft.addresses_of_lock("uv.lock"), "Look into uv.lock for the hosts of packages.")
    elif draft.has("poetry.lock"):
        python = ("poetry", "run", "python")
        draft.setup.append(("env", "POETRY_VIRTUALENVS_IN_PROJECT=true", "poetry", "install"))
        _ask_pip(draft, draft.addresses_of_lock("poetry.lock"))
    elif requirements or "dependencies" in declared or "pytest" in declared:
        python = (_VENV,)
        draft.sources += requirements
        draft.setup += [("python3", "-m", "venv", ".venv"), _pip_install(draft, requirements)]
        _ask_pip(draft, [])
    else:
        python = ("python3",)
    if "pytest" in declared or draft.has("pytest.ini", "conftest.py", "tests/conftest.py"):
        draft.checks.append((*python, "-m", "pytest"))
    elif (tests := _folder_of_tests(draft.folder)) is not None:
        draft.checks.append((*python, *_discover(draft.folder, tests)))


def _folder_of_tests(folder: Path) -> str | None:
    """Return the name of the folder with tests: `tests`, `test` or `.`; `None` without tests."""
    return next((name for name in ("tests", "test", ".") if any((folder / name).glob("test*.py"))), None)


def _discover(folder: Path, tests: str) -> tuple[str, ...]:
    """Return Python's arguments for unittest; they name the folder `tests` only if it is not a package."""
    is_package = tests == "." or (folder / tests / "__init__.py").is_file()
    return ("-m", "unittest", "discover", *(() if is_package else ("-s", tests)))


def _tests(draft: _Draft) -> None:
    """Add a check that runs the tests, unless the repository has another check."""
    tests = _folder_of_tests(draft.folder) if not draft.checks else None
    if tests is None:
        return
    files = sorted((draft.folder / tests).glob("test*.py"))
    draft.sources.append(str(files[0].relative_to(draft.folder)))
    texts = "\n".join(draft.read(str(file.relative_to(draft.folder))) for file in files[:20])
    for_pytest = "unittest" not in texts and "def test" in texts
    draft.checks.append(("python3", *(("-m", "pytest") if for_pytest else _discover(draft.folder, tests))))


def _pip_install(draft: _Draft, requirements: Sequence[str]) -> tuple[str, ...]:
    """Return pip's command: it installs `requirements`; if there are none, the project and its tests' packages."""
    install = (_VENV, "-m", "pip", "install")
    if requirements:
        return (*install, *(part for name in requirements for part in ("-r", name)))
    try:
        project = tomllib.loads(draft.read("pyproject.toml"))
    except tomllib.TOMLDecodeError:
        project = {}
    extras = _table(_table(project, "project"), "optional-dependencies")
    extra = next((name for name, needs in extras.items() if "pytest" in json.dumps(needs)), "")
    groups = _table(project, "dependency-groups")
    group = next((name for name, needs in groups.items() if "pytest" in json.dumps(needs, default=str)), "")
    return (*install, "-e", f".[{extra}]" if extra else ".", *(("--group", group) if group and not extra else ()))


def _ask_pip(draft: _Draft, addresses: Sequence[str]) -> None:
    """Record the hosts in `addresses` and in pip's settings; if there are none, record pip's default index."""
    pip = ("python3", "-m", "pip")
    texts = [*addresses, draft.ask(*pip, "config", "list")]
    if not hosts_in(texts):
        texts += _DEFAULT_INDEX.findall(draft.ask(*pip, "install", "--help"))
    draft.take_hosts(texts, "Ask `pip config list`, and `pip install --help`, for the host of the index.")
    draft.notes.append("An index may name another host for its files: set-up's error names hosts that it lacks.")


def _rust(draft: _Draft) -> None:
    if not draft.has("Cargo.toml"):
        return
    lock = draft.has("Cargo.lock")
    locked = ("--locked",) if lock else ()
    draft.setup.append((*_CARGO, "fetch", *locked))
    draft.checks.append((*_CARGO, "test", "--offline", *locked))
    home = draft.env.get("CARGO_HOME") or f"{draft.env.get('HOME', '')}/.cargo"
    files = [f"{folder}/{name}" for folder in (".cargo", home) for name in ("config.toml", "config")]
    indexes = [draft.read(file).replace("sparse+", "") for file in files]
    unknown = "`cargo fetch -vv` shows which hosts cargo asks; its default index is not written in Cargo.lock."
    draft.take_hosts(indexes, unknown)


def _go(draft: _Draft) -> None:
    if not draft.has("go.mod"):
        return
    draft.checks.append(("go", "test", "./..."))
    if not (draft.folder / "vendor").is_dir() and draft.has("go.sum"):
        unknown = "Ask `go env GOPROXY` for the host of modules."
        draft.take_hosts(draft.ask("go", "env", "GOPROXY").split(","), unknown)
        modules = draft.ask("go", "env", "GOMODCACHE").strip() or "~/go/pkg/mod"
        draft.notes.append(f'For modules, {_KEPT}: start the worker with SEPTET_GUEST_PATHS="{modules}:rw" too.')
        draft.setup.append(("go", "mod", "download"))


def _make(draft: _Draft) -> None:
    name = draft.has("Makefile", "GNUmakefile", "makefile") if not draft.checks else ""
    if not name:
        return
    targets = set(_TARGET.findall(draft.read(name)))
    draft.checks += [("make", target) for target in ("lint", "check", "test") if target in targets]
    if not draft.checks:
        draft.notes.append(f"{name} has no target lint, check or test.")


def _list(key: str, commands: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a TOML list of commands, each a list of words."""
    if not commands:
        yield f"{key} = []"
        return
    yield f"{key} = ["
    yield from (f"    {json.dumps(list(words), ensure_ascii=False)}," for words in commands)
    yield "]"


def _json(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _table(value: Mapping[str, Any], key: str) -> dict[str, Any]:
    table = value.get(key)
    return table if isinstance(table, dict) else {}
