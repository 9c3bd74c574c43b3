"""A failure's cause reaches people, on each face and in Temporal's own history."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from fakes.repositories import Origin
from fakes.septet_command import Septet

pytestmark = pytest.mark.faces


@pytest.fixture
def away(septet: Septet) -> Iterator[Septet]:
    """A machine whose forge is out of reach."""
    with septet.up(
        GITHUB_TOKEN="k", SEPTET_GITHUB_HOSTS="git.example", SEPTET_GITHUB_API_URL="http://127.0.0.1:1"
    ):
        yield septet


def failures_of(machine: Septet, order: str) -> list[dict[str, Any]]:
    """Return each failure in a work order's history, the last failure last."""
    shown = machine.temporal("workflow", "show", "--workflow-id", order, "--output", "json").out
    found: list[dict[str, Any]] = []

    def note(value: dict[str, Any]) -> dict[str, Any]:
        found.extend(value[name] for name in ("failure", "lastFailure") if isinstance(value.get(name), dict))
        return value

    json.loads(shown, object_hook=note)
    return found


def test_a_failure_says_its_cause_and_shows_no_foreign_stack(away: Septet, origin: Origin) -> None:
    """Temporal keeps the cause's own message, for a failed work order and for a work order that waits for its forge."""
    repository = "https://git.example/o/r"
    assert away("run", "--repo", repository, "--issue", "7", "--id", "wo-away", "--json").code == 0
    order = json.dumps({"repository": str(origin.bare), "title": "T", "base": "nowhere"})
    start = ("workflow", "start", "--task-queue", "septet", "--type", "WorkOrder", "--workflow-id", "wo-lost")
    assert away.temporal(*start, "--input", order).code == 0
    assert away.closed("wo-lost")["status"] == "failed"
    kept = failures_of(away, "wo-lost")
    assert kept
    for failure in kept:
        assert "has no branch 'nowhere'" in failure["message"]
        assert "site-packages" not in json.dumps(failure)
        assert "stackTrace" not in failure
        assert len(json.dumps(failure)) < 4096
    waiting = away.wait_for_detail("wo-away", lambda detail: detail["waiting_for"])["waiting_for"]
    assert "open_workspace" in waiting
    assert "http://127.0.0.1:1 could not be reached (issue 7 of o/r)" in waiting
    again = re.compile(r" \(tried (once|[0-9]+ times), again at [0-9:]{8} UTC\)$")
    away.wait_for_detail("wo-away", lambda detail: again.search(detail["waiting_for"] or ""))
    assert away("cancel", "wo-away", "--json").code == 0
