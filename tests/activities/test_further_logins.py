"""A step whose login has reached its usage limit: another login goes on, or another agent takes over."""

import json
import sys
import time
from pathlib import Path

import pytest
from fakes.account_books import ORDER, Books
from fakes.logins import HOUR, log_in, login
from fakes.repositories import Origin
from fakes.step_lab import StepLab, lab_of, settings_of
from pydantic import ValidationError
from temporalio.exceptions import ApplicationError

from activities.turns.logins import login_digest, own_login
from septet.agents.clis.adapter import Machine
from septet.agents.clis.named_logins import NamedLogin, read_login
from septet.agents.clis.own_files import locate
from septet.agents.clis.registry import adapter_for
from septet.agents.homes.home import Homes
from septet.agents.homes.logins import Logins
from septet.contracts.budget import QuotaPause
from septet.contracts.names import Step, Verdict
from septet.contracts.steps import StepResult
from septet.errors import InvalidInputError
from septet.settings import Settings
from septet.system.masking import mask
from workers.registry import parts_of

RECORDINGS = Path(__file__).parents[1] / "data/recordings"
FIRST, SECOND = "the-first-key-of-all", "the-second-key-of-all"
LONG, SHORT = 900.0, 100.0
"""Pauses that the second agent is asked for, and that are waited for."""
NOW = 0.1
"""The longest delay of a step that is tried again at once."""
LIMITED = """\
import json
note(os.environ.get("SEPTET_SCRIPTED_KEY", "") + ("" if resumed else " anew"))
if os.environ.get("SEPTET_SCRIPTED_KEY") in {limited!r}:
    init()
    turn("m1")
    {work}
    api_error(429, "Claude AI usage limit reached|{until}")
init()
turn("m2")
result(json.dumps({answer!r}).replace('"', '\\\\"'))
"""
TALKS: dict[str, list[dict[str, object]]] = {
    "claude": [
        {"type": "system", "subtype": "init", "session_id": "s-2"},
        {"type": "result", "subtype": "success", "is_error": False, "session_id": "s-2", "result": "/bug"},
    ],
    "codex": [
        {"type": "thread.started", "thread_id": "s-2"},
        {"type": "turn.started"},
        {"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": "/bug"}},
        {"type": "turn.completed", "usage": {"input_tokens": 7, "cached_input_tokens": 0, "output_tokens": 2}},
    ],
    "opencode": [
        {"type": "text", "sessionID": "ses_2", "part": {"type": "text", "text": "/bug"}},
        {"type": "step_finish", "sessionID": "ses_2", "part": {"type": "step-finish", "reason": "stop"}},
    ],
}
"""What the programs print that answer in their CLI's language."""


def settings_with(root: Path, second: Path | None, **environ: str) -> Settings:
    """Return the settings of a host whose agents log in with the first key, and with the second one after it.

    They say that the host is a sandbox itself: claude works as root nowhere else, such as where bubblewrap may not start.
    """
    settings = settings_of(root)
    further = {"SEPTET_SCRIPTED_LOGINS": f"second={second}"} if second is not None else {}
    own = {**settings.environ, "SEPTET_SCRIPTED_KEY": FIRST, **further, **environ}
    return settings.model_copy(update={"environ": own, "sandboxed": True})


def second_login(root: Path) -> Path:
    """Write a further login's file."""
    file = root / "second.env"
    file.write_text(f"# of the team\nSEPTET_SCRIPTED_KEY={SECOND}\n", encoding="utf-8")
    return file


def program(path: Path, talk: list[dict[str, object]], *, limited: str = "") -> Path:
    """Write a CLI that answers, or prints a recording and fails where its variable `…_WHO` is not set."""
    words = "\n".join(json.dumps(event) for event in talk)
    script = f"""#!{sys.executable} -IS
import os, sys
with open({str(path.with_name("started"))!r}, "a") as file:
    file.write(os.path.basename({str(path)!r}) + "\\n")
sys.stdin.read()
if {limited!r} and not any(name.endswith("_WHO") for name in os.environ):
    sys.stdout.write(open({limited!r}).read())
    sys.exit(1)
print({words!r})
"""
    path.write_text(script, encoding="utf-8")
    path.chmod(0o755)
    return path


