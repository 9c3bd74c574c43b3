import json
from pathlib import Path

import pytest
from fakes.mcp_client import tools_of
from fakes.repositories import Origin
from fakes.septet_command import Septet
from fakes.shared_server import until_agents_are_announced
from fakes.shell_programs import write_program


@pytest.mark.parametrize("command", [("up",), ("demo",), ("worker",)])
def test_a_state_directory_that_cannot_be_made_is_named(tmp_path: Path, command: tuple[str, ...]) -> None:
    """If the state directory cannot be created, the message names its path and the error has a remedy."""
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    septet = Septet(tmp_path / "machine", {"SEPTET_STATE_DIR": str(tmp_path / "file" / "state")})
    ended = septet(*command, "--json")
    assert ended.code == 1
    assert str(tmp_path / "file") in ended.error["message"]
    assert ended.error["remedy"]
    assert "Traceback" not in ended.err


async def test_an_agent_that_no_worker_can_use_is_refused_by_every_face(
    served: Septet, origin: Origin, tmp_path: Path
) -> None:
    """Command line, HTTP and tools refuse it before the start, with the message of a start in Temporal itself."""
    await until_agents_are_announced(served)
    new = {"repository_url": str(origin.bare), "title": "T", "agent": "opencode", "id": "wo-no-agent"}
    told = served(
        "run", "--repo", origin.bare, "--title", "T", "--agent", "opencode", "--id", "wo-no-agent", "--json"
    )
    with served.api as api:
        problem = api.post("/agent-work-orders", json=new)
    async with tools_of(served, tmp_path / "mcp.log") as tools:
        tool = await tools.refused("run", repository=str(origin.bare), title="T", agent="opencode")
    assert (told.code, told.error["type"], problem.status_code) == (2, "AgentMissing", 422)
    assert told.error["message"] == problem.json()["detail"] == tool["message"]
    assert told.error["remedy"] == problem.json()["remedy"] == tool["remedy"]
    assert "SEPTET_OPENCODE_PATH" in told.error["remedy"]
    assert "can use now: scripted" in told.error["remedy"]
    assert served("show", "wo-no-agent", "--json").code == 3

    order = json.dumps({"repository": str(origin.bare), "title": "T", "agent": "opencode"})
    start = ("workflow", "start", "--type", "WorkOrder", "--task-queue", "septet", "--input", order)
    assert served.temporal(*start, "-w", "wo-by-hand").code == 0
    error = served.closed("wo-by-hand")["error"]
    assert error["message"] == told.error["message"].replace("agent:", "The workspace was not opened:")
    assert error["remedy"] == told.error["remedy"]
    assert not (served.state / "runs" / "wo-by-hand").exists()


async def test_an_agent_that_was_installed_since_its_worker_started_is_used(
    septet: Septet, origin: Origin, tmp_path: Path
) -> None:
    """The worker's announcement is checked again before an agent is refused by it.

    The announcement also has the worker's default model.
    """
    program = tmp_path / "opencode"
    run = ("run", "--repo", origin.bare, "--title", "T", "--agent", "opencode", "--json")
    with septet.up(SEPTET_OPENCODE_PATH=str(program), SEPTET_MODEL="worker/model-1"):
        await until_agents_are_announced(septet)
        steps = septet(*run[:5], "--dry-run", "--json").json["steps"]
        assert {step["model"] for step in steps} == {"worker/model-1"}
        assert septet(*run).error["type"] == "AgentMissing"
        write_program(program, "#!/bin/sh\nexit 1\n")
        assert septet(*run).code == 0


async def test_a_repositorys_own_agent_is_looked_for_too(served: Septet, origin: Origin, tmp_path: Path) -> None:
    """Without a named agent, the repository's default agent at its base is checked, for a pipeline too."""
    await until_agents_are_announced(served)
    origin.push({".septet/septet.toml": '[agents]\ndefault = "opencode"\n'})
    told = served("run", "--repo", origin.bare, "--title", "T", "--json")
    assert "`opencode`" in told.error["message"]
    issues = tmp_path / "issues.json"
    issues.write_text(json.dumps([{"id": "a", "title": "T"}]), encoding="utf-8")
    pipeline = ("pipeline", "--repo", origin.bare, "--file", issues, "--id", "pl-no-agent", "--json")
    assert served(*pipeline).error == told.error
    assert served("pipeline", "show", "pl-no-agent", "--json").code == 3
    assert served("run", "--repo", origin.bare, "--title", "T", "--agent", "scripted", "--json").code == 0


def test_a_demo_with_an_agent_that_is_not_installed_is_refused(septet: Septet) -> None:
    """`demo --agent` names the missing agent before it starts a process."""
    ended = septet("demo", "--agent", "opencode", "--json")
    assert ended.code == 2
    assert "opencode" in ended.error["message"]
    assert septet.processes() == []


def test_wrong_settings_of_a_repository_are_told_at_the_door(served: Septet, origin: Origin) -> None:
    """The error names file and line before the start, and its remedy works."""
    run = ["run", "--repo", str(origin.bare), "--title", "T", "--json"]
    assert served("issue", "add", "--repo", origin.bare, "--title", "One").code == 0
    origin.push({".septet/septet.toml": "chekcs = []\n"})
    refused = served(*run)
    assert refused.code == 2
    assert refused.error["message"] == ".septet/septet.toml line 1: chekcs is not a setting."
    assert refused.error["remedy"] == "Did you mean checks? Commit the correction to main, then start it again."
    pipeline = served("pipeline", "--repo", origin.bare, "--issues", "1", "--json")
    assert pipeline.error["message"] == refused.error["message"]
    origin.push({".septet/septet.toml": "checks = []\n"})
    assert served(*run).code == 0


