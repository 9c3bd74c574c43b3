"""What the compose file leaves open: this machine alone reaches it, and Temporal's web UI has to be asked for."""

from pathlib import Path

import pytest
import yaml

_FILE = Path(__file__).parents[3] / "docker-compose.yml"
SERVICES = yaml.safe_load(_FILE.read_text(encoding="utf-8"))["services"]


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
