"""Real CLIs in the work order's home: their sessions move into it, and out of it again."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.agent_desk import Desk, desk_of
from fakes.listening import QuietHandler, listening
from fakes.logins import HOUR, log_in, login
from fakes.model_stub import Part

from septet.agents.sandbox.sandbox import Sandbox
from septet.errors import SeptetError

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def desk(cli: str, programs: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Yield a desk with confined agents, and a new home of the user."""
    root = tmp_path_factory.mktemp("desk")
    with desk_of(cli, root, root / "user", programs, "bwrap", Part({"success": True})) as made:
        yield made


def test_a_session_goes_on_over_the_upgrade_and_back(desk: Desk) -> None:
    """A session that began in the user's home continues in the work order's home, and then without a sandbox."""
    confined = desk.runtime
    desk.runtime = replace(confined, sandbox=Sandbox())
    first = desk.run_turn(None)
    session = first.outcome.session_id
    desk.runtime = confined
    second, third = desk.run_turn(session), desk.run_turn(session)
    results = [first, second, third]
    if desk.cli != "opencode":
        desk.runtime = replace(confined, sandbox=Sandbox())
        results.append(desk.run_turn(session))
    assert [(each.outcome.ended, each.outcome.session_id) for each in results] == [("ok", session)] * len(results)
    assert [each.agent_starts for each in results] == [1] * len(results)


REFRESHES: list[bytes] = []


class Issuer(QuietHandler):
    """Gives codex new tokens for the first refresh token, and refuses all other requests."""

    def handle_any(self) -> None:
        """Answer a refresh; refuse other requests."""
        asked = self.rfile.read(int(self.headers.get("content-length") or 0))
        is_refresh = self.path == "/oauth/token" and b'"refresh-ann-1"' in asked
        REFRESHES.extend([asked] * is_refresh)
        tokens = json.dumps(login("codex", 2, 9 * HOUR)["tokens"] if is_refresh else {}).encode()
        self.answer(200 if is_refresh else 400, {"Content-Type": "application/json"}, tokens)


@pytest.mark.parametrize("cli", ["codex"], indirect=True)
def test_a_login_that_is_due_is_refreshed_by_the_cli_at_its_start_and_comes_back(desk: Desk) -> None:
    """Codex refreshes its due login at its start, and the user's file has the new tokens though the turn fails."""
    home = Path(desk.runtime.host.env["HOME"])
    users = log_in(home, "codex", {**login("codex", 1, HOUR / 10), "auth_mode": "chatgpt"})
    with listening(Issuer) as address:
        (home / ".codex/config.toml").write_text(f'chatgpt_base_url = "{address}/backend-api"\n')
        env = {key: value for key, value in desk.runtime.host.env.items() if key != "CODEX_API_KEY"}
        env["CODEX_REFRESH_TOKEN_URL_OVERRIDE"] = f"{address}/oauth/token"
        desk.runtime = replace(desk.runtime, host=replace(desk.runtime.host, env=env))
        with pytest.raises(SeptetError):
            desk.run_turn(None)
    assert len(REFRESHES) == 1
    tokens = json.loads(users.read_bytes())["tokens"]
    assert (tokens["refresh_token"], tokens["account_id"]) == ("refresh-ann-2", "ann")
    assert not (desk.runtime.homes.root / "wo-1/codex/.codex/auth.json").exists() if desk.runtime.homes else False


def test_nothing_of_a_confined_turn_is_left_in_the_users_home(desk: Desk) -> None:
    """A confined turn leaves no new file in the user's home, and the model's requests have the real key."""
    home = Path(desk.runtime.host.env["HOME"])
    before = set(home.rglob("*"))
    assert desk.run_turn(None).outcome.ended == "ok"
    assert set(home.rglob("*")) == before
    assert desk.model.keys == {"made-up"}


_LOOKS = (
    "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline > seen 2>/dev/null; cat $(find $HOME -type f) >> seen; true"
)


def looked_for(desk: Desk) -> bytes:
    """Let the model search the sandbox for keys, and return what it finds."""
    desk.model.parts["implement_plan"] = Part({"success": True}, (_LOOKS,))
    assert desk.run_turn(None).outcome.ended == "ok"
    return (desk.worktree / "seen").read_bytes()


@pytest.mark.parametrize("cli", ["claude", "codex", "opencode"], indirect=True)
def test_the_key_of_a_model_is_not_in_the_sandbox(desk: Desk) -> None:
    """The requests have the real key, and no process or file in the sandbox has it. The other CLIs refuse to search."""
    seen = looked_for(desk)
    assert b"sk-septet-stands-in" in seen
    assert b"made-up" not in seen
    assert "made-up" in desk.model.keys


@pytest.mark.parametrize("cli", ["codex", "opencode"], indirect=True)
def test_the_key_of_a_usual_provider_is_not_in_the_sandbox(desk: Desk) -> None:
    """A key of a provider that the CLI knows itself, at another address, is not in the sandbox."""
    env = dict(desk.runtime.host.env)
    settings = Path(env["HOME"]) / ".codex/config.toml"
    if desk.cli == "codex":
        own = next(line for line in settings.read_text().splitlines() if line.startswith("base_url"))
        settings.write_text(f"openai_{own}\n")
    else:
        options = json.loads(env["OPENCODE_CONFIG_CONTENT"])["provider"]["stub"]["options"]
        provider = {"anthropic": {"options": {"baseURL": options["baseURL"]}}}
        model = "anthropic/claude-sonnet-4-5"
        given = {"model": model, "small_model": model, "provider": provider}
        env |= {"OPENCODE_CONFIG_CONTENT": json.dumps(given), "ANTHROPIC_API_KEY": "made-up"}
        desk.runtime = replace(desk.runtime, host=replace(desk.runtime.host, env=env))
    assert b"made-up" not in looked_for(desk)
    assert "made-up" in desk.model.keys
