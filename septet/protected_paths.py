"""Find protected paths: files that CI, a forge or a coding agent uses before any person reviews them."""

import re
import unicodedata
from collections.abc import Iterable
from typing import Annotated, Final, Literal

from pydantic import StringConstraints

OnProtected = Literal["wait", "draft", "refuse"]
"""The treatment of a change of a protected path: the work order waits for a person, opens a draft, or fails."""
PathPattern = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"[^/*\s]")]
"""A path such as `.github/workflows`, in which `*` stands for any characters of one name."""
PROTECTED: Final = (
    # files that CI runs
    ".github/workflows", ".github/actions", "action.yml", "action.yaml", ".gitlab-ci*", ".gitea/workflows",
    ".gitea/actions", ".forgejo", ".circleci", ".travis.yml", ".drone.yml", ".woodpecker*", ".buildkite",
    ".tekton", ".cirrus.yml", "Jenkinsfile*", "azure-pipelines*", ".azure-pipelines", "bitbucket-pipelines.yml",
    "appveyor.yml", ".appveyor.yml",
    # files that run on the machine of a person who checks the branch out
    ".pre-commit-config.y*ml", ".husky", "lefthook*", ".lefthook*", ".vscode/tasks.json", ".devcontainer*",
    ".envrc", ".gitmodules",
    # the choice of reviewers
    "CODEOWNERS",
    # files that coding agents obey and start
    "CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "AGENTS.override.md", "GEMINI.md", ".claude*", ".codex*",
    ".gemini*", ".cursor*", ".copilot*", ".agents", ".opencode*", "opencode.json*", ".mcp.json",
    ".vscode/mcp.json", ".github/*instructions*", ".github/agents", ".github/prompts", ".github/copilot*",
    ".github/mcp*", ".windsurf*", ".clinerules*", ".aider*",
    # files that Septet obeys
    ".septet",
)  # fmt: skip
"""The protected paths, if neither the repository nor the worker names any."""
_LONGEST: Final = 4096
_STREAM: Final = re.compile(r":[^/]*")
_TRAILING: Final = re.compile(r"[. ]+(?=/|\Z)")


class ProtectedPaths:
    r"""Patterns of protected paths. A pattern covers each path that ends with it, and everything below that path.

    File systems may take different names for one file. Therefore case, forms of Unicode, characters of no width,
    trailing dots and streams of NTFS (`name:stream`) make no difference, and `\` counts as `/`.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        """Compile the patterns; an empty list protects nothing."""
        names = [tuple(filter(None, _plain(pattern).split("/"))) for pattern in patterns]
        names = [each for each in names if each]
        self.is_empty = not names
        self._covered = _any_of(names, "(?:/|\\Z)")
        self._leading = _any_of([each[:end] for each in names for end in range(1, len(each))], "\\Z")

    def cover(self, path: str) -> bool:
        """Return whether a path, relative to the root, is protected; a path of over 4096 characters always is."""
        return not self.is_empty and (len(path) > _LONGEST or self._covered.search(_plain(path)) is not None)

    def lead_through(self, path: str) -> bool:
        """Return whether a path, such as `.github`, may be a folder above a protected path."""
        return len(path) <= _LONGEST and self._leading.search(_plain(path)) is not None


def _plain(path: str) -> str:
    folded = unicodedata.normalize("NFKC", path.casefold()).casefold().replace("\\", "/")
    seen = "".join(each for each in folded if unicodedata.category(each) not in {"Cf", "Mn"})
    return _TRAILING.sub("", _STREAM.sub("", seen))


def _any_of(names: Iterable[tuple[str, ...]], end: str) -> re.Pattern[str]:
    """Return a pattern that finds, in linear time, any of `names` in a path, followed by the pattern `end`."""
    paths = "|".join("/".join(map(_component, each)) for each in dict.fromkeys(names))
    return re.compile(f"(?:\\A|/)(?:{paths or '(?!)'}){end}")


def _component(name: str) -> str:
    first, *rest = name.split("*")
    parts = [part for part in rest if part]
    found = "".join(f"(?>[^/]*?{re.escape(part)})" for part in parts[: -1 if rest and rest[-1] else None])
    if rest and rest[-1]:  # the last one stands at the name's end
        found += f"[^/]*{re.escape(rest[-1])}"
    return re.escape(first) + found + ("[^/]*" if rest and not rest[-1] else "")
