"""Read a repository's settings from `.septet/septet.toml` at the base commit; see docs/commands.md."""

import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from types import MappingProxyType
from typing import Annotated, Final

from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails

from septet.agents.clis.registry import ADAPTERS
from septet.contracts.amounts import BudgetText
from septet.contracts.names import SETTINGS_PATH, Sessions
from septet.contracts.order import Seconds, SetupSeconds, SomeLimits, StepSettings, Word
from septet.contracts.repository import BranchPrefix
from septet.contracts.wire import StrictWire
from septet.contracts.wording import reason_of
from septet.errors import RepositorySettingsError
from septet.protected_paths import OnProtected, PathPattern
from septet.repository_settings import (
    CHECK_SECONDS,
    SETUP_SECONDS,
    STEP_TABLE,
    AllowedFinding,
    OnFailingBase,
    PullRequestSettings,
    RepositorySettings,
)

_LONGEST_STATEMENT_LINES: Final = 50
"""The most lines of a TOML statement; the search for a line skips longer statements."""


def line_of(text: str, path: Sequence[int | str]) -> int:
    """Return the number, from 1, of the line with the value at `path`, or with the last key of `path` that exists.

    `path` lists the keys from the outermost table, and numbers for positions in lists.
    """
    keys = [part for part in path if isinstance(part, str)]
    nearest, depth = 1, 0
    for line, key in _keys(text):
        shared = key[: len(keys)]
        if len(shared) > depth and shared == keys[: len(shared)]:
            nearest, depth = line, len(shared)
    return nearest


