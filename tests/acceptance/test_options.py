"""Options of many commands, and options of commands that other tests run without them."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import httpx
import pytest
from fakes.command_lines import leaves, options_of, parameters
from fakes.failing_bubblewrap import failing_bubblewrap
from fakes.mcp_client import tools_of
from fakes.repositories import Origin
from fakes.septet_command import Septet, free_ports
from fakes.waiting import until

pytestmark = pytest.mark.faces

NOBODY: Final = "127.0.0.1:1"
"""No server has this port."""
NEEDED: Final = {"run": ("--repo", "o/r", "--title", "T"), "create": ("--repo", "o/r", "--title", "T"),
                 "pipeline": ("--repo", ".", "--issues", "1"), "reject": ("--feedback", "x"),
                 **dict.fromkeys(("approve", "cancel", "retry"), ("x",)), "logs": ("--follow",)}  # fmt: skip
"""Options without which a command fails before it calls its server."""
VALUES: Final = {"stage": "triaged", "amount": "5usd"}
"""Values of arguments after the first, if an arbitrary word is invalid."""
MISTAKES: Final = {
    ("approve", "x", "--plan", "1f"): "--plan must be a SHA-256: 64 hexadecimal digits.",
    ("budget", "raise", "day", "--step", "build_plan", "much"): "AMOUNT must be an amount such as 5usd",
    ("budget", "set", "day", "0usd"): "AMOUNT has an amount of 0: leave it out instead.",
    ("costs", "--since", "x"): "since 'x' is not a week.",
    ("intake", "add", "--repo", "o/r", "--every", "1"): "--every must be at least",
    ("list", "--since", "3"): "--since 3 is not an age.",
    ("move", "x", "foo"): "foo is not a stage.",
    ("pipeline", "--repo", ".", "--issues", "1", "--executors", "99"): "--executors must be at most",
    ("pipeline", "--repo", ".", "--issues", "1,a"): "'a' is not the number of an issue.",
    ("retry", "x", "--from", "foo"): "--from foo: there is no such step.",
    ("run", "--repo", "o/r", "--title", "T", "--id", "a b"): "'a b' is not a work order id.",
}
"""Command lines with a mistake, and a part of their message."""


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


def test_a_mistake_is_told_before_a_server_is_asked(septet: Septet) -> None:
    """A person needs no server to learn of a wrong word, and each mistake has its remedy."""
    with ThreadPoolExecutor(4) as pool:
        ended = [*pool.map(lambda line: septet(*line, "--address", NOBODY), MISTAKES)]
    told = {
        line: (each.code, words in each.err) for (line, words), each in zip(MISTAKES.items(), ended, strict=True)
    }
    assert told == dict.fromkeys(MISTAKES, (2, True)), [each.err for each in ended]


async def test_tools_ask_the_server_of_their_address(septet: Septet, tmp_path: Path) -> None:
    """`septet mcp --address` serves, and its tools report that no server answers at the address."""
    async with tools_of(septet, tmp_path / "mcp.log", None, "--address", NOBODY) as tools:
        assert NOBODY in (await tools.refused("board"))["message"]


@pytest.mark.parametrize("command", ["up", "demo"])
def test_a_sandbox_that_is_demanded_is_had_or_nothing_starts(septet: Septet, command: str) -> None:
    """If bubblewrap fails, `--sandbox bwrap` ends the command with the cause; `test_worker` tests the worker."""
    ports = zip(("--port", "--ui-port", "--api-port"), map(str, free_ports(3)), strict=True)
    others = [word for pair in ports for word in pair] if command == "up" else []
    machine = Septet(septet.root, {"PATH": failing_bubblewrap(septet)})
    ended = machine(command, "--sandbox", "bwrap", *others, "--json")
    assert (ended.code, ended.error["type"]) == (1, "Sandbox"), ended
    assert "cannot make a sandbox here: bwrap: no" in ended.error["message"]


def test_pipelines_are_listed_page_by_page(served: Septet, origin: Origin) -> None:
    """`--limit` cuts the list, and `--after` continues at the cut."""

    def pages() -> list[list[str]]:
        first = served("pipeline", "list", "--limit", "1", "--json").json
        second = served("pipeline", "list", "--limit", "1", "--after", first["next"], "--json").json
        return [[each["id"] for each in page["pipelines"]] for page in (first, second)]

    for name in ("pl-page-1", "pl-page-2"):
        line = ("--repo", origin.bare, "--label", "nobody-has-it", "--id", name)
        assert served("pipeline", *line, "--json").code == 0
    for name in ("pl-page-1", "pl-page-2"):
        served.wait_for_pipeline(name, lambda pipeline: pipeline["closed_at"])
    # a closing pipeline changes its place in the server's list a moment after it reports its end
    first, second = until(pages, holds=lambda found: found[0] != found[1])
    assert len(first) == len(second) == 1


def test_an_issue_of_the_local_forge_has_its_labels(septet: Septet, origin: Origin) -> None:
    """`--label` may be given several times."""
    added = septet("issue", "add", "--repo", origin.bare, "--title", "T", "--label", "a", "--label", "b", "--json")
    assert added.json["issue"]["labels"] == ["a", "b"]


def test_links_of_the_page_lead_to_the_web_ui_of_the_setting(served: Septet, septet: Septet) -> None:
    """SEPTET_TEMPORAL_UI_URL sets the served.address of Temporal's web UI, if no `septet up` of this machine has one."""
    (port,) = free_ports(1)
    settings = {"SEPTET_TEMPORAL_UI_URL": "https://temporal.example", "SEPTET_API_TOKEN": "none"}
    with septet.serving("serve", "--port", str(port), "--address", served.address, **settings) as serving:
        page = httpx.get(serving.api, trust_env=False).text
    assert "https://temporal.example/namespaces/default/workflows" in page
