"""If a step's login reaches its usage limit, another login continues, or another agent takes over."""

import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from fakes.account_books import ORDER, Books
from fakes.logins import HOUR, log_in, login
from fakes.repositories import Origin
from fakes.step_lab import StepLab, settings_of, step_lab
from temporalio.exceptions import ApplicationError

from septet.agents.clis.adapter import Machine
from septet.agents.clis.own_files import locate
from septet.agents.clis.registry import NamedLogin, adapter_for, read_login
from septet.agents.runs.homes import Homes
from septet.agents.runs.logins import Logins
from septet.contracts.names import Step, Verdict
from septet.contracts.steps import StepResult
from septet.errors import InvalidInputError
from septet.settings import Settings
from septet.state import StateDir
from septet.system.masking import mask
from workers.registry import parts_of

RECORDINGS = Path(__file__).parents[1] / "data/recordings"
FIRST, SECOND = "the-first-key-of-all", "the-second-key-of-all"
LONG, SHORT = 900.0, 100.0
"""The seconds of a pause in which the second agent takes over, and of a pause that the step waits out."""
NOW = 0.1
"""The longest delay, in seconds, of a step that is tried again at once."""
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
"""The output of programs that answer in the format of their CLI."""


def settings_with(root: Path, second: Path | None, **environ: str) -> Settings:
    """Return the settings of a host whose agents log in with the first key and, if given, the second after it.

    The host counts as a sandbox itself, so claude starts as root also where bubblewrap may not start.
    """
    settings = settings_of(root)
    further = {"SEPTET_SCRIPTED_LOGINS": f"second={second}"} if second is not None else {}
    own = {**settings.environ, "SEPTET_SCRIPTED_KEY": FIRST, **further, **environ}
    return settings.model_copy(update={"environ": own, "sandboxed": True})


@pytest.fixture
def books() -> Books:
    return Books()


@pytest_asyncio.fixture
async def lab(tmp_path: Path, origin: Origin, books: Books) -> AsyncIterator[StepLab]:
    """Return a host with two logins and an opened workspace."""
    file = tmp_path / "second.env"
    file.write_text(f"# of the team\nSEPTET_SCRIPTED_KEY={SECOND}\n", encoding="utf-8")
    settings = settings_with(tmp_path, file)
    async with step_lab(tmp_path, origin, settings, accounts=books) as made:
        await made.open_to(Step.CLASSIFY_ISSUE)
        yield made


@asynccontextmanager
async def codex_beside(
    root: Path, origin: Origin, talk: list[dict[str, object]], books: Books | None = None
) -> AsyncIterator[StepLab]:
    """Yield a host with one login, and a workspace whose second agent is codex, which prints `talk`."""
    codex = program(root / "codex", talk)
    settings = settings_with(root, None, SEPTET_CODEX_PATH=str(codex), CODEX_API_KEY=FIRST)
    async with step_lab(root, origin, settings, accounts=books or Books()) as made:
        await made.open(fallback_agent="codex")
        yield made


def program(path: Path, talk: list[dict[str, object]], *, limited: str = "") -> Path:
    """Write a CLI that answers; with `limited` it prints that recording and fails if no variable `…_WHO` is set."""
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
    path = root / "started"
    return path.read_text(encoding="utf-8").split() if path.exists() else []


def limits(lab: StepLab, *keys: str, seconds: float = LONG, work: str = "pass") -> None:
    """Let the agent's logins with these keys reach a usage limit that ends after `seconds`."""
    until = int(time.time() + seconds)
    answer = {"issue_class": "/bug"}
    lab.agent(LIMITED.format(limited=keys, until=until, answer=answer, work=work))


def delay(error: ApplicationError) -> float:
    assert error.next_retry_delay is not None
    return error.next_retry_delay.total_seconds()


async def test_the_next_login_goes_on_in_the_same_session(lab: StepLab, books: Books) -> None:
    """After the limit the same session continues with the second login, and later steps begin with that login."""
    limits(lab, FIRST)
    call = lab.call(Step.CLASSIFY_ISSUE)
    limited = await lab.failing(call, "usage limit reached")
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


