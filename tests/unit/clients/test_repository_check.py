from pathlib import Path

import pytest
from fakes.forges.github import GitHubFake
from fakes.forges.serving import serving_forge
from fakes.forges.state import Fault
from fakes.repositories import Origin, git, git_env, make_origin
from pydantic import SecretStr

from clients.cli.doctor.repository_check import repository_findings
from septet.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Return a worker's settings."""
    return Settings(state_dir=tmp_path / "state", environ=git_env(tmp_path / "home"))


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    """Return a repository."""
    return make_origin(tmp_path / "origins")


def test_settings_that_are_not_at_the_base_are_named(settings: Settings, origin: Origin, tmp_path: Path) -> None:
    """Only the settings at the base count: an uncommitted or different file is a warning."""
    origin.push({"README.md": "# app\n"})
    checkout = tmp_path / "checkout"
    git(tmp_path, "clone", "-q", str(origin.bare), str(checkout))
    (checkout / ".septet").mkdir()
    (checkout / ".septet/septet.toml").write_text("chekcs = []\n")
    found = list(repository_findings(str(checkout), settings))
    assert [status for status, _, _ in found] == ["warning", "ok"]
    assert found[0][1].endswith(
        "is not committed to main, so it is not used yet. "
        "It is wrong, too: .septet/septet.toml line 1: chekcs is not a setting."
    )
    assert found[0][2] == "Did you mean checks? Commit it to main once it is right."
    (checkout / ".septet/septet.toml").write_text("checks = [['true']]\n")
    found = list(repository_findings(str(checkout), settings))
    assert found[0][1].endswith("is not committed to main, so it is not used yet.")
    assert found[0][2] == "Commit it to main."
    git(checkout, "add", ".")
    git(checkout, "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-qm", "Settings")
    (checkout / ".septet/septet.toml").write_text("checks = []\n")
    assert "differs from that of main" in next(repository_findings(str(checkout), settings))[1]


def test_a_command_that_lacks_what_its_step_needs_is_warned_of(settings: Settings, origin: Origin) -> None:
    """The warning's remedy names the command's file."""
    origin.push({".septet/commands/implement_plan.md": "# implement_plan\n\nDo something.\n"})
    found = repository_findings(str(origin.bare), settings)
    assert any(status == "warning" and "implement_plan.md" in remedy for status, _, remedy in found)


def test_a_file_that_no_step_reads_is_warned_of(settings: Settings, origin: Origin) -> None:
    """A misspelt command's warning names the right one; a README is allowed."""
    files = {
        "implement_plans.md": "Do it: $1\n",
        "README.md": "Ours.\n",
        "notes.txt": "Ours.\n",
        "implement_plan.md": "Do it: $1\n",
    }
    origin.push({f".septet/commands/{name}": text for name, text in files.items()})
    warned = [
        (message, remedy)
        for status, message, remedy in repository_findings(str(origin.bare), settings)
        if status == "warning"
    ]
    assert [message.partition(" ")[0] for message, _ in warned] == [
        ".septet/commands/implement_plans.md", ".septet/commands/notes.txt",
    ]  # fmt: skip
    assert warned[0][1] == "Did you mean implement_plan.md?"
    assert "classify_issue" in warned[1][1]


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ({".septet/septet.toml": "chekcs = []\n"}, "chekcs"),
        ({".septet/commands/create_commit.md": "It is $9.\n"}, "$9"),
    ],
)
def test_what_would_stop_a_work_order_is_found(
    settings: Settings, origin: Origin, files: dict[str, str], named: str
) -> None:
    """A wrong setting or placeholder fails the check before a work order starts."""
    origin.push(dict(files))
    found = list(repository_findings(str(origin.bare), settings))
    assert found[-1][0] == "failed"
    assert named in found[-1][1]


def test_a_forge_whose_api_fails_is_told(settings: Settings, origin: Origin, tmp_path: Path) -> None:
    """A forge's API is checked besides git, both with the worker's key."""
    origin.push({"README.md": "# app\n"})
    bare = tmp_path / "hosted" / "o" / "foo.js.git"
    bare.parent.mkdir(parents=True)
    git(tmp_path, "clone", "-q", "--bare", str(origin.bare), str(bare))
    with serving_forge(GitHubFake(repositories=tmp_path / "hosted")) as forge:
        host = forge.url.removeprefix("http://")
        hosted = settings.model_copy(
            update={"github_hosts": (host,), "github_api_url": forge.url, "github_token": SecretStr(forge.token)}
        )
        repository = f"{forge.url}/{forge.project}.git"
        assert [status for status, _, _ in repository_findings(repository, hosted)] == ["ok"]
        forge.faults.append(Fault(status=503, times=9))
        (*_, (status, message, _)) = repository_findings(repository, hosted)
    assert (status, "503" in message) == ("failed", True)
