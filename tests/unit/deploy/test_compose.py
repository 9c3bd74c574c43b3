"""What the compose file leaves open: this machine alone reaches it, and Temporal's web UI has to be asked for."""

import re
from pathlib import Path

import pytest
import yaml

_ROOT = Path(__file__).parents[3]
_FILE = _ROOT / "docker-compose.yml"
SERVICES = yaml.safe_load(_FILE.read_text(encoding="utf-8"))["services"]
PAGES = [
    _ROOT / page
    for page in ("README.md", "docs/containers.md", "docs/kubernetes.md", "docs/operations/runbook.md")
]


@pytest.mark.parametrize("name", [name for name, service in SERVICES.items() if "ports" in service])
def test_published_ports_answer_this_machine_alone(name: str) -> None:
    """Docker publishes on every address where none is named."""
    assert all(str(port).startswith("127.0.0.1:") for port in SERVICES[name]["ports"])


def test_temporals_web_ui_starts_when_it_is_asked_for_and_changes_nothing() -> None:
    """It has no login and takes any Host header, so a page of another site could use it."""
    ui = SERVICES["ui"]
    assert ui["profiles"] == ["ui"]
    assert ui["environment"]["TEMPORAL_DISABLE_WRITE_ACTIONS"] == "true"
    assert not any("ui" in service.get("depends_on", {}) for service in SERVICES.values())


def test_every_service_of_ours_has_the_keys_except_the_one_that_runs_agents() -> None:
    """Webhooks, sealing and Temporal's key are needed wherever Septet talks to the server; agents get theirs alone."""
    ours = {name for name, service in SERVICES.items() if str(service["image"]).startswith("septet:")}
    assert {"worker", "api", "runner"} < ours
    with_keys = {name for name in ours if "./docker/secrets:/run/secrets:ro" in SERVICES[name].get("volumes", ())}
    assert with_keys == ours - {"runner"}


def test_agents_run_what_they_have_built_in_tmp_and_home() -> None:
    """Docker mounts a tmpfs with `noexec` unless it is told otherwise: there `go test` and scripts of tests would fail."""
    options = {
        place: how.split(",") for place, _, how in (each.partition(":") for each in SERVICES["runner"]["tmpfs"])
    }
    assert [place for place, how in options.items() if "exec" in how] == ["/tmp", "/home/septet"]


def test_nothing_but_temporals_web_ui_can_write_to_its_image() -> None:
    """The others write to a `/tmp` of their own, which the API's and the database's tools need, and to volumes."""
    read_only = {name for name, service in SERVICES.items() if service.get("read_only") is True}
    assert SERVICES.keys() - read_only == {"ui"}
    assert {
        name for name in read_only if not any(each.startswith("/tmp") for each in SERVICES[name]["tmpfs"])
    } == set()


def test_there_are_as_many_runners_as_workers_as_one_variable_says() -> None:
    """It lies in `.env`, so that no later `up` goes back to one of each."""
    assert {name: service["scale"] for name, service in SERVICES.items() if "scale" in service} == {
        "worker": "${WORKERS:-1}",
        "runner": "${WORKERS:-1}",
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_scales_by_what_the_next_command_undoes(page: Path) -> None:
    """An `apply` or `up` goes by its files: a number that was given to another command alone is forgotten, and agents end."""
    assert re.findall(r"kubectl [^`\n]*\bscale\b|--scale", page.read_text(encoding="utf-8")) == []
