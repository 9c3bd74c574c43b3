"""The skill that teaches an agent to use Septet: its format, and its commands and tools."""

import re
from pathlib import Path

import pytest
import yaml
from fakes.command_lines import unknown_parts

from clients.mcp.tools import TOOLS

FOLDER = Path(__file__).parents[3] / "skills/septet"
TEXT = (FOLDER / "SKILL.md").read_text(encoding="utf-8")
MOST_LINES = 500
"""The most lines of a skill, since an agent reads the whole skill."""


def front_matter() -> dict[str, str]:
    _, yaml_text, _ = TEXT.split("---\n", 2)
    fields: dict[str, str] = yaml.safe_load(yaml_text)
    return fields


def commands() -> list[str]:
    blocks = re.findall(r"^```\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def test_its_front_matter_is_that_of_a_skill() -> None:
    """Name, description and length keep the format's limits, and the name equals the folder's name."""
    fields = front_matter()
    assert fields.keys() <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert fields["name"] == FOLDER.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", fields["name"])
    assert 0 < len(fields["name"]) <= 64
    assert 0 < len(fields["description"]) <= 1024
    assert len(fields["compatibility"]) <= 500
    assert len(TEXT.splitlines()) <= MOST_LINES


@pytest.mark.parametrize("line", commands())
def test_each_command_of_it_exists(line: str) -> None:
    """The subcommand and the options of each command are those of `septet`."""
    assert unknown_parts(line) == set()


def test_each_tool_that_it_names_exists() -> None:
    """Each tool that the skill names is a tool of the MCP server."""
    named = re.search(r"MCP tools \((.*?)\)", TEXT, re.DOTALL)
    assert named is not None
    tools = set(re.findall(r"`(\w+)`", named[1]))
    assert tools
    assert tools <= set(TOOLS)
