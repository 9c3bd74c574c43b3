"""All workers of a host share a forge's spent limit: at most one request of the host meets the limit."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fakes.forges.connecting import settings_for
from fakes.forges.github import GitHubFake
from fakes.forges.serving import serving_forge
from fakes.forges.state import Fault, ForgeFake

from septet.errors import ForgeUnavailableError
from septet.forges.http.pauses import ForgePauses

ROOT = Path(__file__).parents[3]
API = "https://api.example"
WORKER = """
import json, sys
from septet.errors import ForgeUnavailableError
from septet.forges.choose import forge_for
from septet.forges.http.pauses import PAUSES
from septet.git.engine.address import parse_address
from septet.settings import Settings
from septet.state import StateDir
settings = Settings.model_validate(json.loads(sys.argv[1]))
PAUSES.folder = StateDir(settings.state_dir).forge_pauses
for _ in range(3):
    try:
        forge_for(parse_address(sys.argv[2]), settings).issue(1)
        print("read")
    except ForgeUnavailableError as error:
        print(round(error.retry_after_seconds))
"""


def test_workers_of_two_hosts_lose_a_request_each(tmp_path: Path) -> None:
    """Three workers on two hosts make three requests each, and one request of each host meets the limit."""
    with serving_forge(GitHubFake()) as fake:
        fake.add_issue("Title")
        fake.faults.append(Fault(status=429, headers={"Retry-After": "600"}, text="slow down", times=100))
        told = [ask(fake, tmp_path / host) for host in ("host-1", "host-2", "host-1")]

    assert len(fake.asked) == 2
    assert all(500 < int(pause) <= 600 for pauses in told for pause in pauses)
    kept = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(kept) == 2
    assert not any(fake.token in text for text in kept)


def ask(fake: ForgeFake, state: Path) -> list[str]:
    """Run a worker that makes three requests, and return the result of each request."""
    known = settings_for(fake, state)
    done = subprocess.run(
        [sys.executable, "-c", WORKER, json.dumps(known), f"{fake.url}/{fake.project}.git"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_keys_of_one_installation_share_its_limit() -> None:
    """The keys of one installation share a limit; other keys and other APIs are not limited."""
    pauses = ForgePauses()
    for token in ("first", "second"):
        pauses.count_for(token, "installation 7 of app 1")
    pauses.note(API, "first", 60)
    with pytest.raises(ForgeUnavailableError):
        pauses.check(API, "second", "an issue")
    pauses.check(API, "third", "an issue")
    pauses.check("https://other.example", "second", "an issue")


def test_a_clock_that_was_set_back_stops_nobody(tmp_path: Path) -> None:
    """The client ignores a damaged file, and a pause that is longer than any forge requires."""
    folder = tmp_path / "pauses"
    ForgePauses(folder).note(API, "key", 60)
    (path,) = folder.iterdir()
    for text in (str(time.time() + 90_000), "no number"):
        path.write_text(text)
        ForgePauses(folder).check(API, "key", "an issue")


def test_a_pause_for_which_no_time_is_named_grows() -> None:
    """A pause without a time is a minute and doubles with each refusal soon after it, not during it."""
    now = [0.0]
    pauses = ForgePauses(clock=lambda: 1e9 + now[0])

    def refused_after(seconds: float) -> float:
        now[0] += seconds
        return pauses.note_unnamed(API, "first")

    assert [refused_after(each) for each in (0, 20, 41, 121, 241)] == [60, 40, 120, 240, 480]
    assert refused_after(3600) == 60
    assert pauses.note_unnamed(API, "second") == 60
    with pytest.raises(ForgeUnavailableError):
        pauses.check(API, "first", "an issue")