def started(root: Path) -> list[str]:
    """Return which of these programs were started."""
    path = root / "started"
    return path.read_text(encoding="utf-8").split() if path.exists() else []


def limits(lab: StepLab, *keys: str, seconds: float = LONG, work: str = "pass") -> None:
    """Let the agent's logins with these keys meet a usage limit that begins anew after so long."""
    until = int(time.time() + seconds)
    answer = {"issue_class": "/bug"}
    lab.agent(LIMITED.format(limited=keys, until=until, answer=answer, work=work))


def delay(error: pytest.ExceptionInfo[ApplicationError]) -> float:
    """Return after how long a step is tried again."""
    assert error.value.next_retry_delay is not None
    return error.value.next_retry_delay.total_seconds()


async def test_the_next_login_goes_on_in_the_same_session(tmp_path: Path, origin: Origin) -> None:
    """One start meets the limit, the next has the second login; later steps begin with that one at once."""
    books = Books()
    async with lab_of(settings_with(tmp_path, second_login(tmp_path)), origin, books) as lab:
        await lab.open_to(Step.CLASSIFY_ISSUE)
        limits(lab, FIRST)
        call = lab.call(Step.CLASSIFY_ISSUE)
        with pytest.raises(ApplicationError, match="usage limit reached") as limited:
            await lab.running(call)
        assert delay(limited) <= NOW
        done = await lab.running(call)
        assert (done.verdict, done.agent, done.login) == (Verdict.DONE, "scripted", "second")
        assert "the usage limit was reached: scripted, then scripted (second)" in done.warnings
        assert lab.journal == ["start new", f"{FIRST} anew", "start resume", SECOND]
        later = await lab.running(lab.call(Step.CLASSIFY_ISSUE, attempt=2))
        assert (later.login, len(lab.journal)) == ("second", 6)
        (pause,) = books.pauses.values()
        assert (pause.agent, pause.login) == ("scripted", "")
        assert SECOND not in str(books.pauses) + done.model_dump_json()
        assert mask(f"it is {SECOND}") == "it is ***"
        notes = {(note.agent, note.login): note.use for _, note in lab.parts.host.cost_notes.take()}
        assert set(notes) == {("scripted", ""), ("scripted", "second")}


async def test_work_returns_to_the_first_login_after_its_reset(tmp_path: Path, origin: Origin) -> None:
    """A pause that is over counts no more, whether or not its workflow has ended yet."""
    books = Books()
    async with lab_of(settings_with(tmp_path, second_login(tmp_path)), origin, books) as lab:
        await lab.open_to(Step.CLASSIFY_ISSUE)
        limits(lab, FIRST)
        with pytest.raises(ApplicationError, match="usage limit reached"):
            await lab.run(Step.CLASSIFY_ISSUE)
        over = {
            login: pause.model_copy(update={"until": time.time() - 1}) for login, pause in books.pauses.items()
        }
        books.pauses.update(over)
        limits(lab)
        done = await lab.run(Step.CLASSIFY_ISSUE, attempt=2)
        assert (done.verdict, done.login) == (Verdict.DONE, "")


async def test_a_step_waits_for_the_earliest_reset_where_all_logins_are_paused(
    tmp_path: Path, origin: Origin
) -> None:
    """Each login meets its limit once; then no agent starts, and the step is tried again at the first reset."""
    books = Books()
    async with lab_of(settings_with(tmp_path, second_login(tmp_path)), origin, books) as lab:
        await lab.open_to(Step.CLASSIFY_ISSUE)
        limits(lab, FIRST, SECOND)
        call = lab.call(Step.CLASSIFY_ISSUE)
        with pytest.raises(ApplicationError) as first:
            await lab.running(call)
        assert delay(first) <= NOW
        with pytest.raises(ApplicationError) as second:
            await lab.running(call)
        assert LONG - 60 < delay(second) < LONG + 60
        starts = len(lab.runs)
        with pytest.raises(ApplicationError, match="usage limits of scripted's login and scripted's login second"):
            await lab.running(call)
        assert (starts, len(lab.runs)) == (2, 2)