async def test_work_returns_to_the_first_login_after_its_reset(lab: StepLab, books: Books) -> None:
    """A pause whose time is over does not count, whether or not its workflow has ended."""
    limits(lab, FIRST)
    with pytest.raises(ApplicationError, match="usage limit reached"):
        await lab.run(Step.CLASSIFY_ISSUE)
    over = {login: pause.model_copy(update={"until": time.time() - 1}) for login, pause in books.pauses.items()}
    books.pauses.update(over)
    limits(lab)
    done = await lab.run(Step.CLASSIFY_ISSUE, attempt=2)
    assert (done.verdict, done.login) == (Verdict.DONE, "")


async def test_a_step_waits_for_the_earliest_reset_where_all_logins_are_paused(lab: StepLab, books: Books) -> None:
    """Each login reaches its limit once; then no agent starts, and the step is tried again at the first reset."""
    limits(lab, FIRST, SECOND)
    call = lab.call(Step.CLASSIFY_ISSUE)
    first = await lab.failing(call)
    assert delay(first) <= NOW
    second = await lab.failing(call)
    assert LONG - 60 < delay(second) < LONG + 60
    starts = len(lab.runs)
    with pytest.raises(ApplicationError, match="usage limits of scripted's login and scripted's login second"):
        await lab.running(call)
    assert (starts, len(lab.runs)) == (2, 2)


@pytest.mark.parametrize(
    "words",
    ["You've hit your usage limit, or try again at 11:55 PM.", "You've hit your usage limit."],
    ids=["an hour of the day it was said", "no time"],
)
async def test_a_usage_limit_that_is_read_after_it_has_ended_pauses_nothing(
    words: str, lab: StepLab, books: Books
) -> None:
    """The end of a limit counts from the end of its agent, and not from the moment of reading."""
    lab.agent(f'init(); api_error(429, "{words}")')
    call = lab.call(Step.CLASSIFY_ISSUE)
    with pytest.raises(ApplicationError):
        await lab.running(call)
    (run,) = lab.runs  # the state on the next day, after a worker that died before it reported the limit
    (run.folder / "limit-told").unlink()
    record = json.loads((run.folder / "exit.json").read_text())
    (run.folder / "exit.json").write_text(json.dumps({**record, "ended_at": "2026-03-09T08:00:00.000Z"}))
    books.pauses.clear()
    limits(lab)
    done = await lab.running(call)
    assert (done.verdict, done.login, books.pauses) == (Verdict.DONE, "", {})


@pytest.mark.parametrize("agent", ["claude", "codex"])
async def test_the_limits_of_real_clis_move_the_work(agent: str, tmp_path: Path, origin: Origin) -> None:
    """The recorded limit messages of claude and codex move the work to the second login."""
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
    async with step_lab(tmp_path, origin, settings, accounts=Books()) as lab:
        lab.workspace = (await lab.open(agent=agent)).model_copy(update={"agent": agent})
        limited = await lab.failing(lab.call(Step.CLASSIFY_ISSUE))
        assert delay(limited) <= NOW
        done = await lab.run(Step.CLASSIFY_ISSUE)
        assert (done.verdict, done.result_text, done.login) == (Verdict.DONE, "/bug", "second")
        assert started(tmp_path) == [agent, agent]


async def test_the_second_agent_takes_over_from_the_checkpoint(tmp_path: Path, origin: Origin) -> None:
    """If the first agent has a long pause, the second agent begins anew, and the first agent's work is in a rescue."""
    books = Books()
    async with codex_beside(tmp_path, origin, TALKS["codex"], books) as lab:
        limits(lab, FIRST, work='open("half", "w").write("half")')
        call = lab.call(Step.CLASSIFY_ISSUE, budget="9Mtok", waits_for_budget=True, model="opus")
        limited = await lab.failing(call)
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
    """The step waits for a limit that ends within minutes."""
    async with codex_beside(tmp_path, origin, TALKS["codex"]) as lab:
        limits(lab, FIRST, seconds=SHORT)
        limited = await lab.failing(lab.call(Step.CLASSIFY_ISSUE))
        assert SHORT - 60 < delay(limited) < SHORT + 60
        with pytest.raises(ApplicationError, match="usage limit of scripted's login is reached"):
            await lab.run(Step.CLASSIFY_ISSUE)
        assert started(tmp_path) == []


