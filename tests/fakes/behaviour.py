"""Tables of Septet's faces; `PYTHONPATH=tests .venv/bin/python -c 'from fakes.behaviour import write; write()'`."""

import asyncio
import json
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from fakes.septet_command import PROGRAMS, Ended, Septet
from fakes.unreached import unreached

from clients.cli.terminal.output import ExitCode
from clients.http.app import api_of
from clients.mcp.tools import TOOLS
from septet.settings import Settings

TABLES: Final = Path(__file__).parents[1] / "data" / "behaviour"
_WORDS: Final = frozenset({"description", "summary", "title", "examples", "example"})
"""The parts of a schema that only people read."""
_NOBODY: Final = "127.0.0.1:1"
_BESIDE: Final = frozenset({"Arguments", "Options"})
"""The sections of a help that list no commands."""
_PROGRAM: Final = re.compile(r"python -m [\w.]*septet")
"""The parser's name of a program that was forked from another program."""
_ROW: Final = re.compile(r"^  (?P<label>\S+(?: \S+)*)(?:  +(?P<text>.+))?$")
_ORDER: Final = ("--repo", "o/r", "--title", "T")
_WRONG: Final[tuple[tuple[str, ...], ...]] = (
    (), ("help",), ("help", "budget"), ("nonsense",), ("--nonsense",), ("shwo", "wo-1"), ("pipeline", "nonsense"),
    ("budget",), ("budget", "nonsense"), ("pipeline", "--label", "l", "list"), ("pipeline", "--wait", "show", "pl-1"),
    # Options under their names in the API, misspelt, and in the form that turns them off.
    ("run", "--description", "T"), ("run", "--labels", "l"), ("run", "--github-issue-number", "1"),
    ("run", "--titel", "T"), ("run", "--no-draft"), ("run", "--no-wait"), ("list", "--no-json"), ("run", "--empty-after"),
    ("logs", "wo-1", "-x"), ("logs", "wo-1", "--folow"), ("board", "-fx"),
    # Values that are missing or that their option does not accept.
    ("run", "--title"), ("run", "--after"), ("list", "--limit"), ("run", "--draft=yes"), ("board", "--follow=1"),
    ("run", *_ORDER, "--priority", "x"), ("run", *_ORDER, "--priority", "1.5"), ("run", *_ORDER, "--priority", "6"),
    ("run", *_ORDER, "--priority", ""), ("run", "--repo", "o/r", "--issue", "x"), ("run", "--repo", "o/r", "--issue", "0x1"),
    ("run", *_ORDER, "--sessions", "x"), ("run", *_ORDER, "--sessions", "SHARED"), ("run", *_ORDER, "--after-until", "x"),
    ("run", *_ORDER, "--budget", "x"), ("run", *_ORDER, "--step", "x"), ("run", *_ORDER, "--step", "x.model=m"),
    ("run", *_ORDER, "--step", "build_plan.x=m"), ("run", *_ORDER, "--label", ""), ("run", *_ORDER, "--agent", "-x"),
    ("create", *_ORDER, "--stage", "x"), ("create", *_ORDER, "--stage", ""), ("run", *_ORDER, "--push-to", "x"),
    ("run", *_ORDER, "--after", "a b"), ("run", *_ORDER, "--id", "a b"), ("run", *_ORDER, "--issue", "1"), ("run",),
    ("run", "o/r", "--repo", "o/s", "--title", "T"), ("run", "o/r", "o/s"), ("run", *_ORDER, "--model", "\n"),
    ("list", "--limit", "x"), ("list", "--limit", "0"), ("list", "--limit", "1001"), ("list", "--limit", "1.0"),
    ("list", "--state", "x"), ("list", "--state", "Open"), ("list", "--since", "x"), ("board", "--limit", "-1"),
    ("costs", "--by", "x"), ("costs", "--since", "x"), ("up", "--port", "0"), ("up", "--port", "x"),
    ("up", "--sandbox", "x"), ("serve", "--port", "65536"), ("demo", "--scenario", "x"), ("promote", "--ramp", "101"),
    ("promote", "--ramp", "x"), ("promote", "--within", "-1"), ("pr", "show", "x"), ("pr", "show", "0"),
    ("pr", "merge", "1", "x"), ("issue", "close", "-1"), ("issue", "add"), ("issue", "add", "--title", " "),
    ("rescue", "restore", "wo-1/1"), ("rescue", "restore", "--to", "x"), ("move", "wo-1", "x"), ("retry", "wo-1", "--from", "x"),
    ("approve",), ("approve", "wo-1", "--all"), ("approve", "wo-1", "--plan", "x"), ("approve", "wo-1", "wo-2", "--finding", "x"),
    ("reject", "wo-1"), ("cancel",), ("cancel", "wo-1", "--agent", "codex"), ("retry", "--all", "--wait"), ("budget", "set", "day"), ("budget", "set", "day", "x"),
    ("budget", "raise", "day", "5usd", "--expected", "x"), ("intake", "add"), ("intake", "add", "--repo", "o/r", "--every", "x"),
    ("intake", "add", "--repo", "o/r", "--every", "1"), ("pipeline",), ("pipeline", "--issues", "1,a", "--repo", "o/r"),
    ("pipeline", "--issues", "1", "--repo", "o/r", "--executors", "x"), ("pipeline", "--issues", "1", "--repo", "o/r", "--plan-seconds", "x"),
    ("pipeline", "--issues", "1", "--repo", "o/r", "--executors", "99"), ("codec", "new-key"), ("codec", "new-key", "a b"),
    ("docs", "nonsense"), ("docs", "comands"), ("init", "--repo", "nonsense"), ("open", "--pr"), ("backup",), ("mcp", "--json"),
    ("logs", "wo-1", "--network", "--raw"), ("host-gone",), ("doctor", "--try", "x"), ("worker", "--sandbox", "x"),
    # Lines that the parser accepts; they fail because no server listens at the address.
    ("show", "--", "wo-1"), ("show", "-x"), ("list", "--agent", "a", "--agent", "b"), ("list", "--limit=5"), ("list", "--agent="),
    ("board", "-f"), ("move", "--why", "-x", "wo-1", "triaged"), ("cancel", "wo-1", "wo-2", "--yes"), ("list", "--lim", "5"),
    ("retry", "wo-1", "--json", "--feedback", "--x"), ("run", *_ORDER, "--after", "wo-1", "--after", "wo-2"),
)  # fmt: skip
"""Command lines that end before a server answers: with a mistake, or because no server is reachable."""
_COMPLETED: Final[tuple[str, ...]] = (
    "s", "budget ", "pipeline s", "show wo-", "approve wo-b ", "run --after wo-", "run --agent c", "run --se",
    "run --sessions s", "retry x --from bu", "move x ", "demo --scenario m", "docs comm", "pipeline show pl-",
    "rescue restore wo-", "list --state ", "board -", "costs --by ", "create --stage ", "up --sandbox ",
)  # fmt: skip
"""The command lines at which the tabulator is pressed."""
_PRESS: Final = r"""
eval "$(septet --show-completion)"
registered=$(complete -p septet); name=${registered#*-F }; name=${name%% *}
while IFS= read -r line; do
    IFS=' ' read -ra COMP_WORDS <<< "$line"
    [[ $line == *' ' ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_LINE=$line COMP_POINT=${#line} COMPREPLY=()
    "$name" septet "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    echo "${COMPREPLY[*]}"
done
"""
"""A bash with the completion, which takes each line of stdin for a command line."""