def _keys(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield for each statement its first line's number and its key's full path."""
    table: list[str] = []
    lines, first = text.split("\n"), 0
    while first < len(lines):
        count, path = _statement_at(lines, first)
        if lines[first].lstrip().startswith("[") and count:
            table = path
            yield first + 1, table
        elif path:
            yield first + 1, [*table, *path]
        first += count or 1


def _statement_at(lines: Sequence[str], first: int) -> tuple[int, list[str]]:
    """Return how many lines the statement at `lines[first]` has, and its key; 0 lines if no statement is there."""
    if "=" in lines[first] or lines[first].lstrip().startswith("["):
        for last in range(first + 1, min(first + _LONGEST_STATEMENT_LINES, len(lines)) + 1):
            with suppress(tomllib.TOMLDecodeError):
                return last - first, _path(tomllib.loads("\n".join(lines[first:last])))
    return 0, []


def _path(value: object) -> list[str]:
    """Return the keys that lead to the only value in nested tables."""
    path: list[str] = []
    while isinstance(value, dict) and len(value) == 1:
        ((key, value),) = value.items()
        path.append(key)
    return path


SIZE_LIMIT_BYTES: Final = 64 * 1024
_SANDBOX: Final = "The sandbox is the worker's, and a repository cannot loosen it"
_KEYS: Final = "Keys, programs and the environment are the worker's, and a repository cannot change them"
_BUDGET: Final = "A budget belongs to those who pay, and a repository cannot loosen it"
_NOT_A_REPOSITORYS: Final[Mapping[str, str]] = MappingProxyType(
    dict.fromkeys(("sandbox", "sandboxed", "confinement", "confined", "unconfined"), _SANDBOX)
    | dict.fromkeys(("network", "allow_host", "allow_hosts", "permissions", "permission_mode"), _SANDBOX)
    | dict.fromkeys(("env", "environment", "key", "keys", "api_key", "token", "tokens", "secrets"), _KEYS)
    | dict.fromkeys(
        ("github_token", "gitlab_token", "gitea_token", "credentials", "login", "path", "agent_path"), _KEYS
    )
    | dict.fromkeys(("budgets", "max_budget_usd", "cost_usd", "max_cost_usd", "max_tokens"), _BUDGET)
)
"""The keys that would loosen the worker's restrictions, with the reasons for their refusal."""
_MEANING: Final[Mapping[str, str]] = MappingProxyType(
    {"model_type": "must be a table", "string_pattern_mismatch": "must be a name"}
)
"""The messages for this file that differ from those elsewhere, by pydantic's error type."""
_BUDGETS_PLACE: Final = "Move it to `[limits]` or `[steps.STEP]`, where it can only lower the budget."
_SEE: Final = "`septet docs commands` lists the settings."
_SHELL_WORDS: Final = frozenset({"&&", "||", "|", ";", "&", ">", ">>", "<", "2>&1"})


class _Agents(StrictWire):
    default: Word | None = None
    fallback: Word | None = None
    model: Word | None = None
    sessions: Sessions | None = None


class _Limits(SomeLimits):
    check_seconds: Seconds = CHECK_SECONDS
    setup_seconds: SetupSeconds = SETUP_SECONDS
    budget: BudgetText | None = None


class _Steps(StrictWire):
    classify_issue: StepSettings = StepSettings()
    build_plan: StepSettings = StepSettings()
    find_plan_file: StepSettings = StepSettings()
    generate_branch: StepSettings = StepSettings()
    implement_plan: StepSettings = StepSettings()
    create_commit: StepSettings = StepSettings()
    create_pull_request: StepSettings = StepSettings()
    read_outgoing: StepSettings = StepSettings()


class _Issue(StrictWire):
    progress_comment: bool = False
    stage_labels: bool = False


class _Commit(StrictWire):
    assisted_by: bool = True
    sign_off: bool = False


_Commands = Annotated[list[str | list[str]], Field(max_length=50)]


class _File(StrictWire):
    protected: list[PathPattern] | None = Field(default=None, max_length=200)
    on_protected: OnProtected | None = None
    read_outgoing: bool = False
    setup: _Commands = Field(default_factory=list)
    checks: _Commands = Field(default_factory=list)
    on_failing_base: OnFailingBase = "tell"
    branch_prefix: BranchPrefix | None = None
    agents: _Agents = _Agents()
    limits: _Limits = _Limits()
    steps: _Steps = _Steps()
    allow_findings: list[AllowedFinding] = Field(default_factory=list, max_length=200)
    commit: _Commit = _Commit()
    issue: _Issue = _Issue()
    pull_request: PullRequestSettings = PullRequestSettings()


def load_repository_settings(read: Callable[[str], bytes | None]) -> RepositorySettings:
    """Return the settings of a repository; without a settings file, the default settings.

    `read` returns a file's content in the base commit; `None` for a missing file.

    Raises:
        RepositorySettingsError: The file is no TOML, a key is unknown, a value is wrong, or only a worker may set
            the key; the message names the file and the line.
    """
    content = read(SETTINGS_PATH)
    if content is None:
        return RepositorySettings()
    text, tables = _parse(content)
    try:
        file = _File.model_validate(tables, extra="forbid")
    except ValidationError as error:
        raise _refusal(text, error.errors()[0]) from error
    for key, agent in (("default", file.agents.default), ("fallback", file.agents.fallback)):
        if agent not in {None, *ADAPTERS}:
            where = f"{SETTINGS_PATH} line {line_of(text, ['agents', key])}"
            message = f"{where}: agents.{key}: `{agent}` is not an agent."
            raise RepositorySettingsError(message, remedy=f"Choose one of: {', '.join(ADAPTERS)}.")
    return RepositorySettings(
        agent=file.agents.default,
        fallback_agent=file.agents.fallback,
        model=file.agents.model,
        sessions=file.agents.sessions,
        limits=file.limits,
        steps={name: getattr(file.steps, name) for name in STEP_TABLE},
        setup=_argvs(file.setup, text, "setup", "set-up command"),
        setup_seconds=file.limits.setup_seconds,
        checks=_argvs(file.checks, text, "checks", "check"),
        check_seconds=file.limits.check_seconds,
        on_failing_base=file.on_failing_base,
        branch_prefix=file.branch_prefix,
        allow_findings=tuple(file.allow_findings),
        protected=tuple(file.protected) if file.protected is not None else None,
        on_protected=file.on_protected,
        read_outgoing=file.read_outgoing,
        assisted_by=file.commit.assisted_by,
        sign_off=file.commit.sign_off,
        progress_comment=file.issue.progress_comment,
        stage_labels=file.issue.stage_labels,
        pull_request=file.pull_request,
        budget=file.limits.budget,
    )


def _parse(content: bytes) -> tuple[str, dict[str, object]]:
    if len(content) > SIZE_LIMIT_BYTES:
        message = f"{SETTINGS_PATH} holds {len(content)} bytes, {SIZE_LIMIT_BYTES} are allowed."
        raise RepositorySettingsError(message, remedy="Keep only settings in it.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        message = f"{SETTINGS_PATH} line {line} is not valid UTF-8."
        raise RepositorySettingsError(message, remedy="Save the file as UTF-8.") from error
    try:
        return text, tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        last_line = f"at line {len(text.splitlines())}, the last one"
        message = f"{SETTINGS_PATH} is not valid TOML: {str(error).replace('at end of document', last_line)}."
        raise RepositorySettingsError(message, remedy="Correct that line; see https://toml.io.") from error


def _refusal(text: str, error: ErrorDetails) -> RepositorySettingsError:
    path = error["loc"][:2] if error["loc"][0] in {"setup", "checks"} else error["loc"]
    where = f"{SETTINGS_PATH} line {line_of(text, path)}"
    key = ".".join(str(part) for part in path)
    if error["type"] != "extra_forbidden":
        wrong = _MEANING.get(error["type"]) or reason_of(error)
        return RepositorySettingsError(f"{where}: {key} {wrong}.", remedy=_SEE)
    if path[-1] == "budget":
        return RepositorySettingsError(f"{where}: {key} is not a setting.", remedy=_BUDGETS_PLACE)
    if reason := _NOT_A_REPOSITORYS.get(str(path[-1])):
        return RepositorySettingsError(f"{where}: {key} cannot be set here. {reason}.", remedy="Delete it.")
    table = _File().model_dump()
    for part in path[:-1]:
        table = table[str(part)]
    close = get_close_matches(str(path[-1]), table, n=1)
    remedy = f"Did you mean {close[0]}?" if close else f"There are: {', '.join(table)}."
    return RepositorySettingsError(f"{where}: {key} is not a setting.", remedy=remedy)


def _argvs(commands: Sequence[str | list[str]], text: str, key: str, what: str) -> tuple[tuple[str, ...], ...]:
    argvs = []
    for number, command in enumerate(commands):
        where = f"{SETTINGS_PATH} line {line_of(text, [key, number])}"
        try:
            argv = shlex.split(command) if isinstance(command, str) else command
        except ValueError as error:
            message = f"{where}: the {what} {command!r} cannot be split into words: {error}."
            raise RepositorySettingsError(message, remedy="Close the quotation, or write it as a list.") from error
        if not argv or not argv[0] or any("\x00" in word for word in argv):
            raise RepositorySettingsError(f"{where}: a {what} names no program.", remedy="Delete it, or name one.")
        if isinstance(command, str) and _SHELL_WORDS.intersection(argv):
            message = f"{where}: the {what} {command!r} is written for a shell, and {what}s run without one."
            remedy = f"Split it into several {what}s, or put it into a script in the repository."
            raise RepositorySettingsError(message, remedy=remedy)
        argvs.append(tuple(argv))
    return tuple(argvs)