async def test_a_worker_that_is_killed_between_limit_and_move_costs_no_further_start(
    tmp_path: Path, origin: Origin
) -> None:
    """The pause was not told: the next attempt finds the limit on disk, tells it, and starts with the other login."""
    books = Books()
    async with lab_of(settings_with(tmp_path, second_login(tmp_path)), origin, books) as lab:
        await lab.open_to(Step.CLASSIFY_ISSUE)
        limits(lab, FIRST)
        call = lab.call(Step.CLASSIFY_ISSUE)
        with pytest.raises(ApplicationError):
            await lab.running(call)
        for run in lab.runs:  # as a worker leaves it that dies as soon as the agent has ended
            (run.folder / "limit-told").unlink()
        books.pauses.clear()
        done = await lab.running(call)
        assert (done.verdict, done.login) == (Verdict.DONE, "second")
        assert [pause.login for pause in books.pauses.values()] == [""]
        assert len(lab.runs) == 2


@pytest.mark.parametrize(
    "words",
    ["You've hit your usage limit, or try again at 11:55 PM.", "You've hit your usage limit."],
    ids=["an hour of the day it was said", "no time"],
)
async def test_a_usage_limit_that_is_read_after_it_has_ended_pauses_nothing(
    words: str, tmp_path: Path, origin: Origin
) -> None:
    """What a CLI says of the end of its limit counts from when its agent ended, and not from when it is read."""
    books = Books()
    async with lab_of(settings_with(tmp_path, second_login(tmp_path)), origin, books) as lab:
        await lab.open_to(Step.CLASSIFY_ISSUE)
        lab.agent(f'init(); api_error(429, "{words}")')
        call = lab.call(Step.CLASSIFY_ISSUE)
        with pytest.raises(ApplicationError):
            await lab.running(call)
        (run,) = lab.runs  # as it lies there on the next day, where its worker died before the limit was told
        (run.folder / "limit-told").unlink()
        record = json.loads((run.folder / "exit.json").read_text())
        (run.folder / "exit.json").write_text(json.dumps({**record, "ended_at": "2026-03-09T08:00:00.000Z"}))
        books.pauses.clear()
        limits(lab)
        done = await lab.running(call)
        assert (done.verdict, done.login, books.pauses) == (Verdict.DONE, "", {})


async def test_a_login_that_is_paused_on_one_host_is_passed_over_on_another(
    tmp_path: Path, origin: Origin
) -> None:
    """Logins are known by their keys: no host starts another agent with the first one."""
    books, second = Books(), second_login(tmp_path)
    async with lab_of(settings_with(tmp_path, second), origin, books) as lab:
        await lab.open_to(Step.CLASSIFY_ISSUE)
        limits(lab, FIRST)
        with pytest.raises(ApplicationError):
            await lab.run(Step.CLASSIFY_ISSUE)
    (other_root := tmp_path / "other").mkdir()
    async with lab_of(settings_with(other_root, second), origin, books) as other:
        await other.open_to(Step.CLASSIFY_ISSUE)
        limits(other, FIRST)
        done = await other.run(Step.CLASSIFY_ISSUE)
        assert (done.verdict, done.login, len(other.runs)) == (Verdict.DONE, "second", 1)


@pytest.mark.parametrize("agent", ["claude", "codex"])
async def test_the_limits_of_real_clis_move_the_work(agent: str, tmp_path: Path, origin: Origin) -> None:
    """Claude and codex say in their own words, as they were recorded, that a limit is reached."""
    name, recording = agent.upper(), RECORDINGS / agent / "rate_limit.stdout"
    prefix = {"claude": "ANTHROPIC", "codex": "CODEX"}[agent]
    (tmp_path / "second.env").write_text(f"{prefix}_API_KEY={SECOND}\n{prefix}_WHO=second\n", encoding="utf-8")
    path = program(tmp_path / agent, TALKS[agent], limited=str(recording))
    own = {
        f"SEPTET_{name}_PATH": str(path),
        f"{prefix}_API_KEY": FIRST,
        f"SEPTET_{name}_LOGINS": f"second={tmp_path / 'second.env'}",
    }
    settings = settings_with(tmp_path, None, **own)
    async with lab_of(settings, origin, Books()) as lab:
        lab.workspace = (await lab.open(agent=agent)).model_copy(update={"agent": agent})
        with pytest.raises(ApplicationError) as limited:
            await lab.run(Step.CLASSIFY_ISSUE)
        assert delay(limited) <= NOW
        done = await lab.run(Step.CLASSIFY_ISSUE)
        assert (done.verdict, done.result_text, done.login) == (Verdict.DONE, "/bug", "second")
        assert started(tmp_path) == [agent, agent]