def commands(septet: Septet) -> dict[str, Any]:
    """Return the help of each command, keyed by the words of the command line, without line breaks."""
    shown: dict[str, Any] = {}
    ahead: list[tuple[str, ...]] = [()]
    while ahead:
        helps = {words: _parts_of(septet(*words, "--help").out) for words in ahead}
        shown |= {" ".join(("septet", *words)): parts for words, parts in helps.items()}
        ahead = [
            (*words, name)
            for words, parts in helps.items()
            for heading, rows in parts.items()
            if isinstance(rows, dict) and heading not in _BESIDE
            for name in rows
        ]
    return shown


def _parts_of(text: str) -> dict[str, Any]:
    """Return a help by its sections: the rows of each by their labels, and the text outside the sections."""
    parts: dict[str, Any] = {"text": ""}
    rows: dict[str, str] | None = None
    for line in text.splitlines():
        if line.endswith(":") and not line.startswith(" "):
            rows = parts[line.removesuffix(":")] = {}
        elif not line.strip():
            rows = None if rows else rows
        elif rows is None:
            parts["text"] = _PROGRAM.sub("septet", f"{parts['text']} {line.strip()}".strip())
        elif (match := _ROW.match(line)) is not None:
            rows[match["label"]] = " ".join((match["text"] or "").split())
        else:
            last = next(reversed(rows))
            rows[last] = " ".join([*rows[last].split(), *line.split()])
    return parts