async def test_a_finalizer_is_asked_of_the_agent_whose_session_it_is(tmp_path: Path, origin: Origin) -> None:
    """The finalizer asks the second agent's session, also if the first agent may start again."""
    books = Books()
    talk = [*TALKS["codex"]]
    talk[2] = {
        "type": "item.completed",
        "item": {"id": "item_0", "type": "agent_message", "text": "perhaps a bug"},
    }
    async with codex_beside(tmp_path, origin, talk, books) as lab:
        limits(lab, FIRST)
        call = lab.call(Step.CLASSIFY_ISSUE)
        with pytest.raises(ApplicationError):
            await lab.running(call)
        unread = await lab.running(call)
        assert (unread.verdict, unread.agent) == (Verdict.UNPARSED, "codex")
        books.pauses.clear()
        program(tmp_path / "codex", TALKS["codex"])
        finished = await lab.finalize(call, unread)
        assert (finished.verdict, finished.agent) == (Verdict.DONE, "codex")


async def test_a_second_agent_is_chosen_by_work_order_repository_and_worker(
    tmp_path: Path, origin: Origin
) -> None:
    """Work order, repository and worker choose the second agent, in this order; the first agent is never second."""
    codex, claude = (program(tmp_path / name, TALKS[name]) for name in ("codex", "claude"))
    paths = {"SEPTET_CODEX_PATH": str(codex), "SEPTET_CLAUDE_PATH": str(claude)}
    settings = settings_with(tmp_path, None, **paths, CODEX_API_KEY=FIRST, ANTHROPIC_API_KEY=FIRST)
    settings = settings.model_copy(update={"fallback_agent": "codex"})
    async with step_lab(tmp_path, origin, settings, accounts=Books()) as lab:
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
    """The worker does not start, and the message names the login's fault without a value."""
    if content is not None:
        (tmp_path / "second.env").write_text(content, encoding="utf-8")
    with pytest.raises(InvalidInputError, match=message):
        async with parts_of(settings_with(tmp_path, tmp_path / "second.env")):
            pass


def test_a_folder_is_a_login_without_the_keys_of_the_first_one(tmp_path: Path) -> None:
    """A login in a folder has the CLI's folder and no key of the first login; gemini takes no folder."""
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
    """Logins differ by a provider's configuration or a file of keys, so a pause holds for one of them."""
    (second := tmp_path / "second.env").write_text(f"{variable}=/second\n", encoding="utf-8")
    adapter, machine = adapter_for(agent), Machine({variable: "/first"})
    own, other = NamedLogin("", machine), read_login(adapter, machine, "second", second)
    assert own.identity(adapter) == (f"{variable}=/first",)
    assert other.identity(adapter) == (f"{variable}=/second",)


def test_a_login_in_the_file_goes_before_the_key_of_its_provider(tmp_path: Path) -> None:
    """Opencode uses the login in its file before the provider's key, so a pause is not that of the key."""
    adapter, machine = adapter_for("opencode"), Machine({"HOME": str(tmp_path), "ANTHROPIC_API_KEY": FIRST})
    own = NamedLogin("", machine)
    assert own.identity(adapter, "anthropic") == (f"ANTHROPIC_API_KEY={FIRST}",)
    (folder := tmp_path / ".local/share/opencode").mkdir(parents=True)
    (folder / "auth.json").write_text('{"anthropic": {"type": "oauth"}}', encoding="utf-8")
    assert own.identity(adapter, "anthropic") == ()


