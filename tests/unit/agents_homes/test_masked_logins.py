"""The keys in a CLI's own files are masked in all published text, as keys of the environment are."""

import json
from pathlib import Path
from uuid import uuid4

import pytest
from fakes.agent_homes import home_of
from fakes.logins import FILES, HOUR, log_in, login

from septet.forges.values import NewPullRequest
from septet.system.masking import MASK


def as_published(text: str) -> str:
    return NewPullRequest("head", "base", "A title", text, "wo-1").marked_body.partition("\n")[0]


@pytest.mark.parametrize("agent", FILES)
def test_a_login_that_an_agent_has_is_masked_in_its_pull_request(agent: str, tmp_path: Path) -> None:
    """The old and the refreshed tokens are masked; the name of the account is not."""
    account = f"ann-{uuid4()}"
    log_in(tmp_path / "user", agent, login(agent, 1, account=account))
    home = home_of(tmp_path, agent)
    home.prepare(None, HOUR)
    refreshed = login(agent, 2, 9 * HOUR, account)
    (home.root / FILES[agent]).write_text(json.dumps(refreshed))
    home.logins.take_back(home.root, is_over=True)
    access = (
        [refreshed["tokens"]["access_token"]] if agent == "codex" else [f"access-{account}-{n}" for n in (1, 2)]
    )
    for token in (*access, f"refresh-{account}-1", f"refresh-{account}-2"):
        assert as_published(f"It is {token}.") == f"It is {MASK}."
    assert as_published(f"It is the login of {account}.") == f"It is the login of {account}."


@pytest.mark.parametrize(
    ("agent", "name", "content"),
    [
        ("opencode", ".local/share/opencode/auth.json", '{{"groq": {{"type": "api", "key": "{key}"}}}}'),
        ("opencode", ".config/opencode/opencode.json", '{{"provider": {{"own": {{"options": {{"apiKey": "{key}"}}}}}}}} // own'),
        ("codex", ".codex/config.toml", '[model_providers.own]\nexperimental_bearer_token = "{key}"\n'),
        ("gemini", ".gemini/oauth_creds.json", '{{"access_token": "{key}", "token_type": "Bearer"}}'),
        ("copilot", ".copilot/config.json", '{{"copilot_tokens": {{"https://github.example:ada": "{key}"}}}}'),
    ],
)  # fmt: skip
def test_a_key_in_a_file_of_a_cli_is_masked(agent: str, name: str, content: str, tmp_path: Path) -> None:
    """A key in each CLI's own files is masked, also in settings of which a guest gets a part."""
    key = f"key-{uuid4()}"
    path = tmp_path / "user" / name
    path.parent.mkdir(parents=True)
    path.write_text(content.format(key=key))
    home_of(tmp_path, agent).prepare(None, HOUR)
    assert as_published(f"It is {key}.") == f"It is {MASK}."
