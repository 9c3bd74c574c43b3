"""What a repository's own commands and settings lack, for `septet doctor --repo`."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from septet.commands.filler import check
from septet.commands.loader import load_all
from septet.commands.needs import missing
from septet.errors import SeptetError
from septet.git.address import parse_address
from septet.git.evidence import read_base_file
from septet.git.mirror import refresh_mirror
from septet.git.record import place_for
from septet.git.remote import Remote
from septet.repository_settings import load_repository_settings
from septet.settings import Settings
from septet.state import StateDir

Finding = tuple[Literal["ok", "warning", "failed"], str, str]


def repository_findings(repo: str, settings: Settings) -> Iterator[Finding]:
    """Yield status, message and remedy for each thing that was found, in a mirror that is thrown away."""
    with tempfile.TemporaryDirectory(prefix="septet-doctor-") as folder:
        try:
            yield from _found(repo, settings, StateDir(Path(folder)))
        except SeptetError as error:
            yield "warning", error.message, error.remedy


def _found(repo: str, settings: Settings, state: StateDir) -> Iterator[Finding]:
    address = parse_address(repo, home=Path.home(), cwd=Path.cwd())
    secret = settings.github_token
    token = secret.get_secret_value() if secret is not None and address.kind == "remote" else None
    state.prepare()
    base = refresh_mirror(state.mirrors / f"{address.key}.git", Remote(address.url, settings.git_env, token))
    place = place_for(state, "doctor", address, base_branch=base.branch, base_sha=base.sha, env=settings.git_env)

    def read(path: str) -> bytes | None:
        return read_base_file(place, path)

    load_repository_settings(read)
    commands = load_all(read)
    for command in commands:
        check(command)
        for warning in missing(command):
            yield "warning", warning, f"Correct {command.place}."
    own = [command.place for command in commands if not command.built_in]
    yield "ok", f"{address.project} at {base.branch}: own commands: {', '.join(own) or 'none'}.", ""
