"""The engine's git reads its own configuration, and no setting in it sends git elsewhere."""

import subprocess
from pathlib import Path

import pytest

from septet.errors import GitError
from septet.git.engine.configuration import write_configuration
from septet.settings import Settings


@pytest.fixture
def home(tmp_path: Path, env: dict[str, str]) -> Path:
    """The home of the user whose git configuration is copied; the environment names no other configuration."""
    env.pop("GIT_CONFIG_GLOBAL", None)
    return Path(env["HOME"])


def _asked(path: Path, env: dict[str, str], *args: str) -> str:
    own = {**env, "GIT_CONFIG_GLOBAL": str(path), "GIT_CONFIG_NOSYSTEM": "1", "GIT_DIR": "/dev/null"}
    return subprocess.run(["git", "config", *args], env=own, capture_output=True, text=True, check=True).stdout


def test_names_keys_and_certificates_are_taken_over(home: Path, env: dict[str, str], tmp_path: Path) -> None:
    """The configuration has the user's identity, signing, credential helpers and certificates."""
    (home / "more").write_text('[credential]\n\thelper =\n\thelper = "!printf \\"a\\\\tb\\"; # c"\n')
    (home / ".gitconfig").write_text(
        '[user]\n\tname = Größe "G"\n[include]\n\tpath = more\n'
        '[credential "https://X.example/a.b"]\n\tuseHttpPath\n[http "https://x.example"]\n\tsslCAInfo = ~/ca.pem\n'
    )
    assert write_configuration(tmp_path / "own", env) == ()

    asked = _asked(tmp_path / "own", env, "--list")
    assert asked == _asked(home / ".gitconfig", env, "--list").replace("include.path=more\n", "")
    assert _asked(tmp_path / "own", env, "--type=bool", "credential.https://X.example/a.b.useHttpPath") == "true\n"
    assert (tmp_path / "own").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "setting",
    [
        "url.https://attacker.example/.pushInsteadOf",
        "url.https://attacker.example/.insteadOf",
        "http.proxy",
        "http.https://github.com.proxy",
        "trace2.eventTarget",
        "core.hooksPath",
        "core.gitProxy",
        "filter.lfs.smudge",
        "diff.external",
        "include.path",
        "protocol.ext.allow",
        "remote.origin.proxy",
    ],
)
def test_what_leads_elsewhere_is_left_out(home: Path, env: dict[str, str], tmp_path: Path, setting: str) -> None:
    """The configuration omits proxies, rewritten addresses and programs, and lists those a user may miss."""
    subprocess.run(["git", "config", "--global", setting, str(tmp_path / "canary")], env=env, check=True)
    left_out = write_configuration(tmp_path / "own", env)

    assert _asked(tmp_path / "own", env, "--list") == ""
    is_missed = setting.lower().endswith(("insteadof", "proxy")) and not setting.startswith("core.")
    assert [name.lower() for name in left_out] == ([setting.lower()] if is_missed else [])


def test_what_an_agent_writes_into_the_users_configuration_is_not_read(
    home: Path, env: dict[str, str], tmp_path: Path
) -> None:
    """After the start of a worker its git does not read the user's configuration."""
    settings = Settings(state_dir=tmp_path / "state", environ=env)
    settings.state_dir.mkdir()
    write_configuration(settings.git_configuration, settings.user_git_env)
    canary = tmp_path / "canary"
    (home / ".gitconfig").write_text(f"[trace2]\n\teventTarget = {canary}\n")

    subprocess.run(["git", "init", "-q", "repository"], cwd=tmp_path, env=settings.git_env, check=True)
    subprocess.run(["git", "-C", "repository", "status"], cwd=tmp_path, env=settings.git_env, check=True)
    assert not canary.exists()
    subprocess.run(["git", "-C", "repository", "status"], cwd=tmp_path, env=env, check=True)
    assert canary.exists()


def test_a_configuration_that_git_cannot_read_is_told(home: Path, env: dict[str, str], tmp_path: Path) -> None:
    """A user's configuration that git cannot read causes an error, and no configuration is written."""
    (home / ".gitconfig").write_text("[user\n")
    with pytest.raises(GitError, match=r"\.gitconfig"):
        write_configuration(tmp_path / "own", env)
    assert not (tmp_path / "own").exists()
