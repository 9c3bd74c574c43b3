"""The paths that are protected by name, in any folder and under the rules of other file systems."""

import time

import pytest

from septet.protected_paths import PROTECTED, ProtectedPaths

BY_DEFAULT = ProtectedPaths(PROTECTED)


@pytest.mark.parametrize(
    "path",
    [
        ".github/workflows/ci.yml", ".GitHub/Workflows/x.yml", "sub/.github/workflows/x.yml", ".github/workflows",
        ".github/actions/setup/action.yml", "action.yml", "tools/Action.YAML", ".github/copilot-instructions.md",
        ".github/instructions/py.instructions.md", ".gitlab-ci.yml", ".gitea/workflows/x.yml", ".forgejo/x",
        ".circleci/config.yml", "JENKINSFILE", "azure-pipelines.yml", ".pre-commit-config.yaml", ".husky/pre-commit",
        ".vscode/tasks.json", ".devcontainer/devcontainer.json", ".gitmodules", "docs/CODEOWNERS", "CLAUDE.md",
        "sub/claude.md", "AGENTS.md", "a/b/GEMINI.md", ".claude/settings.json", ".codex/config.toml", ".gemini/x",
        ".cursorrules", ".cursor/rules/a.mdc", "opencode.json", ".mcp.json", ".septet/septet.toml",
        ".septet/commands/implement_plan.md",
        # names that macOS or Windows would write to such a path
        ".g\u200bithub/workflows/x.yml", ".hus\u212ay/pre-commit", ".v\u017fcode/tasks.json", "CLAUDE.md. ",
        "CLAUDE.md::$DATA", ".github\\workflows\\x.yml", "\uff23LAUDE.md", ".github./workflows /x.yml",
        "\udcff/CLAUDE.md", "x" * 5000,
    ],
)  # fmt: skip
def test_a_path_is_protected_by_its_name(path: str) -> None:
    """A path is protected in any folder, in any case, and with all paths below it."""
    assert BY_DEFAULT.cover(path)


@pytest.mark.parametrize(
    "path",
    [
        "src/app.py", ".github/ISSUE_TEMPLATE/bug.md", ".github", "my.github/workflows/x.yml", "CLAUDE.mdx",
        "docs/claude.html", "github/workflows/x.yml", "workflows/x.yml", "reaction.yml", ".vscode/settings.json", "",
    ],
)  # fmt: skip
def test_other_paths_are_not(path: str) -> None:
    """A path that only resembles a protected path is not protected."""
    assert not BY_DEFAULT.cover(path)


def test_folders_above_are_known() -> None:
    """The folders above a protected path are known, since a symlink in their place would lead elsewhere."""
    assert all(map(BY_DEFAULT.lead_through, (".github", "sub/.GitHub", ".vscode")))
    assert not any(map(BY_DEFAULT.lead_through, ("src", ".github/x", "")))


def test_patterns_replace_the_list() -> None:
    """Own patterns replace the list, a star matches within one name, and an empty list protects no path."""
    own = ProtectedPaths(["deploy/", "*.tf", "a*b*c", "docs/*/secret"])
    assert all(map(own.cover, ("deploy/x", "k8s/Deploy/y", "main.tf", "a1b2c", "abc", "docs/x/secret/y")))
    assert not any(
        map(own.cover, ("CLAUDE.md", "deployed", "main.tfx", "a1b2cd", "docs/x/y/secret", "docs/secret"))
    )
    assert not ProtectedPaths([]).cover("CLAUDE.md")
    assert not ProtectedPaths(["/"]).cover("CLAUDE.md")


@pytest.mark.parametrize("path", ["a/" * 2040, ".cursor" * 585, ".github/" + "instruction" * 370, "ab" * 2040])
def test_no_name_takes_long(path: str) -> None:
    """A long path is checked in less than half a second, whatever its letters."""
    patterns = ProtectedPaths([*PROTECTED, "*a*b*a*b*a*b*a*c", "*instruction*instruction*x"])
    began = time.process_time()
    patterns.cover(path)
    assert time.process_time() - began < 0.5
