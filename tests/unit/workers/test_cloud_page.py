"""The commands in docs/cloud.md, checked against the needs of this release."""

import re
from pathlib import Path

import pytest
from temporalio.envconfig import ClientConfig
from temporalio.service import RPCError, RPCStatusCode

from workers.server.preflight import attributes_command, namespace_refusal
from workflows.wire.search_attributes import ALL

PAGE = (Path(__file__).parents[3] / "docs" / "cloud.md").read_text(encoding="utf-8")


def test_the_commands_register_each_search_attribute() -> None:
    """Both commands of the page register every search attribute."""
    assert attributes_command(ALL, "agents.a1b2c", "agents.a1b2c.tmprl.cloud:7233") in PAGE
    assert attributes_command(ALL, "agents", "temporal.example.org:7233") in PAGE


def test_the_commands_make_a_namespace() -> None:
    """The page's commands for a namespace equal the commands in the worker's own remedy."""
    refused = RPCError("denied", RPCStatusCode.PERMISSION_DENIED, b"")
    clouds = namespace_refusal(refused, "agents.a1b2c", "agents.a1b2c.tmprl.cloud:7233").remedy
    own = namespace_refusal(refused, "agents", "temporal.example.org:7233").remedy
    commands = [line for line in PAGE.splitlines() if " namespace create " in line]
    assert len(commands) == 2
    assert commands[0].replace("us-east-1", "REGION").removesuffix(" --auth-method api_key") in clouds
    assert commands[1] in own


def test_the_profiles_are_read_by_temporals_own_reader() -> None:
    """Temporal's own reader accepts both profiles, each with an address, a namespace and a key or certificate."""
    texts = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    profiles = [
        ClientConfig.load(config_source=text, config_file_strict=True).profiles["septet"] for text in texts
    ]
    assert [(profile.namespace, bool(profile.api_key), profile.tls is not None) for profile in profiles] == [
        ("agents.a1b2c", True, False),
        ("agents.a1b2c", False, True),
    ]
    assert all(profile.address for profile in profiles)
    assert profiles[1].tls is not None
    assert profiles[1].tls.client_cert is not None


def test_the_table_of_a_day_is_what_one_work_order_takes_so_many_times() -> None:
    """The table of a day has the actions and the history of one work order, multiplied and within 3 percent."""
    one = {what: (int(actions), int(size)) for what, actions, size in _rows(r"(\d+) \| (\d+) kB")}
    work, budgets = one["a work order"], one["three budgets, in addition"]
    own_account = budgets[1] / 3
    rows = list(_rows(r"([\d.,]+)( million)? \| ([\d.,]+) million \| ([\d.]+) \| ([\d,]+(?:\.\d)?) GB"))
    assert [what for what, *_ in rows] == [
        "1,000",
        "1,000 with three budgets",
        "100,000",
        "100,000 with three budgets",
    ]
    for what, a_day, millions, a_month, a_second, stored in rows:
        orders, has_budgets = int(what.split()[0].replace(",", "")), what.endswith("budgets")
        actions = orders * (work[0] + budgets[0] * has_budgets)
        kept_kb = orders * (30 * (work[1] + budgets[1] * has_budgets) + 45 * own_account * has_budgets)
        assert _number(a_day) * (1e6 if millions else 1) == pytest.approx(actions, rel=0.03)
        assert _number(a_month) * 1e6 == pytest.approx(30 * actions, rel=0.03)
        assert float(a_second) == pytest.approx(actions / 86_400, rel=0.03)
        assert _number(stored) * 1e6 == pytest.approx(kept_kb, rel=0.03)


def _rows(cells: str) -> list[tuple[str, ...]]:
    """Return the first cell and the matched groups of each table row that matches the cells."""
    return re.findall(rf"^\| ([^|]+) \| {cells} \|$", PAGE, re.MULTILINE)


def _number(text: str) -> float:
    return float(text.replace(",", ""))
