"""Options of many commands, and options of commands that other tests run without them."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import httpx
import pytest
from fakes.command_lines import leaves, options_of, parameters
from fakes.mcp_client import tools_of
from fakes.septet_command import Septet, free_ports

pytestmark = pytest.mark.faces

NOBODY: Final = "127.0.0.1:1"
"""No server has this port."""
NEEDED: Final = {"run": ("--repo", "o/r", "--title", "T"), "create": ("--repo", "o/r", "--title", "T"),
                 "pipeline": ("--repo", ".", "--issues", "1"), "reject": ("--feedback", "x"),
                 **dict.fromkeys(("approve", "cancel", "retry"), ("x",)), "logs": ("--follow",)}  # fmt: skip
"""Options without which a command fails before it calls its server."""
VALUES: Final = {"stage": "triaged", "amount": "5usd"}
"""Values of arguments after the first, if an arbitrary word is invalid."""


def with_address(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command line of a command that has `--address`, without the address."""
    needed = [each for each in parameters(path) if not each.names[0].startswith("-") and each.required]
    arguments = ("x", *(VALUES.get(each.field_info.name, "x") for each in needed[1:])) if needed else ()
    return (*path, *arguments, *NEEDED.get(" ".join(path), ()))


LINES: Final = [with_address(path) for path in leaves() if "--address" in options_of(path) and path != ("mcp",)]


def test_every_command_asks_the_server_of_its_address(septet: Septet) -> None:
    """The address takes precedence over all settings: without a server on it, the error or the finding names it."""
    with ThreadPoolExecutor(4) as pool:
        ended = [*pool.map(lambda line: septet(*line, "--address", NOBODY, "--json"), LINES)]
    told = {
        line[0] if line[0] != "pipeline" else line[:2]: each.json for line, each in zip(LINES, ended, strict=True)
    }
    checks = told.pop("doctor")["checks"]
    assert NOBODY in next(check["message"] for check in checks if check["name"] == "server")
    assert {key: answer["error"]["type"] for key, answer in told.items()} == dict.fromkeys(
        told, "ServerNotReached"
    )
    assert all(NOBODY in answer["error"]["message"] for answer in told.values())


async def test_tools_ask_the_server_of_their_address(septet: Septet, tmp_path: Path) -> None:
    """`septet mcp --address` serves, and its tools report that no server answers at the address."""
    async with tools_of(septet, tmp_path / "mcp.log", None, "--address", NOBODY) as tools:
        assert NOBODY in (await tools.refused("board"))["message"]


def test_links_of_the_page_lead_to_the_web_ui_of_the_setting(served: Septet, septet: Septet) -> None:
    """SEPTET_TEMPORAL_UI_URL sets the served.address of Temporal's web UI, if no `septet up` of this machine has one."""
    (port,) = free_ports(1)
    settings = {"SEPTET_TEMPORAL_UI_URL": "https://temporal.example", "SEPTET_API_TOKEN": "none"}
    with septet.serving("serve", "--port", str(port), "--address", served.address, **settings) as serving:
        page = httpx.get(serving.api, trust_env=False).text
    assert "https://temporal.example/namespaces/default/workflows" in page
