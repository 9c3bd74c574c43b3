"""Despite kills during work on an issue of Linear, the issue has one work order, and each message is sent once."""

from collections import Counter
from pathlib import Path

import pytest
from fakes.repositories import make_origin
from fakes.septet_command import Septet
from fakes.trackers.linear import SECRET, Fault, LinearFake, serving_linear
from fakes.waiting import until

pytestmark = [pytest.mark.recovery, pytest.mark.law]


def test_a_session_outlives_kills(tmp_path: Path) -> None:
    """After kills at the mark and at a reply, with lost answers, there is one work order, and each message and link once."""
    origin = make_origin(tmp_path, "app.git")
    origin.push({"README.md": "# app\n", "app.py": "print('hello')\n"})
    with serving_linear(LinearFake()) as linear:
        extra = {
            "SEPTET_LINEAR_API_URL": linear.url,
            "SEPTET_LINEAR_TOKEN": linear.token,
            "SEPTET_LINEAR_WEBHOOK_SECRET": SECRET,
            "SEPTET_LINEAR_REPOSITORIES": f"ENG={origin.bare}",
            "SEPTET_LINEAR_APPROVE_PLAN": "true",
        }
        septet = Septet(tmp_path / "machine", extra)
        issue = linear.add_issue("Totals are wrong", "By one.")
        linear.faults += [Fault("mutation Attach", drops=True, after=True), Fault("mutation Say", 502, after=True)]
        with septet.up() as running:
            assert linear.delegate(issue).send(running.api).status_code == 202
            until(lambda: linear.attached(issue))
            running.kill()
        (session,) = linear.sessions
        with septet.up() as running:
            until(lambda: linear.sessions[session]["status"] == "awaitingInput")
            plan = septet("show", "wo-linear-eng-1", "--json").json["task"]["plan_sha256"]
            septet.wait_for_order("wo-linear-eng-1", "waiting")
            approved = linear.prompt(session, f"approve {plan}")
            assert approved.send(running.api).status_code == 202
            running.kill()
        linear.faults.append(Fault("mutation Attach", drops=True, after=True))
        with septet.up() as running:
            approved.send(running.api)
            until(lambda: linear.sessions[session]["status"] == "complete")
            task = septet.closed("wo-linear-eng-1")
            assert len(septet("list", "--json").json["tasks"]) == 1
        assert task["status"] == "completed"
        assert [each["url"] for each in linear.attached(issue)] == [
            f"{issue['url']}#septet-wo-linear-eng-1",
            task["pr_url"],
        ]
        said = Counter(text for kind, text in linear.said(session) if kind != "prompt")
        assert set(said.values()) == {1}, said
        assert linear.faults == []