async def test_the_second_agent_takes_over_from_the_checkpoint(tmp_path: Path, origin: Origin) -> None:
    """Where the first agent is paused for long, the other one begins anew; what the first one did is in a rescue."""
    books = Books()
    codex = program(tmp_path / "codex", TALKS["codex"])
    settings = settings_with(tmp_path, None, SEPTET_CODEX_PATH=str(codex), CODEX_API_KEY=FIRST)
    async with lab_of(settings, origin, books) as lab:
        await lab.open(fallback_agent="codex")
        limits(lab, FIRST, work='open("half", "w").write("half")')
        call = lab.call(Step.CLASSIFY_ISSUE, budget="9Mtok", waits_for_budget=True, model="opus")
        with pytest.raises(ApplicationError) as limited:
            await lab.running(call)
        assert delay(limited) <= NOW
        assert (lab.worktree / "half").exists()
        done = await lab.running(call)
        assert (done.verdict, done.agent, done.session_id) == (Verdict.DONE, "codex", "s-2")
        assert "the usage limit was reached: scripted, then codex" in done.warnings
        assert not (lab.worktree / "half").exists()
        assert len(done.rescues) == 1
        assert [run.record.agent for run in lab.runs if run.record] == ["scripted", "codex"]
        assert [(run.record.model, "opus" in str(run.record.argv)) for run in lab.runs if run.record] == [
            ("opus", True),
            ("", False),
        ]
        assert books.view(ORDER).total.tokens == done.usage.tokens
        notes = {note.agent: note.use.tokens for _, note in lab.parts.host.cost_notes.take()}
        assert sum(notes.values()) == done.usage.tokens
        assert notes["codex"] == 9
        again = await lab.running(lab.call(Step.CLASSIFY_ISSUE, attempt=2))
        assert (again.agent, again.agent_starts) == ("codex", 1)


async def test_the_second_agent_is_not_asked_for_a_short_pause(tmp_path: Path, origin: Origin) -> None:
    """A limit that begins anew within minutes is waited for."""
    codex = program(tmp_path / "codex", TALKS["codex"])
    async with lab_of(
        settings_with(tmp_path, None, SEPTET_CODEX_PATH=str(codex), CODEX_API_KEY=FIRST), origin, Books()
    ) as lab:
        await lab.open(fallback_agent="codex")
        limits(lab, FIRST, seconds=SHORT)
        with pytest.raises(ApplicationError) as limited:
            await lab.run(Step.CLASSIFY_ISSUE)
        assert SHORT - 60 < delay(limited) < SHORT + 60
        with pytest.raises(ApplicationError, match="usage limit of scripted's login is reached"):
            await lab.run(Step.CLASSIFY_ISSUE)
        assert started(tmp_path) == []


async def test_a_finalizer_is_asked_of_the_agent_whose_session_it_is(tmp_path: Path, origin: Origin) -> None:
    """The second agent's answer cannot be read: its own session is asked, also where the first one may start again."""
    books = Books()
    talk = [*TALKS["codex"]]
    talk[2] = {
        "type": "item.completed",
        "item": {"id": "item_0", "type": "agent_message", "text": "perhaps a bug"},
    }
    codex = program(tmp_path / "codex", talk)
    settings = settings_with(tmp_path, None, SEPTET_CODEX_PATH=str(codex), CODEX_API_KEY=FIRST)
    async with lab_of(settings, origin, books) as lab:
        await lab.open(fallback_agent="codex")
        limits(lab, FIRST)
        call = lab.call(Step.CLASSIFY_ISSUE)
        with pytest.raises(ApplicationError):
            await lab.running(call)
        unread = await lab.running(call)
        assert (unread.verdict, unread.agent) == (Verdict.UNPARSED, "codex")
        books.pauses.clear()
        program(codex, TALKS["codex"])
        finished = await lab.finalize(call, unread)
        assert (finished.verdict, finished.agent) == (Verdict.DONE, "codex")


