"""Origins over HTTP and ssh on loopback, and the errors for their refusals."""

import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.git_http import GitHttp, serving_git
from fakes.repositories import Origin, git, make_origin
from fakes.shell_programs import write_program

from septet.errors import GitError, GitUnavailableError, NotFoundError, RemoteFullError, SeptetError
from septet.git.commits.branches import create_branch
from septet.git.commits.commit import commit_all
from septet.git.commits.push import push, remote_branch
from septet.git.engine.address import parse_address
from septet.git.engine.git_words import failure_of, printable
from septet.git.engine.place import Place
from septet.git.engine.remote import Remote
from septet.git.workspace.workspace import OrderStart, open_workspace
from septet.state import StateDir

TOKEN = "ghs_top_secret_token"  # noqa: S105 -- of the fake


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    """Return an origin that accepts pushes over HTTP."""
    origin = make_origin(tmp_path / "served" / "o", name="foo.js.git")
    origin.push({"README.md": "# Sample\n"})
    git(origin.bare, "config", "http.receivepack", "true")
    return origin


@pytest.fixture
def server(tmp_path: Path, origin: Origin) -> Iterator[GitHttp]:
    with serving_git(GitHttp(tmp_path / "served", TOKEN)) as server:
        yield server


Opened = Callable[..., Place]


@pytest.fixture
def opened(server: GitHttp, state: StateDir, env: dict[str, str]) -> Opened:
    def open_it(order_id: str = "wo-1", name: str = "foo.js", **other: Any) -> Place:
        given = {"env": env, "token": TOKEN} | other
        address = parse_address(f"{server.url}/o/{name}.git")
        return open_workspace(state, address, OrderStart(order_id, "r"), **given)

    return open_it


def test_the_token_is_in_no_file_no_environment_and_no_argument(
    opened: Opened, server: GitHttp, state: StateDir, env: dict[str, str], tmp_path: Path
) -> None:
    """No file of the state directory, command line, environment and error contains the token."""
    real = subprocess.check_output(["sh", "-c", "command -v git"], text=True).strip()
    folder, seen = tmp_path / "bin", tmp_path / "argv"
    write_program(folder / "git", f'#!/bin/sh\necho "$@" >> {seen}\nenv >> {seen}\nexec {real} "$@"\n')
    spying = {**env, "PATH": f"{folder}:{env['PATH']}"}
    place = opened(env=spying)
    create_branch(place, "feat-1")
    (place.worktree / "a").write_text("1")
    push(place, "feat-1", commit_all(place, "work"), token=TOKEN)
    server.status = 403
    with pytest.raises(GitError) as refused:
        remote_branch(place, "feat-1", token=TOKEN)

    secrets = [TOKEN.encode(), next(header for header in server.seen if header).removeprefix("Basic ").encode()]
    assert "fetch" in seen.read_text()
    everything = [path.read_bytes() for path in (*state.root.rglob("*"), seen) if path.is_file()]
    assert not any(secret in content for secret in secrets for content in everything)
    assert TOKEN not in f"{refused.value!r}{refused.value}{Remote(place.origin, env, TOKEN)!r}"


def test_the_token_goes_to_its_host_alone(server: GitHttp, tmp_path: Path, env: dict[str, str]) -> None:
    """The token does not go to another host when the user's settings rewrite the URL."""
    (Path(env["HOME"]) / ".gitconfig").write_text(f'[url "{server.url}/"]\n\tinsteadOf = http://localhost:1/\n')
    (tmp_path / "m").mkdir()
    git(tmp_path / "m", "init", "-q", "--bare", ".")

    with pytest.raises(GitError):
        Remote("http://localhost:1/o/foo.js.git", env, TOKEN).refs(tmp_path / "m")

    assert {""} == set(server.seen)


def test_the_users_credential_helper_serves_without_a_token(
    opened: Opened, env: dict[str, str], tmp_path: Path
) -> None:
    """Git uses the user's credential helper only if the worker has no token."""
    helper, asked = tmp_path / "helper", tmp_path / "asked"
    write_program(helper, f"#!/bin/sh\necho $1 >> {asked}\necho username=x-access-token\necho password={TOKEN}\n")
    (Path(env["HOME"]) / ".gitconfig").write_text(f"[credential]\n\thelper = {helper}\n")
    opened()
    assert not asked.exists()

    opened("wo-2", token=None)
    assert "get" in asked.read_text()


@pytest.mark.parametrize("token", [None, "wrong"])
def test_refused_credentials_are_told_at_once(opened: Opened, env: dict[str, str], token: str | None) -> None:
    """Refused credentials cause an error without a prompt, and the remedy names the setting."""
    asking = {**env, "GIT_ASKPASS": "/bin/false", "SSH_ASKPASS": "/bin/false", "DISPLAY": ":0"}

    with pytest.raises(GitError, match="credentials") as refused:
        opened(env=asking, token=token)

    assert "SEPTET_GITHUB_TOKEN" in refused.value.remedy
    assert not refused.value.retryable


def test_an_account_that_may_not_push_is_told(opened: Opened, server: GitHttp) -> None:
    """A token that may only read opens the workspace, and the error of its push names the missing right."""
    server.readers = frozenset({"reader"})
    place = opened(token="reader")
    create_branch(place, "feat-1")
    (place.worktree / "a").write_text("1")

    with pytest.raises(GitError, match="denied access") as refused:
        push(place, "feat-1", commit_all(place, "work"), token="reader")

    assert "write" in refused.value.remedy


