"""Confined agents use a home of their work order: its login, its sessions, and the files that they leave there."""

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from fakes.agent_lab import Lab, dropped
from fakes.guest_paths import guest_paths
from fakes.logins import HOUR, log_in, login
from fakes.waiting import wait_until

from septet.agents.clis.adapter import Machine, Turn
from septet.agents.clis.registry import adapter_for
from septet.agents.guest.description import World
from septet.agents.guest.paths import NamedPath
from septet.agents.runs.homes import Homes
from septet.agents.runs.logins import Logins
from septet.agents.runs.records import RunKey
from septet.agents.sandbox.sandbox import Sandbox, find_sandbox
from septet.agents.turns.request import TurnRequest
from septet.errors import AgentCrashedError
from septet.system.masking import MASK, mask

pytestmark = pytest.mark.needs("bubblewrap")
ID = "0f0e8a3c-2f4b-4a6e-9d5d-1c2b3a495867"
SESSION = f".claude/projects/-work/{ID}.jsonl"
REFRESHES = """
    import json
    init()
    turn("m1")
    path = os.path.join(os.environ["HOME"], ".claude/.credentials.json")
    if os.path.exists("../refreshed.json"):
        wait_for("../go")
        with open(path + ".new", "wb") as new:
            new.write(open("../refreshed.json", "rb").read())
        os.remove("../refreshed.json")
        os.replace(path + ".new", path)
    note("has " + json.load(open(path))["claudeAiOauth"]["refreshToken"])
    result("done")
"""
"""The agent replaces its login as claude does, if the test provides a new one."""


@pytest.fixture
def own(lab: Lab) -> Lab:
    """A host that confines claude; the user's home and the state directory lie beside the worktree."""
    host = Machine({"PATH": os.environ["PATH"], "HOME": str(lab.root / "user")}, sandboxed=True)
    named = [NamedPath.parse(each, lab.root) for each in guest_paths(lab.root)]
    (lab.root / "user/.claude/commands").mkdir(parents=True)
    named.append(NamedPath(lab.root / "user/.claude/commands"))
    (lab.root / "state").mkdir()
    world = World(lab.root / "user", tuple(named), (lab.root / "state",))
    homes = Homes(lab.root / "state" / "homes", Logins(lab.root / "state" / "logins"))
    sandbox = find_sandbox("auto", os.environ, world)
    lab.runtime = replace(lab.runtime, host=host, sandbox=sandbox, homes=homes)
    return lab


def turn_of(lab: Lab, order_id: str = "wo-1", resume_id: str | None = None, activity_id: str = "5") -> TurnRequest:
    runtime = replace(lab.runtime, host=replace(lab.runtime.host, programs={"claude": str(lab.program)}))
    request = lab.request(turn=Turn("Work.\n", lab.worktree, resume_id=resume_id))
    key = RunKey(order_id, "run-1", activity_id)
    return replace(request, key=key, order_id=order_id, adapter=adapter_for("claude"), runtime=runtime)


def sign_in(lab: Lab, valid_seconds: float = 8 * HOUR, account: str = "ann") -> Path:
    """Give the user a login that the lab's agent refreshes, and return the user's file."""
    (lab.root / "refreshed.json").write_text(json.dumps(login("claude", 2, 9 * HOUR, account)))
    lab.agent(REFRESHES)
    return log_in(lab.root / "user", "claude", login("claude", 1, valid_seconds, account))


async def test_a_login_that_an_agent_refreshed_without_a_worker_is_not_lost(own: Lab) -> None:
    """The next attempt writes the refreshed login back and leaves no copy in the work order's home."""
    users = sign_in(own)
    request = turn_of(own)
    attempt = asyncio.ensure_future(own.run_turn(request))
    run = await own.said("assistant")
    await dropped(attempt)
    own.let_go()
    await wait_until(lambda: run.exit() is not None)
    assert "refresh-ann-1" in users.read_text()
    turn_result = await own.run_turn(request)
    assert (turn_result.outcome.text, turn_result.recovered_by) == ("done", "read")
    assert "refresh-ann-2" in users.read_text()
    assert not (own.root / "state/homes/wo-1/claude/.claude/.credentials.json").exists()


async def test_a_login_is_masked_also_where_no_sandbox_confines_its_agent(own: Lab) -> None:
    """The old and the refreshed login are masked, although the agent uses the user's own home."""
    account = f"ann-{uuid4()}"
    sign_in(own, account=account)
    own.let_go()
    own.runtime = replace(own.runtime, sandbox=Sandbox())
    await own.run_turn(turn_of(own))
    assert own.journal == ["start new", f"has refresh-{account}-2"]
    assert mask(f"refresh-{account}-1 refresh-{account}-2") == f"{MASK} {MASK}"


