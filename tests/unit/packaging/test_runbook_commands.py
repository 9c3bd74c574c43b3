"""The commands of the runbook and for alerts that tests never run, or run only before a release."""

import re
from pathlib import Path

import pytest
import yaml
from fakes.command_lines import unknown_parts

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/operations/runbook.md").read_text(encoding="utf-8")
ALERTS = (
    (ROOT / "docs/observability.md").read_text(encoding="utf-8").partition("\n## What to do about each alert\n")[2]
)
SCALING = """\
In compose, set `WORKERS` in `.env`; in Kubernetes, [`replicas` in your overlay](../kubernetes.md#change-it). Then:

```text
docker compose up --detach
kubectl apply --kustomize .
```
"""
"""The commands that no test runs; tests/unit/packaging/test_kubernetes.py checks the overlay."""


def commands() -> list[str]:
    rows = [ALERTS.replace("\n", " "), *(line for line in PAGE.splitlines() if line.startswith("| "))]
    return sorted({found for row in rows for found in re.findall(r"`(septet [^`]+)`", row)})


@pytest.mark.parametrize("line", commands())
def test_a_command_that_is_not_run_exists(line: str) -> None:
    """The subcommand and the options of each command are those of `septet`."""
    assert unknown_parts(line) == set()


def test_what_compose_applies_is_scaled_as_the_page_says() -> None:
    """`WORKERS` is the number of workers in the compose file, and the page has no further untested command."""
    assert PAGE.count("```text\n") == PAGE.count(SCALING) == 1
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
    assert services["worker"]["scale"] == "${WORKERS:-1}"


def test_what_does_not_exist_is_found() -> None:
    """The check names a command, a subcommand and an option that `septet` does not have."""
    assert unknown_parts("septet sing") == {"septet sing"}
    assert unknown_parts("septet budget sing") == {"septet budget sing"}
    assert unknown_parts("septet show wo-1 --loud") == {"--loud"}