async def test_the_pause_of_another_login_stops_nobody(tmp_path: Path, origin: Origin) -> None:
    """The first login is used as long as it is not paused itself."""
    books = Books(pauses={"another": QuotaPause(agent="scripted", until=time.time() + LONG)})
    async with lab_of(settings_with(tmp_path, second_login(tmp_path)), origin, books) as lab:
        await lab.open_to(Step.CLASSIFY_ISSUE)
        limits(lab)
        assert (await lab.run(Step.CLASSIFY_ISSUE)).login == ""


async def test_a_second_agent_is_chosen_by_work_order_repository_and_worker(
    tmp_path: Path, origin: Origin
) -> None:
    """The first of them that names one counts; the first agent itself is no second one."""
    codex, claude = (program(tmp_path / name, TALKS[name]) for name in ("codex", "claude"))
    paths = {"SEPTET_CODEX_PATH": str(codex), "SEPTET_CLAUDE_PATH": str(claude)}
    settings = settings_with(tmp_path, None, **paths, CODEX_API_KEY=FIRST, ANTHROPIC_API_KEY=FIRST)
    async with lab_of(settings.model_copy(update={"fallback_agent": "codex"}), origin, Books()) as lab:
        assert (await lab.open()).fallback_agent == "codex"
        assert (await lab.open(fallback_agent="claude")).fallback_agent == "claude"
        assert (await lab.open(fallback_agent="scripted")).fallback_agent == ""
        origin.push({".septet/septet.toml": '[agents]\nfallback = "claude"\n'})
        other = await lab.open(work_order_id="wo-2")
        assert other.fallback_agent == "claude"
        codex.unlink()
        with pytest.raises(ApplicationError, match="SEPTET_CODEX_PATH"):
            await lab.open(work_order_id="wo-3", fallback_agent="codex")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("SEPTET_SCRIPTED_KEY=a\nGITHUB_TOKEN=x\n", "has GITHUB_TOKEN, which scripted does not take"),
        ("# nothing\n", "has no variable"),
        ("SEPTET_SCRIPTED_KEY\n", "has no variable"),
        (None, "cannot be read"),
    ],
)
async def test_a_further_login_that_cannot_be_used_stops_the_worker(
    content: str | None, message: str, tmp_path: Path
) -> None:
    """The worker does not start, and says which login it is and why; no value is in the message."""
    if content is not None:
        (tmp_path / "second.env").write_text(content, encoding="utf-8")
    with pytest.raises(InvalidInputError, match=message):
        async with parts_of(settings_with(tmp_path, tmp_path / "second.env")):
            pass


@pytest.mark.parametrize("text", ["second", "a=/x,a=/y", "a b=/x", "=/x"])
def test_logins_that_are_not_written_as_such_are_refused(text: str) -> None:
    """The message names the variable."""
    with pytest.raises(ValidationError, match="SEPTET_CLAUDE_LOGINS is not valid"):
        Settings(environ={"SEPTET_CLAUDE_LOGINS": text})


