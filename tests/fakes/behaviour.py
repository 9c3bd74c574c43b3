"""What people, programs and agents can ask of Septet, as tables: for a test that holds what moves to what it was.

`PYTHONPATH=tests .venv/bin/python -m fakes.behaviour` writes the tables anew; the difference says what changed for users.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import typer.main
from fakes.unreached import unreached

from clients.cli.main import app
from clients.cli.reply import ExitCode
from clients.http.app import api_of
from clients.mcp.pipeline_tools import PIPELINE_TOOLS
from clients.mcp.tools import TOOLS
from septet.settings import Settings

TABLES: Final = Path(__file__).parents[1] / "data" / "behaviour"
_WORDS: Final = frozenset({"description", "summary", "title", "examples", "example"})
"""What a schema says to people, and no program reads."""
_LIBRARY: Final = frozenset({"--install-completion", "--show-completion"})


def commands() -> dict[str, Any]:
    """Return each command with its arguments and options, by what is typed."""
    return dict(_commands(typer.main.get_command(app), "septet"))


def _commands(command: Any, typed: str) -> Iterator[tuple[str, Any]]:
    parts = getattr(command, "commands", {})
    shown = [each for each in command.params if not _LIBRARY & {*each.opts}]
    yield (
        typed,
        {
            "hidden": command.hidden,
            "commands": sorted(parts),
            "arguments": [_parameter(each) for each in shown if each.param_type_name == "argument"],
            "options": {each.opts[0]: _parameter(each) for each in shown if each.param_type_name == "option"},
        },
    )
    for name, part in parts.items():
        yield from _commands(part, f"{typed} {name}")


def _parameter(parameter: Any) -> dict[str, Any]:
    facts = {
        "names": [*parameter.opts[1:], *parameter.secondary_opts],
        "takes": None if getattr(parameter, "is_flag", False) else parameter.metavar or parameter.name.upper(),
        "least": parameter.min,
        "most": parameter.max,
        "many": parameter.multiple or parameter.nargs == -1,
        "required": parameter.required,
        "default": _plain(parameter.default),
        "env": parameter.envvar,
        "hidden": parameter.hidden,
        "completes": parameter._custom_shell_complete is not None,
    }
    return {name: value for name, value in facts.items() if value not in (None, False, [], ())}


def _plain(value: Any) -> Any:
    if callable(value):
        return "computed"
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def settings() -> dict[str, Any]:
    """Return each setting with its default, and the variables that give it."""
    return {
        name: {
            "default": "computed" if field.default_factory is not None else _plain(field.default),
            "variables": [*getattr(field.validation_alias, "choices", (f"SEPTET_{name.upper()}",))],
        }
        for name, field in Settings.model_fields.items()
    }


async def http() -> dict[str, Any]:
    """Return the operations of the HTTP API, and the values that they take and give, without words for people."""
    with tempfile.TemporaryDirectory() as state:
        described = _without_words(api_of(await unreached(Path(state)), None).openapi())
    operations = {
        f"{method.upper()} {path}": operation
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    }
    return {**operations, **described["components"]["schemas"]}


def tools() -> dict[str, Any]:
    """Return the tools of agents with what they take, and the names of what they give."""
    described = {call.tool: call.as_tool().model_dump(mode="json") for call in (*TOOLS, *PIPELINE_TOOLS)}
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
    """Return all tables, by the names of their files."""
    return {
        "commands": commands(),
        "exit_codes": {code.name: code.value for code in ExitCode},
        "http": await http(),
        "settings": settings(),
        "tools": tools(),
    }


def as_text(table: Any) -> str:
    """Return a table as its file has it: a line for each entry."""
    lines = (f" {json.dumps(name)}: {json.dumps(table[name], sort_keys=True)}" for name in sorted(table))
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    TABLES.mkdir(exist_ok=True)
    for file, made in asyncio.run(tables()).items():
        (TABLES / f"{file}.json").write_text(as_text(made), encoding="utf-8")
    sys.exit(0)
