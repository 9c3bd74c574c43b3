"""What a Temporal server can read of work orders with sealed payloads."""

import json
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest
from fakes.repositories import Origin
from fakes.sealed import cookie_of, database, sealed_machine, ui_of, words_in
from fakes.septet_command import Running, Septet, free_port
from fakes.waiting import until

pytestmark = pytest.mark.faces

TITLE, BODY, PLAN, ANSWER, WHY = (f"canary{word}7c41" for word in ("title", "body", "plan", "answer", "why"))
CANARIES = (TITLE, BODY, PLAN, ANSWER, WHY)
ORDER, CANCELLED = "wo-sealed", "wo-cancelled"
PLAN_FILE = f"specs/{PLAN}.md"
SCENARIO = {
    "steps": {
        "build_plan": {
            "edits": {
                PLAN_FILE: f"# Bug: {PLAN}\n\n## Steps\n\n1. Write `bye` into `app.py`, as {PLAN} has it.\n"
            },
            "put_over": {"plan_path": PLAN_FILE, "summary": f"One step: {PLAN}."},
        },
        "implement_plan": {"put_over": {"summary": f"Done: {ANSWER}."}},
    }
}
LOUD = {"SEPTET_LOG_LEVEL": "debug"}
"""Both machines log as much as possible: a word that is not in the log was sealed, and not merely left out."""
UI = "/api/v1/namespaces/default/workflows"


def work(septet: Septet, up: Running, origin: Origin) -> Mapping[str, str]:
    """Complete a work order and cancel another, both with known words, and return the server's texts about them."""
    septet.scenario(ORDER, SCENARIO)
    body = f"The {BODY} is wrong."
    ended = septet(
        "run", "--repo", origin.bare, "--title", f"Fix {TITLE}", "--body", body, "--id", ORDER, "--wait", "--json"
    )
    assert ended.json["task"]["status"] == "completed", ended
    created = septet("create", "--repo", origin.bare, "--title", TITLE, "--id", CANCELLED, "--json")
    assert created.code == 0, created
    assert septet("cancel", CANCELLED, "--why", WHY, "--json").code == 0
    with httpx.Client(base_url=ui_of(up), headers={"Cookie": cookie_of(up)}, trust_env=False, timeout=60) as ui:
        shown = [ui.get(path).text for path in (UI, f"{UI}/{ORDER}", f"{UI}/{ORDER}/history?maximumPageSize=200")]
    told = [
        septet.temporal("workflow", *words, "--output", "json").out
        for words in (
            ("show", "-w", ORDER), ("describe", "-w", ORDER), ("describe", "-w", CANCELLED), ("list",),
            ("show", "-w", CANCELLED), ("query", "-w", ORDER, "--type", "work_order"), ("metadata", "-w", ORDER),
        )
    ]  # fmt: skip
    return {"the UI": "".join(shown), "Temporal's command line": "".join(told), "the log": "".join(up.errors)}


def found(places: Mapping[str, str]) -> dict[str, set[str]]:
    return {place: words_in(text, CANARIES) for place, text in places.items()}


def test_a_server_without_the_keys_reads_no_word(tmp_path: Path, origin: Origin) -> None:
    """Database, history, descriptions, lists, queries, web UI and logs hold no word of issue, plan, answer or person."""
    septet = sealed_machine(tmp_path / "sealed", LOUD)
    with septet.up() as up:
        places = dict(work(septet, up, origin))
        task = septet("show", ORDER, "--json").json["task"]
        assert TITLE in task["title"]
        outputs = {step["step"]: step["output"] for step in task["steps"]}
        assert (PLAN in outputs["build_plan"], ANSWER in outputs["implement_plan"]) == (True, True)
        assert TITLE in septet("board", "--json").out
        with septet.api as api:
            assert TITLE in api.get(f"/agent-work-orders/{ORDER}").text
        keyless = Septet(septet.root)("show", ORDER, "--json").error
    places["the database"] = database(septet.state)
    places["the server's log"] = (septet.state / "server.log").read_text(encoding="utf-8")
    assert found(places) == {place: set() for place in places}
    assert ORDER in places["the log"]
    assert (keyless["type"], "SEPTET_SEAL_KEYS_FILE" in keyless["remedy"]) == ("Sealed", True)