def mistakes(septet: Septet, names: Iterable[str]) -> dict[str, Any]:
    """Return the output and exit code of wrong command lines: some for each command in `names`, and the fixed ones."""
    each = [tuple(name.split()[1:]) for name in names]
    lines = [(*words, "--nonsense", *more) for words in each for more in ((), ("--json",))]
    lines += [*((*words, *"abcd") for words in each if words), *_WRONG]
    return {shlex.join(words): _told(septet, septet(*words, cwd=septet.root)) for words in lines}


def _told(septet: Septet, ended: Ended) -> dict[str, Any]:
    def words(text: str) -> str:
        return " ".join(_PROGRAM.sub("septet", text.replace(str(septet.root), "ROOT")).split())

    is_help = ended.err.startswith("Usage: ")
    return {"code": ended.code, "out": words(ended.out), "err": "its help" if is_help else words(ended.err)}


def completions(septet: Septet) -> dict[str, list[str]]:
    for folder in ("runs/wo-a", "runs/wo-b", "pipelines/pl-1"):
        (septet.state / folder).mkdir(parents=True)
    lines = [f"septet {words}" for words in _COMPLETED]
    env = {**septet.env, "PATH": f"{PROGRAMS}:{septet.env['PATH']}"}
    shell = subprocess.run(
        ["bash", "--norc", "-c", _PRESS],
        env=env,
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    return {line: sorted(words.split()) for line, words in zip(lines, shell.stdout.splitlines(), strict=True)}


def _plain(value: Any) -> Any:
    if callable(value):
        return "computed"
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def settings() -> dict[str, Any]:
    return {
        name: {
            "default": "computed" if field.default_factory is not None else _plain(field.default),
            "variables": [*getattr(field.validation_alias, "choices", (f"SEPTET_{name.upper()}",))],
        }
        for name, field in Settings.model_fields.items()
    }


async def http() -> dict[str, Any]:
    """Return the operations and values of the HTTP API, without words for people."""
    with tempfile.TemporaryDirectory() as state:
        described = _without_words(api_of(await unreached(Path(state)), None).openapi())
    operations = {
        f"{method.upper()} {path}": operation
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    }
    return {**operations, **described["components"]["schemas"]}


def tools() -> dict[str, Any]:
    described = {name: tool.as_tool().model_dump(mode="json") for name, tool in TOOLS.items()}
    return {
        name: {
            "hints": tool["annotations"],
            "takes": _without_words(tool["input_schema"]),
            "gives": [sorted(each["properties"]) for each in tool["output_schema"]["anyOf"]],
        }
        for name, tool in described.items()
    }


def _without_words(value: Any, *, of_names: bool = False) -> Any:
    if isinstance(value, Mapping):
        return {
            name: _without_words(part, of_names=name == "properties")
            for name, part in value.items()
            if of_names or name not in _WORDS
        }
    return [_without_words(part) for part in value] if isinstance(value, list) else value


async def tables() -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="septet-") as folder:
        septet = Septet(Path(folder), {"TEMPORAL_ADDRESS": _NOBODY, "COLUMNS": "100", "TERMINAL_WIDTH": "100"})
        helps = commands(septet)
        typed = {"commands": helps, "mistakes": mistakes(septet, helps), "completions": completions(septet)}
    return {
        **typed,
        "exit_codes": {code.name: code.value for code in ExitCode},
        "http": await http(),
        "settings": settings(),
        "tools": tools(),
    }


def as_text(table: Any) -> str:
    lines = (f" {json.dumps(name)}: {json.dumps(table[name], sort_keys=True)}" for name in sorted(table))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write() -> None:
    for file, made in asyncio.run(tables()).items():
        (TABLES / f"{file}.json").write_text(as_text(made), encoding="utf-8")
