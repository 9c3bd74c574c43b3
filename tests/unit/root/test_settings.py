import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from septet.settings import Settings

CASES = [
    ({"SEPTET_STATE_DIR": "~/septet"}, "str(settings.state_dir)", "/home/ada/septet"),
    ({"SEPTET_AGENT": ""}, "settings.agent", "claude"),
    ({"SEPTET_USER": "eve", "LOGNAME": "ada"}, "settings.user", "eve"),
    ({"SEPTET_GITHUB_HOSTS": "github.com, GHE.example"}, "list(settings.github_hosts)", ["github.com", "ghe.example"]),
    ({"GITLAB_TOKEN": "t1"}, "settings.gitlab_token.get_secret_value()", "t1"),
    ({"GH_TOKEN": "t2", "GITHUB_TOKEN": "t1"}, "settings.github_token.get_secret_value()", "t1"),
    ({"SEPTET_GITHUB_TOKEN": "t3", "GITHUB_TOKEN": "t1"}, "settings.github_token.get_secret_value()", "t3"),
    ({"SEPTET_MY_AGENT_PATH": "/opt/mine"}, "settings.agent_programs", {"my-agent": "/opt/mine"}),
    ({"SEPTET_SANDBOX": "bwrap"}, "settings.sandbox", "bwrap"),
    ({"SEPTET_SANDBOX": "docker"}, "settings.sandbox", "SEPTET_SANDBOX is not valid"),
    ({"SEPTET_SANDBOXED": "true"}, "settings.sandboxed", True),
    ({"GITHUB_TOKEN": "a-key", "OPENAI_API_KEY": "a-key"}, "'a-key' in repr(settings) + str(settings)", False),
    ({"SEPTET_LOG_LEVEL": "WARNING"}, "settings.log_level", "warning"),
    ({"SEPTET_MAX_AGENTS": "none"}, "settings.max_agents", "SEPTET_MAX_AGENTS is not valid"),
    ({"SEPTET_CLAUDE_LOGINS": "second"}, "settings.agent", "SEPTET_CLAUDE_LOGINS is not valid"),
    ({"SEPTET_CLAUDE_LOGINS": "a=/x,a=/y"}, "settings.agent", "SEPTET_CLAUDE_LOGINS is not valid"),
    ({"SEPTET_GITHUB_HOSTS": "", "SEPTET_TASK_QUEUE": "mine"}, "settings.task_queue", "mine"),
]  # fmt: skip
_READER = """
import json, os, sys
from septet.errors import InvalidInputError
from septet.settings import load_settings

for environ, expression in json.loads(sys.stdin.read()):
    os.environ.clear()
    os.environ.update(environ, HOME="/home/ada")
    try:
        settings = load_settings()
        print(json.dumps(eval(expression)))
    except InvalidInputError as error:
        print(json.dumps(error.message))
"""


@pytest.fixture(scope="module")
def read() -> list[object]:
    done = subprocess.run(
        [sys.executable, "-c", _READER],
        input=json.dumps([case[:2] for case in CASES]),
        env={"PATH": os.environ["PATH"], "HOME": "/home/ada"},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("number", range(len(CASES)), ids=[", ".join(case[0]) for case in CASES])
def test_a_variable_is_read(read: list[object], number: int) -> None:
    """Each setting has its variable, the worker's own key comes first, and an error names the variable."""
    expected = CASES[number][2]
    if isinstance(expected, str):
        assert str(read[number]).startswith(expected)
    else:
        assert read[number] == expected


def test_git_gets_what_it_needs_and_no_key() -> None:
    """The engine's git gets PATH, proxies and the ssh agent, and no key of a forge or a model."""
    needed = {"PATH": "/bin", "https_proxy": "http://proxy", "SSH_AUTH_SOCK": "/s"}
    others = {"GITHUB_TOKEN": "k", "OPENAI_API_KEY": "k", "GIT_CONFIG_GLOBAL": "/u", "GIT_TRACE2_EVENT": "/t"}
    settings = Settings(state_dir=Path("/s"), environ={**needed, **others})
    own = {"GIT_CONFIG_GLOBAL": "/s/gitconfig", "GIT_CONFIG_NOSYSTEM": "1"}
    assert settings.git_env == {**needed, **own}
    assert settings.user_git_env == {"PATH": "/bin", "GIT_CONFIG_GLOBAL": "/u"}
    assert settings.server_env == {"PATH": "/bin"}
