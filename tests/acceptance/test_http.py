"""The HTTP API of `septet up` and `septet serve`, as clients see it."""

import json
import re
import signal
import socket
import stat
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import httpx
import pytest
from fakes.repositories import Origin
from fakes.septet_command import WITHIN_SECONDS, Septet, free_port, free_ports
from fakes.waiting import until

pytestmark = pytest.mark.faces

Task = dict[str, Any]
ORDERS = "/agent-work-orders"
EVERYWHERE = "0.0.0.0"  # noqa: S104 -- what a container listens on


@pytest.fixture(scope="session")
def api(served: Septet) -> Iterator[httpx.Client]:
    with served.api as client:
        yield client


def problem(answer: httpx.Response, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    told: dict[str, Any] = answer.json()
    assert set(told) == {"type", "title", "status", "detail", "remedy"}
    assert told["status"] == status
    assert told["remedy"]
    return told


def events(text: str) -> list[dict[str, str]]:
    blocks = [block for block in text.split("\n\n") if block and not block.startswith(":")]
    return [dict(line.split(": ", 1) for line in block.splitlines()) for block in blocks]


def test_server_json_and_health_tell_where_it_is_and_how_it_is(served: Septet, api: httpx.Client) -> None:
    """`up` writes the API's address into server.json; /health needs no token and says whether Temporal answers."""
    told = served.addresses
    answer = httpx.get(f"{told['api']}/health", trust_env=False, timeout=WITHIN_SECONDS)
    assert answer.json() == {
        "status": "healthy",
        "service": "septet",
        "version": version("septet"),
        "temporal": True,
    }


def test_the_token_is_this_users_and_wanted_on_loopback_too(served: Septet, api: httpx.Client) -> None:
    """Only the user may read the token's file; without this token each request is refused."""
    path = served.state / "api-token"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(path.read_text(encoding="ascii").strip()) >= 40
    token = api.headers["authorization"]
    for wrong in ("", "Bearer", "Bearer x", f"Basic {token}", token + "x", token[:-1]):
        problem(api.post("/mcp", json={}, headers={"Authorization": wrong}), 401)
        answer = api.get(ORDERS, headers={"Authorization": wrong})
        assert problem(answer, 401)["type"] == "urn:septet:error:Unauthorized"
        assert answer.headers["www-authenticate"] == "Bearer"


def test_another_host_name_is_refused(api: httpx.Client) -> None:
    """A request under a foreign host name is refused, and no page of another origin may read answers: CORS is off."""
    for name in (
        "evil.example",
        "evil.example:8888",
        "localhost.evil.example",
        "127.0.0.1.evil.example:80",
        "a@localhost",
    ):
        for path in ("/health", "/", "/work-orders/wo-done"):
            problem(api.get(path, headers={"Host": name}), 421)
    for name in ("localhost", "localhost:1234", "[::1]:8888", "LOCALHOST"):
        assert api.get("/health", headers={"Host": name}).status_code == 200
    assert problem(api.options(ORDERS, headers={"Origin": "http://evil.example"}), 405)
    assert not [name for name in api.get("/health").headers if name.startswith("access-control")]


def test_a_large_body_is_refused_however_it_is_sent(api: httpx.Client) -> None:
    """More than 256 KiB are refused, by the stated length, and without a stated length by the received bytes."""
    large = b" " * (256 * 1024 + 1)
    assert problem(api.post(ORDERS, content=large), 413)["detail"].startswith("The body holds more")
    problem(api.post(ORDERS, content=iter([large[:1000], large])), 413)


def test_a_work_order_is_created_and_told_under_both_sets_of_names(
    served: Septet, api: httpx.Client, origin: Origin
) -> None:
    """POST answers 201 with the work order object and the names that scripts know; its end has them filled."""
    answer = api.post(
        ORDERS, json={"repository_url": str(origin.bare), "user_request": "Say goodbye\n\nAt the end."}
    )
    assert answer.status_code == 201, answer.text
    begun = answer.json()
    assert answer.headers["location"] == f"{ORDERS}/{begun['id']}"
    assert (begun["title"], begun["description"]) == ("Say goodbye", "At the end.")
    assert (begun["agent_work_order_id"], begun["git_commit_count"]) == (begun["id"], 0)
    done = served.wait_for_order(begun["id"], "completed")
    assert done["git_branch_name"] == done["branch_name"] == f"septet/feat-{done['id']}-say-goodbye"
    assert done["github_pull_request_url"] == done["pr_url"]
    assert (done["github_issue_number"], done["current_phase"], done["error_message"]) == (None, "completed", None)
    assert (done["git_commit_count"], done["git_files_changed"]) == (1, len(done["steps"][4]["files_changed"]))
    assert api.get(f"{ORDERS}/{done['id']}/git-progress").json() == {
        "agent_work_order_id": done["id"], "current_phase": "completed", "git_commit_count": 1,
        "git_files_changed": done["git_files_changed"], "latest_commit_message": done["steps"][5]["output"],
        "git_branch_name": done["branch_name"],
    }  # fmt: skip


def test_what_is_wrong_with_a_body_is_said_by_name(api: httpx.Client) -> None:
    """Unknown values and fields, loose types, no task and two tasks are 422; the answer names the field, not the value."""
    good = {"repository_url": "/app.git", "user_request": "Do it"}
    for change, name in (
        ({"sandbox_type": "e2b"}, "sandbox_type"),
        ({"priority": "3"}, "priority"),
        ({"surprise": 1}, "surprise"),
        ({"repository_url": ""}, "repository_url"),
        ({"github_issue_number": 1}, "user_request"),
        ({"user_request": None}, "issue or title is missing"),
        ({"user_request": "€" * 30_000}, "64"),
        ({"steps": {"dance": {}}}, "dance"),
        ({"id": ".."}, "id"),
    ):  # fmt: skip
        answer = api.post(ORDERS, json={**good, **change})
        told = problem(answer, 422)
        assert told["type"] == "urn:septet:error:InvalidInput"
        assert name in told["detail"] or name == "64", told
    for content in (b"", b"{", b"[]", b"\xff", b'{"a":' * 100_000):
        answer = api.post(ORDERS, content=content, headers={"Content-Type": "application/json"})
        assert answer.status_code in {400, 413, 422}
        problem(answer, answer.status_code)


def test_logs_are_paged_by_offset_or_by_the_last_id(api: httpx.Client, done: Task) -> None:
    """`limit` and `offset` cut the list; `next` is the id for `after`; `total` counts all entries."""
    path = f"{ORDERS}/{done['id']}/logs"
    whole = api.get(path).json()
    assert whole["total"] == len(whole["log_entries"]) > 10
    assert "next" not in whole
    page = api.get(path, params={"limit": 4, "offset": 3}).json()
    assert page["log_entries"] == whole["log_entries"][3:7]
    after = api.get(path, params={"limit": 2, "after": page["next"]}).json()
    assert after["log_entries"] == whole["log_entries"][7:9]
    for wrong in ({"limit": 0}, {"limit": 1001}, {"offset": -1}):
        problem(api.get(path, params=wrong), 422)


def test_a_list_goes_on_where_its_link_says(served: Septet, api: httpx.Client, done: Task) -> None:
    """All work orders come page by page, each once; an unknown page is a 404, and an unknown status a 422."""
    served.wait_for(ORDERS, lambda rows: done["id"] in {row["id"] for row in rows}, status="completed")
    whole = {row["id"] for row in api.get(ORDERS, params={"limit": 1000, "status": "completed"}).json()}
    seen: list[str] = []
    answer = api.get(ORDERS, params={"limit": 1, "status": "completed"})
    for _ in range(1000):  # a page may be empty, if a reset took up its runs again
        seen += [row["id"] for row in answer.json()]
        link = re.fullmatch(r'<(/.*)>; rel="next"', answer.headers.get("link", ""))
        if link is None:
            break
        answer = api.get(link[1])
    assert set(seen) >= whole
    assert len(seen) == len(set(seen))
    problem(api.get(ORDERS, params={"after": "bm8gc3VjaCBwYWdl"}), 404)
    problem(api.get(ORDERS, params={"after": "é"}), 404)
    problem(api.get(ORDERS, params={"status": "dancing"}), 422)


def test_the_stream_goes_on_where_a_reader_was_and_ends_with_the_work_order(
    served: Septet, api: httpx.Client, origin: Origin
) -> None:
    """Entries arrive during the agent's work; the last event has the end; a reader that returns then gets a 204."""
    gate = served.root / "stream gate"
    order = served.scenario("wo-stream", {"steps": {"implement_plan": {"wait_for": str(gate)}}})
    api.post(ORDERS, json={"repository_url": str(origin.bare), "user_request": "Stream", "id": order})
    path = f"{ORDERS}/{order}/logs/stream"
    lines: list[str] = []
    with api.stream("GET", path) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        for line in stream.iter_lines():
            lines.append(line)
            if line.startswith("id: 4-generate_branch-1/"):
                break
    seen = [line.removeprefix("id: ") for line in lines if line.startswith("id: ")]
    gate.touch()
    rest = events(api.get(path, headers={"Last-Event-ID": seen[-1]}).text)
    end = rest.pop()
    assert (end["event"], json.loads(end["data"])) == (
        "end",
        {"id": order, "status": "completed", "stage": "review"},
    )
    entries = api.get(f"{ORDERS}/{order}/logs").json()["log_entries"]
    assert [*seen, *(event["id"] for event in rest)] == [entry["id"] for entry in entries]
    told = [json.loads(event["data"]) for event in rest]
    assert all(
        entry["time"].endswith("Z") for entry in (*told, *entries)
    )  # the time of a new entry is approximate
    assert [{**entry, "time": ""} for entry in told] == [{**entry, "time": ""} for entry in entries[len(seen) :]]
    assert api.get(path, headers={"Last-Event-ID": end["id"]}).status_code == 204
    assert events(api.get(path, headers={"Last-Event-ID": entries[-1]["id"]}).text) == [end]
    assert len(events(api.get(path, headers={"Last-Event-ID": "no such entry"}).text)) == len(entries) + 1


def test_a_work_order_without_a_step_has_none_and_a_prompt_to_it_is_refused(
    served: Septet, api: httpx.Client, origin: Origin
) -> None:
    """Steps and logs are empty lists before the first step ends; a prompt is a conflict with a remedy."""
    gate = served.root / "first gate"
    order = served.scenario("wo-first", {"steps": {"classify_issue": {"wait_for": str(gate)}}})
    api.post(ORDERS, json={"repository_url": str(origin.bare), "user_request": "Wait", "id": order})
    path = f"{ORDERS}/{order}"
    nothing_yet = {"ok": True, "steps": [], "rounds": [], "refused_hosts": [], "agent_work_order_id": order}
    assert api.get(f"{path}/steps").json() == nothing_yet
    assert api.get(f"{path}/logs").status_code == 200
    assert api.get(f"{path}/git-progress").json()["current_phase"] == "planning"
    told = problem(api.post(f"{path}/prompt", json={"prompt_text": "Hurry"}), 409)
    assert f"{path}/retry" in told["remedy"]
    problem(api.post(f"{path}/retry"), 409)
    until((served.state / "runs" / order / "1-classify_issue-1" / "run.json").exists)
    cancelled = api.post(f"{path}/cancel", json={"why": "not now"}).json()
    assert (cancelled["ok"], cancelled["task"]["id"]) == (True, order)
    served.wait_for_order(order, "cancelled")  # a slow machine answers before the end
    problem(api.post(f"{path}/cancel"), 409)


def test_what_there_is_not_is_a_problem_too(api: httpx.Client) -> None:
    """Unknown work orders, paths and methods are problems with a remedy; a 405 names the methods of the path."""
    for rest in ("", "/detail", "/steps", "/git-progress", "/logs", "/logs/stream"):
        problem(api.get(f"{ORDERS}/wo-nobody{rest}"), 404)
    for rest, body in (("cancel", None), ("retry", {}), ("prompt", {"prompt_text": "x"})):
        problem(api.post(f"{ORDERS}/wo-nobody/{rest}", json=body), 404)
    assert api.get(f"{ORDERS}/wo-nobody/rescues").json() == {"ok": True, "rescues": []}
    problem(api.get("/no/such/path"), 404)
    problem(api.get(f"{ORDERS}/not%20an%20id"), 422)
    answer = api.put(ORDERS)
    problem(answer, 405)
    assert answer.headers["allow"] == "GET, POST"


def test_serve_answers_beside_up_with_a_token_of_ones_own(served: Septet, api: httpx.Client, done: Task) -> None:
    """`septet serve` finds the server, takes SEPTET_API_TOKEN, ends with SIGTERM, and leaves `up` alone."""
    port = free_port()
    with served.beside("serve", "--port", str(port), SEPTET_API_TOKEN="other") as serving:
        path = f"{serving.api}{ORDERS}/{done['id']}"
        assert serving.api == f"http://127.0.0.1:{port}"
        problem(httpx.get(path, headers=api.headers, trust_env=False, timeout=WITHIN_SECONDS), 401)
        shown = httpx.get(path, headers={"Authorization": "bearer other"}, trust_env=False, timeout=WITHIN_SECONDS)
        assert shown.json() == api.get(f"{ORDERS}/{done['id']}").json()
        taken = served("serve", "--port", str(port), "--json")
        assert (taken.code, "--port" in taken.error["remedy"]) == (2, True)
        assert serving.end(signal.SIGTERM) == 0
    assert api.get("/health").status_code == 200


def test_serve_listens_where_it_is_told_but_lets_no_other_machine_in_without_a_token(served: Septet) -> None:
    """With `--host 0.0.0.0` only requests under a loopback name pass; without a token, or on a foreign address, it fails."""
    port = free_port()
    with served.beside("serve", "--host", EVERYWHERE, "--port", str(port), SEPTET_API_TOKEN="other") as serving:
        problem(httpx.get(f"{serving.api}{ORDERS}", trust_env=False, timeout=WITHIN_SECONDS), 401)
        elsewhere = {"Host": f"192.0.2.1:{port}", "Authorization": "bearer other"}
        problem(
            httpx.get(f"{serving.api}{ORDERS}", headers=elsewhere, trust_env=False, timeout=WITHIN_SECONDS), 421
        )
        assert serving.end(signal.SIGTERM) == 0
    everybody = Septet(served.root, {"SEPTET_API_TOKEN": "none"})
    refused = everybody("serve", "--host", EVERYWHERE, "--port", str(port), "--json")
    assert (refused.code, "SEPTET_API_TOKEN" in refused.error["remedy"]) == (2, True)
    nowhere = served("serve", "--host", "192.0.2.1", "--port", str(port), "--json")
    assert (nowhere.code, "--host" in nowhere.error["remedy"]) == (2, True)


def test_a_taken_api_port_is_refused_by_up(septet: Septet) -> None:
    """`up` starts nothing if the API's port is taken; the remedy is --api-port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        server, ui = map(str, free_ports(2))
        ended = septet("up", "--port", server, "--ui-port", ui, "--api-port", port, "--json")
    assert (ended.code, "--api-port" in ended.error["remedy"]) == (2, True)
    assert not (septet.state / "temporal.db").exists()


def test_an_open_stream_does_not_hold_up_the_end(served: Septet, api: httpx.Client, origin: Origin) -> None:
    """Ctrl-C ends the server although a reader follows a work order; the reader's stream is cut off."""
    order = served.start(origin, "wo-open", classify_issue={"wait_for": str(served.root / "never")})
    with served.beside("serve", "--port", str(free_port())) as serving:
        path = f"{serving.api}{ORDERS}/{order}/logs/stream"
        with httpx.stream("GET", path, headers=api.headers, trust_env=False, timeout=WITHIN_SECONDS) as stream:
            assert next(stream.iter_lines()).startswith(":")
            assert serving.end(signal.SIGINT) == 0
    served.cancelled(order)
