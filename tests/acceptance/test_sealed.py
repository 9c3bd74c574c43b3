"""What a Temporal server sees of work orders whose payloads are sealed."""

import json
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest
from fakes.repositories import Origin
from fakes.sealed import sealed_machine
from fakes.septet_command import Running, Septet

from clients.page.access import cookie_name
from clients.page.key import looking_key

pytestmark = pytest.mark.faces

TITLE, BODY, PLAN, ANSWER, WHY = (f"canary{word}7c41" for word in ("title", "body", "plan", "answer", "why"))
CANARIES = (TITLE, BODY, PLAN, ANSWER, WHY)
ORDER, CANCELLED = "wo-sealed", "wo-cancelled"
UI = "/api/v1/namespaces/default/workflows"


def work(septet: Septet, up: Running, origin: Origin) -> Mapping[str, str]:
    """Complete one work order and cancel another, both with words to find, and return what the server tells of them."""
    septet.scenario(ORDER, {"steps": {"implement_plan": {"put_over": {"summary": f"Done: {ANSWER}."}}}})
    body = f"The {BODY} is wrong. Write `{PLAN}` into `app.py`."
    ended = septet(
        "run", "--repo", origin.bare, "--title", f"Fix {TITLE}", "--body", body, "--id", ORDER, "--wait", "--json"
    )
    assert ended.json["task"]["status"] == "completed", ended
    created = septet("create", "--repo", origin.bare, "--title", TITLE, "--id", CANCELLED, "--json")
    assert created.code == 0, created
    assert septet("cancel", CANCELLED, "--why", WHY, "--json").code == 0
    cookie = (
        f"{cookie_name(int(up.api.rpartition(':')[2]))}={looking_key(up.ready['page'].rpartition('token=')[2])}"
    )
    with httpx.Client(base_url=up.ready["ui"], headers={"Cookie": cookie}, trust_env=False, timeout=60) as ui:
        shown = [ui.get(path).text for path in (UI, f"{UI}/{ORDER}", f"{UI}/{ORDER}/history?maximumPageSize=200")]
    told = [
        septet.temporal("workflow", *words, "--output", "json").out
        for words in (
            ("show", "-w", ORDER), ("describe", "-w", ORDER), ("describe", "-w", CANCELLED), ("list",),
            ("show", "-w", CANCELLED), ("query", "-w", ORDER, "--type", "work_order"), ("metadata", "-w", ORDER),
        )
    ]  # fmt: skip
    return {"the UI": "".join(shown), "Temporal's command line": "".join(told), "the log": "".join(up.errors)}


def database(state: Path) -> str:
    """Return the bytes of the server's files."""
    return "".join(path.read_bytes().decode("latin-1") for path in sorted(state.glob("temporal.db*")))


def found(places: Mapping[str, str]) -> dict[str, set[str]]:
    """Return which of the words each place holds, as they are or in base64."""
    from base64 import b64encode

    def is_in(word: str, text: str) -> bool:
        forms = (b64encode(b" " * shift + word.encode()).decode()[4:-4] for shift in range(3))
        return word in text or any(form in text for form in forms)

    return {place: {word for word in CANARIES if is_in(word, text)} for place, text in places.items()}


def test_a_server_without_the_keys_reads_no_word(tmp_path: Path, origin: Origin) -> None:
    """Database, history, descriptions, lists, queries, web UI and logs hold no word of issue, plan, answer or person."""
    septet = sealed_machine(tmp_path / "sealed", {"SEPTET_LOG_LEVEL": "debug"})
    with septet.up() as up:
        places = dict(work(septet, up, origin))
        task = septet("show", ORDER, "--json").json["task"]
        assert TITLE in task["title"]
        assert any(ANSWER in step["output"] for step in task["steps"])
        assert TITLE in septet("board", "--json").out
        with septet.api as api:
            assert TITLE in api.get(f"/agent-work-orders/{ORDER}").text
        keyless = Septet(septet.root)("show", ORDER, "--json").error
    places["the database"] = database(septet.state)
    places["the server's log"] = (septet.state / "server.log").read_text(encoding="utf-8")
    assert found(places) == {place: set() for place in places}
    assert (keyless["type"], "SEPTET_SEAL_KEYS_FILE" in keyless["remedy"]) == ("Sealed", True)


def test_without_keys_the_same_words_are_all_there(tmp_path: Path, origin: Origin) -> None:
    """What the test above looks for is found in a database, a history and the web UI that nobody seals."""
    septet = Septet(tmp_path / "open")
    with septet.up() as up:
        places = dict(work(septet, up, origin))
    places["the database"] = database(septet.state)
    seen = found(places)
    assert seen["the database"] >= {TITLE, BODY, ANSWER, WHY}
    assert seen["the UI"] >= {TITLE, ANSWER}
    assert seen["Temporal's command line"] >= {TITLE, BODY, ANSWER, WHY}


def test_nobody_without_a_key_starts_anything(tmp_path: Path, origin: Origin) -> None:
    """Where workers refuse what is not sealed, Temporal's own command line starts nothing, and who has keys works on."""
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
