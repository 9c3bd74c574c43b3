"""The metrics of requests to forges, and the error for an unreachable forge."""

import socket
from collections import Counter
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from fakes.forges.github import GitHubFake
from fakes.forges.serving import serving_forge

from septet.errors import ForgeUnavailableError, NotFoundError
from septet.forges.github.forge import GitHubForge, github_api
from septet.forges.http.api import HttpApi
from septet.forges.http.pauses import ForgePauses
from septet.telemetry.recorder import RECORDER


@pytest.fixture
def taken() -> Iterator[Counter[str]]:
    """Return the number of records of each metric and its labels during a test."""
    values: Counter[str] = Counter()
    RECORDER.send_to(lambda metric, _, labels: values.update([" ".join((metric.name, *labels.values()))]))
    yield values
    RECORDER.send_to(None)


def test_each_request_counts_by_host_and_outcome(taken: Counter[str]) -> None:
    """Each answer and each refusal counts once by host and class of status, with its duration."""
    with serving_forge(GitHubFake()) as github:
        host = urlsplit(github.url).hostname
        forge = GitHubForge(github.project, github_api(github.url, github.token))
        number = github.add_issue("Title", "Body.")
        forge.issue(number)
        with pytest.raises(NotFoundError):
            forge.issue(99)
    assert taken[f"septet_forge_requests {host} 2xx"] >= 1
    assert taken[f"septet_forge_requests {host} 4xx"] == 1
    answers = sum(count for name, count in taken.items() if name.startswith("septet_forge_requests "))
    assert taken[f"septet_forge_request_seconds {host}"] == answers


def test_a_forge_that_is_away_counts_as_unreached(taken: Counter[str]) -> None:
    """A forge that takes no connection counts as unreached, for GitHub's client and for the shared client."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        reason = f"^{url} could not be reached .*: Connection refused"
        with (
            pytest.raises(ForgeUnavailableError, match=reason),
            HttpApi("GitLab", url).asking("the version") as client,
        ):
            client.send("GET", "/version")
        with pytest.raises(ForgeUnavailableError, match=reason):
            GitHubForge("o/r", github_api(url)).issue(1)
    assert taken == {"septet_forge_requests 127.0.0.1 unreached": 2}


def test_a_pause_that_a_forge_requires_is_recorded(taken: Counter[str]) -> None:
    """The pause after a used-up limit is recorded for the alert about it."""
    ForgePauses().note("https://api.github.com", "t", 30.0)
    assert taken == {"septet_forge_pause_seconds api.github.com": 1}
