"""Check a repository's own commands and settings, for `septet doctor --repo`."""

import tempfile
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Final, Literal

from clients.starting.checks import check_folder, find_unused_settings
from septet.agents.clis.adapter import FOR_EVERY_AGENT, select_variables
from septet.agents.sandbox.probe import missing_programs
from septet.agents.sandbox.sandbox import Sandbox
from septet.commands.command import FOLDER, load_all, overrides
from septet.commands.placeholders import check, missing
from septet.contracts.names import SETTINGS_PATH
from septet.errors import SeptetError
from septet.forges.choose import forge_for, token_for
from septet.git.engine.address import parse_address
from septet.git.engine.configuration import ELSEWHERE, write_configuration
from septet.git.engine.objects import list_base_folder, read_base_files
from septet.git.engine.remote import Remote
from septet.git.workspace.mirror import refresh_mirror
from septet.git.workspace.workspace import place_for
from septet.repository_file import load_repository_settings
from septet.settings import Settings
from septet.state import StateDir

_NO_BRANCH: Final = "septet-doctor"
"""The name of a branch that is requested only to find out whether the forge's API answers."""


_UNCONFINED: Final = Sandbox()
Finding = tuple[Literal["ok", "warning", "failed"], str, str]


def repository_findings(repo: str, settings: Settings, sandbox: Sandbox = _UNCONFINED) -> Iterator[Finding]:
    """Check a repository in a temporary mirror, and yield each result as status, message and remedy."""
    with tempfile.TemporaryDirectory(prefix="septet-doctor-") as folder:
        try:
            yield from _findings(repo, settings, StateDir(Path(folder)), sandbox)
        except SeptetError as error:
            yield "failed", error.message, error.remedy


def _findings(repo: str, settings: Settings, state: StateDir, sandbox: Sandbox) -> Iterator[Finding]:
    address = parse_address(repo, home=Path.home(), cwd=Path.cwd())
    if address.path is not None:
        check_folder(address.path)
    token = token_for(address, settings)
    state.prepare()
    env = {**settings.git_env, "GIT_CONFIG_GLOBAL": str(state.root / "gitconfig")}
    for name in write_configuration(state.root / "gitconfig", settings.user_git_env):
        yield "warning", f"The worker's git does not use your setting {name}.", ELSEWHERE
    base = refresh_mirror(state.mirrors / f"{address.key}.git", Remote(address.url, env, token))
    forge_for(address, settings).branches(_NO_BRANCH)
    place = place_for(state, "doctor", address, base, env)

    files = read_base_files(place, (*overrides(), SETTINGS_PATH))
    read = files.get(SETTINGS_PATH)
    if address.path is not None and (unused := find_unused_settings(address.path, read, base.branch)):
        yield "warning", *unused
    repository = load_repository_settings(files.get)
    agent_env = select_variables(settings.environ, FOR_EVERY_AGENT)
    for what, programs in (("Set-up command", repository.setup), ("Check", repository.checks)):
        for each in missing_programs(sandbox, state.root, agent_env, programs, what):
            yield "failed", each.message, each.remedy
    commands = load_all(files.get)
    for command in commands:
        check(command)
        for warning in missing(command):
            yield "warning", warning, f"Correct {command.place}."
    yield from _ignored_files(list_base_folder(place, FOLDER), [command.name for command in commands])
    prompts = ", ".join(command.place for command in commands if not command.built_in) or "Septet's own"
    checks = "; ".join(" ".join(words) for words in repository.checks) or "none"
    yield "ok", f"{address.project}, branch {base.branch}. Prompts: {prompts}. Checks: {checks}.", ""


def _ignored_files(files: Sequence[str], commands: Sequence[str]) -> Iterator[Finding]:
    """Yield a warning for each file in the commands' folder that no step reads, because its name is wrong."""
    for file in files:
        is_command = file.endswith(".md") and file.removesuffix(".md") in commands
        if is_command or file.lower() == "readme.md":
            continue
        near = get_close_matches(file.removesuffix(".md"), commands, n=1)
        every = f"Commands are {', '.join(commands)}, each in a `.md` file."
        remedy = f"Did you mean {near[0]}.md?" if near else every
        yield "warning", f"{FOLDER}/{file} is not a step's command: nothing reads it.", remedy
