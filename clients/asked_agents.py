"""Find the agents of a new work order from its input and from a repository on this disk."""

from collections.abc import Mapping
from pathlib import Path

from septet.contracts.names import SETTINGS_PATH
from septet.contracts.order import WorkOrderInput
from septet.errors import GitError, InvalidInputError, RepositorySettingsError
from septet.git.engine.address import parse_address
from septet.git.engine.engine import Git
from septet.git.engine.files_at import read_files_at
from septet.git.workspace.mirror import find_base


def agents_asked_for(
    order: WorkOrderInput, git_env: Mapping[str, str], *, is_here: bool
) -> tuple[str | None, ...]:
    """Return a work order's agent, `None` for a worker's default; nothing if the agent is not known here.

    This also checks a repository on this disk: its base, its issue and its own default agent.

    Raises:
        NotFoundError: It has no such branch or issue; the message names it.
        InvalidInputError: It has no commit yet, or its settings there are wrong; the message names the line.
    """
    path = parse_address(order.repository, home=Path.home()).path if is_here else None
    own = _default_agent(path, order, git_env) if path is not None else None
    if order.agent is not None:
        return (order.agent,)
    return () if path is None else (own,)


def _default_agent(path: Path, order: WorkOrderInput, git_env: Mapping[str, str]) -> str | None:
    if order.issue is not None:
        from septet.forges.local.forge import LocalForge

        LocalForge(path, git_env).issue(order.issue)
    git_dir = path / ".git" if (path / ".git").exists() else path
    try:
        base = find_base(git_dir, git_env, order.base)
        files = read_files_at(Git(git_dir, env=git_env), base.sha, (SETTINGS_PATH,))
    except GitError:
        return None  # the worker says what is wrong with it, as it opens its workspace
    if not files:
        return None
    from septet.repository_settings import load_repository_settings

    try:
        return load_repository_settings(files.get).agent
    except RepositorySettingsError as error:
        remedy = f"{error.remedy} Commit the correction to {base.branch}, then start it again."
        raise InvalidInputError(error.message, remedy=remedy) from error