def test_temporals_command_line_and_ui_are_clear_for_those_who_may_read(tmp_path: Path, origin: Origin) -> None:
    """With the codec endpoint, `temporal` starts a sealed work order and shows it in clear, and so does the UI."""
    septet = sealed_machine(tmp_path / "sealed", {"SEPTET_SEAL_REQUIRED": "true"})
    with septet.up() as up:
        token = (septet.state / "api-token").read_text(encoding="ascii").strip()
        endpoint = {"TEMPORAL_CODEC_ENDPOINT": f"{up.api}/codec", "TEMPORAL_CODEC_AUTH": f"Bearer {token}"}
        clear = Septet(septet.root, {**septet.extra, **endpoint})
        asked = json.dumps({"repository": str(origin.bare), "title": TITLE})
        named = ("--task-queue", "septet", "--type", "WorkOrder", "--workflow-id", ORDER)
        started = clear.temporal("workflow", "start", *named, "--input", asked)
        assert started.code == 0, started
        assert septet.closed(ORDER)["status"] == "completed"
        for words in (
            ("show", "-w", ORDER),
            ("describe", "-w", ORDER),
            ("query", "-w", ORDER, "--type", "work_order"),
        ):
            assert found({"": clear.temporal("workflow", *words, "--output", "json").out}) == {"": {TITLE}}
            assert found({"": septet.temporal("workflow", *words, "--output", "json").out}) == {"": set()}
        history = json.loads(septet.temporal("workflow", "show", "-w", ORDER, "--output", "json").out)
        payloads = history["events"][0]["workflowExecutionStartedEventAttributes"]["input"]
        with httpx.Client(base_url=ui_of(up), trust_env=False, timeout=60) as ui:
            cookies = {"Cookie": cookie_of(up)}
            assert ui.post("/codec/decode", json=payloads).status_code == 401
            assert (
                ui.post("/codec/decode", json=payloads, headers={**cookies, "Origin": "http://evil"}).status_code
                == 403
            )
            assert found({"": ui.post("/codec/decode", json=payloads, headers=cookies).text}) == {"": {TITLE}}
            assert f"{up.ready['ui']}/codec" in ui.get("/api/v1/settings", headers=cookies).text


def test_a_named_site_has_payloads_opened_and_no_other(served: Septet, tmp_path: Path) -> None:
    """The codec opens payloads for a named origin at an address with a key, and refuses all others."""
    site = "https://temporal.example.org"
    septet = sealed_machine(tmp_path / "sealed", {"SEPTET_CODEC_ORIGINS": site})
    with septet.serving("serve", "--port", str(free_port()), "--address", served.address) as serving:
        token = (septet.state / "api-token").read_text(encoding="ascii").strip()
        plain = {"payloads": [{"metadata": {"encoding": "anNvbi9wbGFpbg=="}, "data": "e30="}]}
        with httpx.Client(trust_env=False, timeout=60) as http:
            asks = {"Origin": site, "Access-Control-Request-Method": "POST"}
            for origin, allowed in ((site, site), ("https://evil.example", None), (f"{site}.evil", None)):
                answer = http.options(f"{serving.api}/codec/decode", headers={**asks, "Origin": origin})
                assert answer.headers.get("Access-Control-Allow-Origin") == allowed
            address = serving.ready["codec"]
            box = http.post(f"{address}/encode", json=plain, headers={"Origin": site})
            assert box.headers["Access-Control-Allow-Origin"] == site
            assert box.json()["payloads"][0]["metadata"]["encoding"] == "YmluYXJ5L2VuY3J5cHRlZA=="
            assert http.post(f"{address}/decode", json=box.json(), headers={"Origin": site}).json() == plain
            bearer = {"Authorization": f"Bearer {token}"}
            assert http.post(f"{serving.api}/codec/decode", json=box.json(), headers=bearer).json() == plain
            for refused, headers in (
                (f"{serving.api}/codec/decode", {"Origin": site}),
                (f"{address[:-1]}x/decode", {"Origin": site}),
                (f"{address}/decode", {"Origin": "https://evil.example"}),
                (f"{address}/decode", {"Host": "evil.example"}),
                (f"{address}/delete", {}),
            ):
                assert 400 <= http.post(refused, json=box.json(), headers=headers).status_code < 500
            broken = {"payloads": [{**box.json()["payloads"][0], "data": "AAAA"}]}
            assert http.post(f"{address}/decode", json=broken).json()["type"] == "urn:septet:error:DamagedSeal"
            assert http.post(f"{address}/decode", content=b"no json").status_code == 400


