"""No text of ours sends a person with git or an agent's CLI into a worktree: an agent wrote its settings.

The test reads the documents, the page and each string of the product. A prompt may send an agent there.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("septet", "activities", "workflows", "workers", "clients")
_PLACE: Final = r"(?:worktree|workspace|working tree|clone\b|workspaces/)"
_GIT: Final = r"git (?:-C|add|apply|checkout|clean|commit|diff|log|merge|pull|rebase|reset|restore|show|stash|status|switch)\b"
_SAME: Final = r"(?:(?!\. )[^;|\n])*"
"""Any text up to the end of the sentence."""
_CLI: Final = r"\b(?:claude|codex|gemini|copilot|opencode) (?:--resume|--continue|resume)\b"
ADVICE: Final = (
    rf"(?i)\blook (?:at|into|in) (?:the|its|your|that) (?:commit\b|{_PLACE})",
    rf"(?i){_GIT}{_SAME}{_PLACE}",
    rf"(?i){_PLACE}{_SAME}{_GIT}",
    rf"\bcd [^\n]*{_PLACE}",
    _CLI,
)
FOR_AGENTS: Final = (
    "septet/agents/turns/launch.py",
    "septet/agents/scripted/",
    "septet/commands/",
    "workflows/hosts/steps.py",
)
"""The files with texts for agents."""
ALLOWED: Final = {
    "Do not start git or an agent's CLI in": "the warning itself",
    "a clone of yours": "a person's own, which no guest has seen",
}


def _texts() -> Iterator[tuple[str, str]]:
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    pages += [path for folder in ("docs", "skills", "deploy", "docker") for path in (ROOT / folder).rglob("*.md")]
    pages += [path for kind in ("*.html", "*.js") for path in (ROOT / "clients" / "page").rglob(kind)]
    for page in pages:
        name = page.relative_to(ROOT).as_posix()
        if name == "docs/attacks.md" or name.startswith("docs/adr/"):
            continue  # a table of attacks, and decisions with their reasons
        for line in page.read_text(encoding="utf-8").splitlines():
            yield name, line
    for package in PACKAGES:
        for module in (ROOT / package).rglob("*.py"):
            name = module.relative_to(ROOT).as_posix()
            for text in _strings(ast.parse(module.read_text(encoding="utf-8"))):
                yield name, text


def _strings(tree: ast.AST) -> Iterator[str]:
    """Yield each string that is no docstring, with `…` for the values of an f-string."""
    documented = {
        id(statement.value)
        for node in ast.walk(tree)
        if isinstance(body := getattr(node, "body", None), list)
        for statement in body
        if isinstance(statement, ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            yield node.value


def _advises(text: str) -> bool:
    return any(re.search(pattern, text) for pattern in ADVICE) and not any(part in text for part in ALLOWED)


def test_no_text_sends_a_person_into_a_worktree() -> None:
    """No text gives such advice; texts name `septet retry --from`, `septet rescue restore` or `septet logs`."""
    assert [(name, text) for name, text in _texts() if not name.startswith(FOR_AGENTS) and _advises(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        "Look at the worktree; `septet rescue list` names its snapshots.",
        "Look at that commit; `git reset` in the worktree takes it back.",
        'cd "$STATE/workspaces/wo-42" && claude --resume SESSION',
        "Resume it with `codex resume ID`.",
        "git -C ~/.local/state/septet/workspaces/wo-1 diff",
    ],
)
def test_such_an_advice_is_found(text: str) -> None:
    """Advice of earlier releases and similar advice is found."""
    assert _advises(text)