def test_a_folder_is_a_login_without_the_keys_of_the_first_one(tmp_path: Path) -> None:
    """The CLI's folder is another one, and no key goes before it; gemini takes none."""
    env = {"PATH": "/bin", "ANTHROPIC_API_KEY": "first", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}
    spare = read_login(adapter_for("claude"), Machine(env), "spare", tmp_path)
    inside = {"PATH": "/bin", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1", "CLAUDE_CONFIG_DIR": str(tmp_path)}
    assert spare.machine.env == inside
    assert locate(adapter_for("claude"), spare.machine, "~/.claude/.credentials.json").parent == tmp_path
    with pytest.raises(InvalidInputError, match="takes no other than its own"):
        read_login(adapter_for("gemini"), Machine(env), "spare", tmp_path)


@pytest.mark.parametrize(
    ("agent", "variable"),
    [("opencode", "OPENCODE_CONFIG_CONTENT"), ("gemini", "GOOGLE_APPLICATION_CREDENTIALS")],
)
def test_logins_are_told_apart_by_whatever_holds_their_keys(agent: str, variable: str, tmp_path: Path) -> None:
    """A provider's configuration and a file of keys are such: the pause of one login is not that of the other."""
    (second := tmp_path / "second.env").write_text(f"{variable}=/second\n", encoding="utf-8")
    adapter, machine = adapter_for(agent), Machine({variable: "/first"})
    own, other = NamedLogin("", machine), read_login(adapter, machine, "second", second)
    assert own.identity(adapter) == (f"{variable}=/first",)
    assert other.identity(adapter) == (f"{variable}=/second",)


async def test_the_limit_of_one_provider_holds_no_other_one_up(tmp_path: Path, origin: Origin) -> None:
    """One CLI asks several: what its words pause is the key of the model that was asked, on other hosts too."""
    recorded = (RECORDINGS / "opencode/rate_limit.stdout").read_text(encoding="utf-8")
    books = Books()

    async def run(root: Path, model: str, **more: str) -> StepResult:
        root.mkdir()
        (limited := root / "limited").write_text(recorded.replace('"retry-after":"1"', '"retry-after":"900"'))
        path = program(root / "opencode", TALKS["opencode"], limited=str(limited))
        keys = {"SEPTET_OPENCODE_PATH": str(path), "ANTHROPIC_API_KEY": FIRST, **more}
        async with lab_of(settings_with(root, None, **keys), origin, books) as lab:
            lab.workspace = (await lab.open(agent="opencode")).model_copy(update={"agent": "opencode"})
            return await lab.run(Step.CLASSIFY_ISSUE, model=model)

    with pytest.raises(ApplicationError, match="organization's rate limit"):
        await run(tmp_path / "first", "anthropic/claude")
    with pytest.raises(ApplicationError, match="usage limit of opencode's login is reached"):
        await run(tmp_path / "second", "anthropic/haiku", OPENAI_API_KEY=SECOND, OPENAI_WHO="second")
    assert started(tmp_path / "second") == []
    done = await run(tmp_path / "third", "openai/gpt", OPENAI_API_KEY=SECOND, OPENAI_WHO="third")
    assert (done.verdict, done.agent, len(books.pauses)) == (Verdict.DONE, "opencode", 1)


async def test_a_login_is_that_of_the_provider_whose_model_is_asked(tmp_path: Path) -> None:
    """A limit of one provider pauses no other one, and pauses hosts that have its key, whatever else they have."""
    opencode = adapter_for("opencode")
    given = json.dumps({"model": "mine/small", "provider": {"mine": {"options": {"apiKey": "third"}}}})
    keys = {
        "here": {"ANTHROPIC_API_KEY": FIRST, "OPENAI_API_KEY": SECOND},
        "there": {"ANTHROPIC_API_KEY": FIRST, "GROQ_API_KEY": SECOND},
        "own": {"ANTHROPIC_API_KEY": FIRST, "OPENCODE_CONFIG_CONTENT": given},
    }
    digests: dict[tuple[str, str | None], str] = {}
    for name, env in keys.items():
        (tmp_path / name).mkdir()
        settings = settings_of(tmp_path / name)
        settings = settings.model_copy(update={"environ": {**settings.environ, **env}})
        async with parts_of(settings) as parts:
            own = own_login(parts.host)
            for model in (None, "anthropic/claude", "openai/gpt", "groq/qwen", "mine/small", "elsewhere/big"):
                digests[name, model] = login_digest(parts.host, opencode, own, model)
    claude, gpt, groq = "anthropic/claude", "openai/gpt", "groq/qwen"
    assert digests["here", claude] == digests["there", claude] == digests["own", claude]
    assert len({digests["here", claude], digests["here", gpt], digests["here", groq], digests["here", None]}) == 4
    assert digests["here", gpt] != digests["there", gpt], "one of them has no key of it, but a login of its own"
    assert digests["own", None] == digests["own", "mine/small"] != digests["own", claude]
    assert digests["here", "elsewhere/big"] != digests["there", "elsewhere/big"]


async def test_a_login_in_the_file_goes_before_the_key_of_its_provider(tmp_path: Path) -> None:
    """Opencode asks with it: the pause is this host's, and no other's that has the key alone."""
    settings = settings_of(tmp_path)
    (folder := tmp_path / "home/.local/share/opencode").mkdir(parents=True)
    env = {**settings.environ, "HOME": str(tmp_path / "home"), "ANTHROPIC_API_KEY": FIRST}
    async with parts_of(settings.model_copy(update={"environ": env})) as parts:

        def digest() -> str:
            return login_digest(parts.host, adapter_for("opencode"), own_login(parts.host), "anthropic/claude")

        with_key = digest()
        (folder / "auth.json").write_text('{"anthropic": {"type": "oauth"}}', encoding="utf-8")
        assert digest() != with_key


def test_a_home_holds_the_login_of_its_run_alone(tmp_path: Path) -> None:
    """The copy of the login before is taken back with what was refreshed, and never written to another's file."""
    machine = Machine({"HOME": str(tmp_path / "user")})
    (spare := tmp_path / "spare").mkdir()
    first = log_in(tmp_path / "user", "claude", login("claude", 1))
    second = spare / first.name
    second.write_text(json.dumps(login("claude", 5)), encoding="utf-8")
    homes, adapter = Homes(tmp_path / "homes", Logins(tmp_path / "logins")), adapter_for("claude")
    own = homes.of("wo-1", adapter, machine)
    own.prepare(None, HOUR)
    copy = own.root / ".claude" / first.name
    copy.write_text(json.dumps(login("claude", 2, 9 * HOUR)), encoding="utf-8")
    other = read_login(adapter, machine, "spare", spare).machine
    homes.of("wo-1", adapter, other).prepare(None, HOUR)
    assert "access-ann-2" in first.read_text(encoding="utf-8")
    assert "access-ann-5" in copy.read_text(encoding="utf-8")
    copy.write_text(json.dumps(login("claude", 6, 9 * HOUR)), encoding="utf-8")
    homes.take_logins_back("wo-1", is_over=True)
    assert "access-ann-6" in second.read_text(encoding="utf-8")
    assert "access-ann-2" in first.read_text(encoding="utf-8")
    assert not copy.exists()


async def test_the_second_agent_takes_over_where_the_model_of_the_first_one_refuses(
    tmp_path: Path, origin: Origin
) -> None:
    """One start is refused, and the other agent begins anew; the next turn begins with the first agent again."""
    codex = program(tmp_path / "codex", TALKS["codex"])
    settings = settings_with(tmp_path, None, SEPTET_CODEX_PATH=str(codex), CODEX_API_KEY=FIRST)
    async with lab_of(settings, origin, Books()) as lab:
        await lab.open(fallback_agent="codex")
        lab.agent('init(); say(\'{"type":"result","subtype":"success","stop_reason":"refusal"}\')')
        for attempt in (1, 2):
            done = await lab.running(lab.call(Step.CLASSIFY_ISSUE, attempt=attempt))
            assert (done.verdict, done.agent, done.agent_starts) == (Verdict.DONE, "codex", 2)
            assert "the model refused: scripted, then codex" in done.warnings
        assert [run.record.agent for run in lab.runs if run.record] == ["scripted", "codex"] * 2


async def test_agents_whose_models_all_refuse_are_asked_once_each(tmp_path: Path, origin: Origin) -> None:
    """The error names the refusal of the last one; nobody is asked again and again."""
    talk: list[dict[str, object]] = [
        {"type": "turn.failed", "error": {"message": "flagged for possible cybersecurity risk"}}
    ]
    codex = program(tmp_path / "codex", talk)
    async with lab_of(
        settings_with(tmp_path, None, SEPTET_CODEX_PATH=str(codex), CODEX_API_KEY=FIRST), origin, Books()
    ) as lab:
        await lab.open(fallback_agent="codex")
        lab.agent('init(); say(\'{"type":"result","subtype":"success","stop_reason":"refusal"}\')')
        for _ in range(2):
            with pytest.raises(ApplicationError, match="The model refused this work.*cybersecurity") as failed:
                await lab.run(Step.CLASSIFY_ISSUE)
            assert (failed.value.type, failed.value.non_retryable) == ("AgentApi", True)
        assert [run.record.agent for run in lab.runs if run.record] == ["scripted", "codex"]