def test_a_repository_that_is_not_there_is_not_found(opened: Opened) -> None:
    """A repository that the server does not show is not found."""
    with pytest.raises(NotFoundError, match="none"):
        opened(name="none")


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_host_is_worth_another_try(opened: Opened, server: GitHttp, status: int) -> None:
    """A server error and a spent limit cause an error to retry."""
    server.status = status
    with pytest.raises(GitUnavailableError) as refused:
        opened()
    assert refused.value.retryable

    server.status = 0
    assert opened().worktree.is_dir()


def test_a_host_that_stays_silent_is_given_up(tmp_path: Path, env: dict[str, str]) -> None:
    """Git is killed if a remote takes too long, and the error says so."""
    slow = tmp_path / "bin" / "git"
    write_program(slow, "#!/bin/sh\nexec sleep 60\n")

    with pytest.raises(GitUnavailableError, match="did not answer"):
        Remote("/nowhere", {**env, "PATH": f"{slow.parent}:{env['PATH']}"}).run(
            tmp_path / "m", "fetch", timeout_seconds=0.2
        )


def test_a_host_that_accepts_and_never_answers_is_given_up(tmp_path: Path, env: dict[str, str]) -> None:
    """A silent HTTP server causes a network error that names the limit and the remote."""
    git(tmp_path, "init", "-q", "--bare", "m")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/o/r.git"
        with pytest.raises(GitUnavailableError, match=f"{url} could not be reached.*last 1 seconds") as given_up:
            Remote(url, env).run(tmp_path / "m", "ls-remote", "--", url, silent_seconds=1)
    assert "network" in given_up.value.remedy


@pytest.fixture
def ssh(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that makes an `ssh` which records its arguments and then runs the remote command here."""

    def make(name: str) -> Path:
        return write_program(
            tmp_path / "ssh-bin" / name,
            f'#!/bin/sh\necho "$0 $*" >> {tmp_path}/ssh-argv\n'
            'for last; do :; done\nunset GIT_DIR\nexec sh -c "$last"\n',
        )

    return make


def test_the_users_own_way_to_ssh_is_taken(
    ssh: Callable[[str], Path], origin: Origin, tmp_path: Path, env: dict[str, str]
) -> None:
    """The user's `core.sshCommand` runs in batch mode; `GIT_SSH_COMMAND` comes first and stays unchanged."""
    git(tmp_path, "init", "-q", "--bare", "m")
    configured, from_env = ssh("ssh-configured"), ssh("ssh-from-env")
    (Path(env["HOME"]) / ".gitconfig").write_text(f"[core]\n\tsshCommand = {configured} -i key\n")
    url = f"git@127.0.0.1:{origin.bare}"

    Remote(url, env).refs(tmp_path / "m")
    Remote(url, {**env, "GIT_SSH_COMMAND": str(from_env)}).refs(tmp_path / "m")

    calls = (tmp_path / "ssh-argv").read_text().splitlines()
    of_settings = [call for call in calls if call.startswith(f"{configured} -i key -oBatchMode=yes")]
    of_env = [call for call in calls if call.startswith(str(from_env)) and "BatchMode" not in call]
    assert of_settings
    assert of_env
    assert len(calls) == len(of_settings) + len(of_env)


@pytest.mark.parametrize(
    ("said", "error", "words"),
    [
        ("fatal: detected dubious ownership in repository at '/srv/r'", GitError, "safe.directory"),
        ("Host key verification failed.\nfatal: Could not read from remote repository.", GitError, "known_hosts"),
        (
            "git@h: Permission denied (publickey).\nfatal: the remote end hung up unexpectedly",
            GitError,
            "ssh agent",
        ),
        ("fatal: unable to access: SSL certificate problem: self signed", GitError, "http.sslCAInfo"),
        ("ERROR: Repository not found.\nfatal: Could not read from remote repository.", NotFoundError, "address"),
        ("fatal: unable to access: Could not resolve host: nohost.example", GitUnavailableError, "DNS"),
        ("fatal: unable to access: Failed to connect to h port 443", GitUnavailableError, "network"),
        ("ssh: connect to host h port 22: Connection refused", GitUnavailableError, "network"),
        ("fatal: the remote end hung up unexpectedly\nfatal: early EOF", GitUnavailableError, "network"),
        ("remote: fatal: Unable to create temporary file: Permission denied", GitError, "worker's user"),
        ("error: remote unpack failed: error No space left on device", RemoteFullError, "until there is room"),
        (
            "remote: hooks/pre-receive: fork: retry: Resource temporarily unavailable",
            RemoteFullError,
            "tries again",
        ),
        ("remote: something new", GitError, ""),
    ],
)
def test_gits_words_are_told_with_a_remedy(said: str, error: type[SeptetError], words: str) -> None:
    """Git's words become an error with a remedy, and the error's class says whether a retry can help."""
    failure = failure_of("fetch", "https://h/o/r", said.encode())

    assert error is type(failure)
    assert words in failure.remedy
    assert "https://h/o/r" in failure.message
    assert said.splitlines()[0] in failure.message


def test_words_of_git_that_may_quote_a_file_are_not_told() -> None:
    """The error omits a line of git that may quote a file, and keeps the remote's own words."""
    said = "fatal: unexpected line in .git/packed-refs: secret access denied\nremote: go away\nerror: odd secret\n"

    failure = failure_of("push", "https://h/o/r", said.encode())

    assert "secret" not in failure.message
    assert "remote: go away" in failure.message


def test_words_of_a_remote_are_cleaned_and_bounded() -> None:
    """The words of a remote lose escape sequences and keep at most 2000 characters."""
    shown = printable(b"a\x1b[31mred\rb\n\n\xff" + b"x" * 10_000)

    assert "\x1b" not in shown
    assert len(shown) == 2000
    assert printable(b"a\x1b[31mred\rb\n") == "a[31mred\nb"