async def test_the_limit_of_one_provider_holds_no_other_one_up(tmp_path: Path, origin: Origin) -> None:
    """A pause holds for the key of the provider whose model met the limit, also on other hosts."""
    recorded = (RECORDINGS / "opencode/rate_limit.stdout").read_text(encoding="utf-8")
    books = Books()

    async def run(root: Path, model: str, **more: str) -> StepResult:
        root.mkdir()
        (limited := root / "limited").write_text(recorded.replace('"retry-after":"1"', '"retry-after":"900"'))
        path = program(root / "opencode", TALKS["opencode"], limited=str(limited))
        keys = {"SEPTET_OPENCODE_PATH": str(path), "ANTHROPIC_API_KEY": FIRST, **more}
        async with step_lab(root, origin, settings_with(root, None, **keys), accounts=books) as lab:
            lab.workspace = (await lab.open(agent="opencode")).model_copy(update={"agent": "opencode"})
            return await lab.run(Step.CLASSIFY_ISSUE, model=model)

    with pytest.raises(ApplicationError, match="organization's rate limit"):
        await run(tmp_path / "first", "anthropic/claude")
    with pytest.raises(ApplicationError, match="usage limit of opencode's login is reached"):
        await run(tmp_path / "second", "anthropic/haiku", OPENAI_API_KEY=SECOND, OPENAI_WHO="second")
    assert started(tmp_path / "second") == []
    done = await run(tmp_path / "third", "openai/gpt", OPENAI_API_KEY=SECOND, OPENAI_WHO="third")
    assert (done.verdict, done.agent, len(books.pauses)) == (Verdict.DONE, "opencode", 1)


def test_a_home_holds_the_login_of_its_run_alone(tmp_path: Path) -> None:
    """A refreshed login is written back to its own file, and never to another login's file."""
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
    """After a refusal the other agent begins anew, and the next turn begins with the first agent again."""
    async with codex_beside(tmp_path, origin, TALKS["codex"]) as lab:
        lab.agent('init(); say(\'{"type":"result","subtype":"success","stop_reason":"refusal"}\')')
        for attempt in (1, 2):
            done = await lab.running(lab.call(Step.CLASSIFY_ISSUE, attempt=attempt))
            assert (done.verdict, done.agent, done.agent_starts) == (Verdict.DONE, "codex", 2)
            assert "the model refused: scripted, then codex" in done.warnings
        assert [run.record.agent for run in lab.runs if run.record] == ["scripted", "codex"] * 2


async def test_agents_whose_models_all_refuse_are_asked_once_each(tmp_path: Path, origin: Origin) -> None:
    """If both models refuse, each agent starts once, and the error names the last refusal."""
    talk: list[dict[str, object]] = [
        {"type": "turn.failed", "error": {"message": "flagged for possible cybersecurity risk"}}
    ]
    async with codex_beside(tmp_path, origin, talk) as lab:
        lab.agent('init(); say(\'{"type":"result","subtype":"success","stop_reason":"refusal"}\')')
        for _ in range(2):
            failed = await lab.failing(lab.call(Step.CLASSIFY_ISSUE), "The model refused this work.*cybersecurity")
            assert (failed.type, failed.non_retryable) == ("AgentApi", True)
        assert [run.record.agent for run in lab.runs if run.record] == ["scripted", "codex"]


async def test_a_worker_that_starts_writes_back_what_an_agent_has_refreshed(tmp_path: Path) -> None:
    """The refreshed login is in the user's file as soon as the worker has started, without a start of the agent."""
    settings = settings_of(tmp_path)
    users = log_in(settings.home, "claude", login("claude", 1))
    async with parts_of(settings) as parts:
        host = parts.host
        home = host.homes.of("wo-1", adapter_for("claude"), host.agents)
        home.prepare(None, HOUR)
    copy = StateDir(settings.state_dir).homes / "wo-1/claude/.claude/.credentials.json"
    copy.write_text(json.dumps(login("claude", 2, 9 * HOUR)))
    async with parts_of(settings):
        assert "refresh-ann-2" in users.read_text()
