"""Which settings of a repository's configuration may stay after a guest has worked.

git starts programs that settings name. Therefore an allow-list of names and values decides about a guest's
settings. The baseline is the configuration that Septet and the set-up made before the first agent. Its
settings stay as long as the files that they name are unchanged.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from posixpath import basename, dirname, join, normpath
from typing import Final

from septet.git.engine.engine import Git, as_config_line

Setting = tuple[str, str | None]
"""A setting's name as git lists it, and its value; `None` if it has no value, which means true."""

_BOOLEAN: Final = r"true|false|yes|no|on|off|0|1|"
_URL: Final = r"(?!.*::)(?:(?:https?|ssh|git|file)://[^-\s]\S*|[\w.-]+@[\w.-]+:[^-\s]\S*|\.{0,2}/\S*)"
_FILTER: Final = r"blob:none|blob:limit=\d+[kmg]?|tree:\d+"
_HARMLESS: Final[Mapping[str, str]] = {
    r"core\.repositoryformatversion": r"[01]",
    r"core\.sparsecheckout(cone)?|index\.sparse": _BOOLEAN,
    r"extensions\.(worktreeconfig|relativeworktrees|preciousobjects)": _BOOLEAN,
    r"extensions\.objectformat": r"sha1",
    r"extensions\.refstorage": r"files",
    r"extensions\.partialclone": r"origin",
    r"branch\..+\.remote": r"origin|\.",
    r"branch\..+\.merge": r"refs/heads/\S+",
    r"remote\.origin\.promisor": _BOOLEAN,
    r"remote\.origin\.partialclonefilter": _FILTER,
    r"submodule\..+\.url": _URL,
    r"submodule\..+\.active": _BOOLEAN,
    r"submodule\..+\.update": r"checkout|merge|rebase|none",
}
"""The settings that a guest may make in the workspace's repository: patterns of names, with patterns of values."""
_HARMLESS_INSIDE: Final[Mapping[str, str]] = {
    r"core\.(filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks)": rf"{_BOOLEAN}|always",
    r"remote\..+\.url": _URL,
    r"remote\..+\.fetch": r"\+?refs/[^\s:]*:refs/[^\s:]*",
}
"""Further settings that a guest may make in the repositories of submodules and in nested repositories."""
_PLAIN: Final = re.compile(r"(user|author|committer)\.(name|email)|branch\..*|remote\..*\.(url|fetch|pushurl)")
"""The pattern of baseline settings whose values never name a file or a program."""
_INCLUDE: Final = re.compile(r"include(if\..*)?\.path")
_BREAKS: Final = re.compile(r"[\s'\"=;|&<>()!]+")
_LOOKS_AROUND: Final = re.compile(
    r"(ba|da|z)?sh|bun|bunx|bundle|deno|make|node|npm|npx|perl|php|pipenv|pnpm|poetry|python[\d.]*|ruby|uvx?|yarn"
)
"""The pattern of programs that run code from the folder in which they start."""

WHOLE_TREE: Final = b""
"""Stands for the whole worktree, for a setting that does not show which files its program uses."""


@dataclass(frozen=True, slots=True)
class TreeChanges:
    """Knows which files of a worktree a guest has changed since the baseline."""

    root: bytes
    """The worktree's absolute path."""
    is_unchanged: Callable[[bytes], bool]
    """Returns whether a path and everything below it is unchanged; `WHOLE_TREE` excludes `.git`."""


def own_config(git: Git, content: bytes, baseline: bytes, changes: TreeChanges) -> bytes:
    """Return the workspace's configuration with only the allowed settings.

    `content` is the configuration as a guest has left it; git only parses it, so `git` may be any repository.
    """
    found = _settings(git, content)
    harmless = [each for each in found if _is_allowed(each, _HARMLESS)]
    names = {name for name, _ in harmless}
    own = [
        each
        for each in _settings(git, baseline)
        if each[0] not in names and all(map(changes.is_unchanged, _named_paths(each, changes.root)))
    ]
    return _as_file(content, found, own + harmless)


def inner_config(git: Git, content: bytes, git_dir: bytes) -> bytes:
    """Return a configuration with only the allowed settings, for `git_dir` of a submodule or nested repository."""
    found = _settings(git, content)
    rules = {**_HARMLESS, **_HARMLESS_INSIDE}
    return _as_file(
        content, found, [each for each in found if _is_allowed(each, rules) or _is_inside(each, git_dir)]
    )


def named_paths(git: Git, content: bytes, root: bytes) -> set[bytes]:
    """Return the worktree's paths, or `WHOLE_TREE`, on which a configuration's settings depend."""
    return {path for each in _settings(git, content) for path in _named_paths(each, root)}


def _named_paths(setting: Setting, root: bytes) -> Iterator[bytes]:
    name, value = setting
    if not value or _PLAIN.fullmatch(name) or re.fullmatch(_BOOLEAN, value):
        return
    words = [os.fsencode(word) for word in _BREAKS.split(value) if word]
    if _INCLUDE.fullmatch(name) or (words and _LOOKS_AROUND.fullmatch(os.fsdecode(basename(words[0])))):
        yield WHOLE_TREE
        return
    state = dirname(dirname(root)) + b"/"
    for word in words:
        path = normpath(join(root, word))
        below = path.removeprefix(root + b"/")
        if path.startswith(state) and (below == path or (len(words) > 1 and b"/" in word)):
            yield WHOLE_TREE
        elif len(words) == 1 and below != path:
            yield below


def _settings(git: Git, content: bytes) -> list[Setting]:
    """Return a configuration's settings in order; empty if git cannot read it."""
    listed = git.try_run("config", "--file", "-", "--no-includes", "--null", "--list", stdin=content)
    if listed.exit_code != 0:
        return []
    lines = listed.stdout.decode(errors="surrogateescape").split("\0")[:-1]
    return [(name, value if given else None) for name, given, value in (line.partition("\n") for line in lines)]


def _is_allowed(setting: Setting, rules: Mapping[str, str]) -> bool:
    name, value = setting
    return any(re.fullmatch(key, name) and re.fullmatch(allowed, value or "") for key, allowed in rules.items())


def _is_inside(setting: Setting, git_dir: bytes) -> bool:
    """Return whether a setting is `core.worktree` and names a folder in the worktree, but inside no `.git`."""
    name, value = setting
    path = normpath(join(git_dir, os.fsencode(value or ".")))
    return name == "core.worktree" and not path.startswith((b"/", b"..")) and b".git" not in path.split(b"/")


def _as_file(content: bytes, settings: list[Setting], own: list[Setting]) -> bytes:
    """Return `content` if its `settings` equal the permitted ones, `own`; otherwise a file with only `own`."""
    by_name = itemgetter(0)  # git keeps the order of the values of one name
    if settings and sorted(own, key=by_name) == sorted(settings, key=by_name):
        return content
    return b"".join(as_config_line(*name.rpartition(".")[::2], value) for name, value in own)
