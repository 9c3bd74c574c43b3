"""Mistakes that are reported before an agent is paid: an invisible program, a missing login, a missing forge key."""

import json
import re

import pytest
from fakes.guest_paths import guest_paths_variable
from fakes.repositories import Origin
from fakes.septet_command import ONCE, Septet
from fakes.shared_server import Host, until_agents_are_announced
from fakes.shell_programs import write_program

pytestmark = pytest.mark.faces

_GUESTS = guest_paths_variable()
"""Guests see this project and its Python, and no file of the machine's home."""


@pytest.mark.needs("bubblewrap")
def test_a_check_of_the_users_home_is_told_with_its_setting_before_an_agent_starts(
    host: Host, origin: Origin
) -> None:
    """`doctor --repo` names the same setting; with the setting a retry completes the work order."""
    tool = write_program(host.septet.root / "home" / "bin" / "mytool", "#!/bin/sh\ngrep -q hello app.py\n")
    origin.push({".septet/septet.toml": 'checks = ["mytool"]\n'})
    path = f"{tool.parent}:{host.septet.env['PATH']}"
    host.septet.extra = {**host.septet.extra, **_GUESTS, "PATH": path}
    with host.worker():
        order = host.start(origin, "wo-own-tool")
        error = host.septet.closed(order)["error"]
    assert error["type"] == "Setup"
    assert f"Check `mytool` is {tool} on this machine, and agents and checks do not see that." in error["message"]
    assert not (host.septet.state / "runs" / order).exists()
    doctor = host.septet("doctor", "--repo", origin.bare, "--json").json["checks"]
    failed = [each for each in doctor if each["status"] == "failed"]
    (told,) = [each["remedy"] for each in failed if "mytool" in each["message"]]
    assert error["remedy"].startswith(f"{told} Then continue with `septet retry {order}`; if you have changed")
    found = re.search(r'SEPTET_GUEST_PATHS="([^"]+)"', error["remedy"])
    assert found is not None
    with host.worker(SEPTET_GUEST_PATHS=found[1]):
        assert host.septet("retry", order, "--json").code == 0
        assert host.septet.closed(order)["status"] == "completed"
    assert host.septet.runs(order) == ONCE


async def test_a_forge_without_a_key_is_refused_at_the_door(served: Septet) -> None:
    """A work order that could not push is refused; the remedy names the key and the place to set it."""
    await until_agents_are_announced(served)
    told = served("run", "https://github.com/o/r/issues/42", "--id", "wo-no-key", "--json")
    assert told.code == 2
    assert told.error["message"] == (
        "repository: the worker has no key for github.com, so it could not push there or open a pull request."
    )
    assert "GITHUB_TOKEN" in told.error["remedy"]
    assert "where the worker (`septet up`) runs" in told.error["remedy"]
    assert served("show", "wo-no-key", "--json").code == 3
    unknown = served("run", "https://git.example/o/r/issues/42", "--json").error
    assert "add git.example to one of SEPTET_GITHUB_HOSTS" in unknown["remedy"]


def test_hosts_that_are_set_already_stay_in_the_line_that_init_prints(host: Host, origin: Origin) -> None:
    """The printed line keeps the hosts that are set."""
    lock = {"packages": {"node_modules/a": {"resolved": "https://npm.example/a.tgz"}}}
    origin.push({"package.json": "{}", "package-lock.json": json.dumps(lock)})
    host.septet.extra = {**host.septet.extra, "SEPTET_SETUP_HOSTS": "own.example:8443"}
    printed = host.septet("init", "--repo", origin.checkout).out
    line = next(line for line in printed.splitlines() if "SEPTET_SETUP_HOSTS=" in line)
    assert line.strip().startswith("SEPTET_SETUP_HOSTS=own.example:8443,npm.example:443")


def test_first_settings_are_written_once(host: Host, origin: Origin) -> None:
    """The settings name the repository's tests, doctor accepts them, and a second call changes nothing."""
    origin.push({"setup.py": "", "tests/test_app.py": ""})
    written = host.septet("init", "--repo", origin.checkout, "--json").json
    settings = origin.checkout / ".septet" / "septet.toml"
    assert (written["path"], written["checks"]) == (
        str(settings),
        [["python3", "-m", "unittest", "discover", "-s", "tests"]],
    )
    content = settings.read_text(encoding="utf-8")
    refused = host.septet("init", "--repo", origin.checkout)
    assert (refused.code, settings.read_text(encoding="utf-8")) == (5, content)
    assert f"{settings} is there already." in refused.err
    origin.push({".septet/septet.toml": content})
    checks = host.septet("doctor", "--repo", origin.bare, "--json").json["checks"]
    assert [each["status"] for each in checks if each["name"] == "repository"] == ["ok"], checks