async def test_an_attempt_does_not_wait_without_end_for_a_login_that_another_agent_refreshes(own: Lab) -> None:
    """The attempt fails, is retryable, and keeps the writer's lock free."""
    sign_in(own, HOUR / 4)
    first = asyncio.ensure_future(own.run_turn(turn_of(own)))
    await own.said("assistant")
    own.runtime = replace(own.runtime, login_patience_seconds=0.3)
    with pytest.raises(AgentCrashedError, match="refreshes the login") as caught:
        await own.run_turn(turn_of(own, "wo-2"))
    assert (caught.value.retryable, own.journal) == (True, ["start new"])
    assert not own.runtime.runs.is_held("wo-2")
    await dropped(first)


async def test_a_session_goes_on_over_the_upgrade_and_without_a_sandbox(own: Lab) -> None:
    """A session moves from the user's home to the work order's, and back when no sandbox confines the agent."""
    path = own.root / "user" / SESSION
    path.parent.mkdir(parents=True)
    path.write_text("begun\n")
    own.agent(f"""
        init()
        with open(os.path.join(os.environ["HOME"], {SESSION!r}), "r+") as session_file:
            words = session_file.read().split()
            session_file.write("turn-%d\\n" % len(words))
        result(" ".join(words))
    """)
    first = await own.run_turn(turn_of(own, resume_id=ID, activity_id="5"))
    second = await own.run_turn(turn_of(own, resume_id=ID, activity_id="6"))
    assert path.read_text() == "begun\n"
    own.runtime = replace(own.runtime, sandbox=Sandbox())
    third = await own.run_turn(turn_of(own, resume_id=ID, activity_id="7"))
    texts = [each.outcome.text for each in (first, second, third)]
    assert texts == ["begun", "begun turn-1", "begun turn-1 turn-2"]


_COPILOT = """\
#!/bin/sh
package="$HOME/.cache/copilot/pkg" cache="$NODE_COMPILE_CACHE"
[ -f "$package/unpacked" ] || {{ mkdir -p "$package"; echo "in $(pwd)" >> "$package/unpacked"; }}
[ "$1" = --version ] && exec echo 1.0.102
[ "$*" = "help config" ] && {{ mkdir -p "$cache"; exec sh -c "pwd > $cache/code"; }}
echo spoilt 2>/dev/null > "{made}"
echo '{{"type":"assistant.message","data":{{"content":"'"$cache $(cat "{made}")"'"}}}}'
echo '{{"type":"result","sessionId":"s","exitCode":0}}'
"""


@pytest.mark.parametrize(
    ("made", "kept"), [("$package/unpacked", "copilot/*/unpacked"), ("$cache/code", "copilot-compiled/*/code")]
)
async def test_what_a_cli_makes_of_itself_is_made_once_for_all(own: Lab, made: str, kept: str) -> None:
    """A CLI unpacks and compiles itself once, before any agent works; agents read the files and cannot change them."""
    if "cache" in made:
        (own.root / "user/.cache/copilot/pkg/unpacked").mkdir(parents=True)
    program = own.root / "agent"
    program.write_text(_COPILOT.format(made=made))
    program.chmod(0o755)
    own.runtime = replace(own.runtime, host=replace(own.runtime.host, programs={"copilot": str(program)}))
    turns = [turn_of(own), turn_of(own, "wo-2")]
    requests = [replace(each, adapter=adapter_for("copilot"), runtime=own.runtime) for each in turns]
    texts = [(await own.run_turn(each)).outcome.text or "" for each in requests]
    (file,) = (own.root / "state/packages").glob(kept)
    assert file.read_text().strip().endswith("/workspace")
    assert texts[0] == texts[1]
    assert texts[0].endswith(file.read_text().strip())


async def test_a_process_that_waits_for_its_next_turn_keeps_its_login(own: Lab) -> None:
    """The copy of the login stays while the process waits for its next turn, and goes when the process ends."""
    log_in(own.root / "user", "claude", login("claude", 1))
    own.warm_agent("result('done')")
    copy = own.root / "state/homes/wo-1/claude/.claude/.credentials.json"
    warm = turn_of(own)
    warm = replace(warm, turn=replace(warm.turn, warm=True))
    await own.run_turn(warm)
    assert copy.exists()
    own.agent("init(); result('done')")
    await own.run_turn(turn_of(own, activity_id="6"))
    assert not copy.exists()