@pytest.mark.recovery
def test_a_killed_worker_is_taken_over_with_sealed_payloads(tmp_path: Path, origin: Origin) -> None:
    """The next worker adopts a killed worker's agent, and reads task tokens and sealed inputs alike."""
    septet = sealed_machine(tmp_path / "sealed", {"SEPTET_SEAL_REQUIRED": "true"})
    go_on = tmp_path / "go on"
    with septet.up() as first:
        septet.start(origin, ORDER, title=TITLE, implement_plan={"wait_for": str(go_on)})
        septet.until_works(ORDER, "5-implement_plan-1")
        first.kill()
        with septet.up():
            go_on.touch()
            task = septet.closed(ORDER)
    assert (task["status"], task["title"]) == ("completed", TITLE)
    assert [name for name in septet.runs(ORDER) if "implement_plan" in name] == ["5-implement_plan-1"]


def test_nobody_without_a_key_starts_anything(tmp_path: Path, origin: Origin) -> None:
    """If workers refuse unsealed input, Temporal's command line starts nothing, and a client with keys still works."""
    septet = sealed_machine(tmp_path / "sealed", {"SEPTET_SEAL_REQUIRED": "true"})
    line = septet("codec", "new-key", "k1", "--json").json["line"]
    (tmp_path / "sealed" / "keys").write_text(f"{line}\n", encoding="ascii")
    asked = json.dumps({"repository": str(origin.bare), "title": TITLE})
    named = ("--task-queue", "septet", "--type", "WorkOrder", "--workflow-id", "wo-stranger")
    with septet.up():
        assert septet.temporal("workflow", "start", *named, "--input", asked).code == 0
        refused = septet.closed("wo-stranger")
        assert (refused["status"], refused["error"]["type"]) == ("failed", "UnsealedInput")
        assert "codec endpoint" in refused["error"]["message"]
        ran = septet("run", "--repo", origin.bare, "--title", TITLE, "--id", ORDER, "--wait", "--json")
        assert ran.json["task"]["status"] == "completed", ran
        assert septet("board", "--json").code == 0
        assert not (septet.state / "runs" / "wo-stranger").exists()
        assert sealing_check(septet)["status"] == "ok"
        nowhere = ("--task-queue", "nowhere", "--type", "WorkOrder", "--workflow-id", "wo-before")
        assert septet.temporal("workflow", "start", *nowhere, "--input", asked).code == 0
        told = until(lambda: check if (check := sealing_check(septet))["status"] == "warning" else None)
        assert told["message"].endswith(" 1 workflow began unsealed and stands still: wo-before.")
        assert "SEPTET_SEAL_REQUIRED" in told["remedy"]


def sealing_check(septet: Septet) -> dict[str, str]:
    checks = septet("doctor", "--json").json["checks"]
    return next(check for check in checks if check["name"] == "sealing")