NOWHERE = {"TEMPORAL_ADDRESS": "127.0.0.1:1"}
"""An address without a server."""


@pytest.mark.parametrize(
    ("options", "words", "remedy"),
    [
        (("{folder}", "--title", "T"), "{folder} is not a git repository", "Give the path of a git repository"),
        (
            ("{origin}", "--title", "T", "--step", "build_plan.modell=x"),
            "not a setting of a step",
            "Did you mean model?",
        ),
        (("{origin}", "--title", "T", "--step", "implement_plan.model=--yolo"), "--step implement_plan.model", ""),
        (("{origin}", "--issue-file", "{binary}"), "{binary} is not a text file", "UTF-8"),
    ],
)
def test_a_mistake_is_told_without_a_server(
    tmp_path: Path, origin: Origin, options: tuple[str, ...], words: str, remedy: str
) -> None:
    """The error names the wrong option, although the server is missing too."""
    binary = tmp_path / "binary"
    binary.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\xff")
    (tmp_path / "folder").mkdir()
    places = {"origin": origin.bare, "binary": binary, "folder": tmp_path / "folder"}
    argv = [option.format(**places) for option in options]
    ended = Septet(tmp_path / "machine", NOWHERE)("run", *argv, "--json")
    assert ended.code == 2, ended
    assert words.format(**places) in ended.error["message"]
    assert remedy in ended.error["remedy"]


def test_an_issue_has_one_open_work_order(served: Septet, origin: Origin) -> None:
    """A second work order is refused with the id of the first, unless `--again` is given; also over HTTP."""
    number = served("issue", "add", "--repo", origin.bare, "--title", "Once", "--json").json["issue"]["number"]
    page = f"{origin.bare.as_uri()}/issues/{number}"
    assert served("create", page, "--id", "wo-first", "--json").code == 0
    served.wait_for("/board", lambda board: "wo-first" in [task["id"] for task in board["stages"]["collected"]])
    refused = served("create", page, "--json")
    assert (refused.code, "wo-first already works on issue" in refused.error["message"]) == (6, True)
    with served.api as api:
        body = {"repository_url": str(origin.bare), "github_issue_number": number, "stage": "collected"}
        answer = api.post("/agent-work-orders", json=body)
        assert (answer.status_code, "wo-first" in answer.json()["detail"]) == (409, True)
    assert served("run", page, "--json").code == 6
    assert served("create", page, "--id", "wo-again", "--again", "--json").code == 0
    assert served("run", page, "--id", "wo-again-now", "--again", "--json").code == 0
    served.cancelled("wo-again-now")
    for order in ("wo-first", "wo-again"):
        served("move", order, "cancelled", "--json")


def test_a_pipeline_is_refused_whose_issue_there_is_not(served: Septet, origin: Origin) -> None:
    """The pipeline is refused before its start, like a work order, and not by its first step."""
    refused = served("pipeline", "--repo", origin.bare, "--issues", "9", "--json")
    assert (refused.code, "has no #9" in refused.error["message"]) == (3, True)


def test_an_issue_with_a_pull_request_in_review_is_named(served: Septet, origin: Origin) -> None:
    """Another work order for the issue starts with a warning, and so does a pipeline."""
    number = served("issue", "add", "--repo", origin.bare, "--title", "Twice", "--json").json["issue"]["number"]
    page = f"{origin.bare.as_uri()}/issues/{number}"
    first = served("run", page, "--id", "wo-reviewed", "--wait", "--json").json["task"]
    told = f"Issue {number} has a pull request in review, by wo-reviewed: {first['pr_url']}"
    again = served("run", page, "--id", "wo-reviewed-2", "--json")
    assert (again.code, told in again.err) == (0, True)
    served.cancelled("wo-reviewed-2")
    line = served("pipeline", "--repo", origin.bare, "--issues", str(number), "--id", "pl-reviewed", "--json")
    assert (line.code, told in line.err) == (0, True)
    assert served("pipeline", "cancel", "pl-reviewed", "--json").code == 0


def test_a_title_is_one_line(served: Septet, origin: Origin) -> None:
    """The title of a long text has at most 200 characters, and the description begins with the whole text."""
    long = "Round the total,\n" + "and say so " * 30
    task = served("create", origin.bare, "--title", long, "--id", "wo-long-title", "--json").json["task"]
    assert len(task["title"]) <= 200
    assert "\n" not in task["title"]
    assert task["description"].startswith("Round the total,\nand say so")
    served("move", "wo-long-title", "cancelled", "--json")


def test_the_folder_of_a_checkout_names_the_repository(served: Septet, origin: Origin) -> None:
    """In a checkout the command needs no `--repo`, and lists uncommitted changes as not included."""
    (origin.checkout / "app.py").write_text("print('changed')\n", encoding="utf-8")
    (origin.checkout / "inner").mkdir()
    ended = served("run", "--title", "From here", "--id", "wo-from-here", cwd=origin.checkout / "inner")
    assert ended.code == 0, ended
    assert "Not included: 1 uncommitted change" in ended.err
    assert "app.py" in ended.err
    assert served("show", "wo-from-here", "--json").json["task"]["repository_url"] == str(origin.checkout)
    served.cancelled("wo-from-here")
