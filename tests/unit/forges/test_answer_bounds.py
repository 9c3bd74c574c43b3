"""Bounds on the answers of every forge and tracker, against servers that send too much or too slowly."""

import tracemalloc
from collections.abc import Callable

import pytest
from fakes.forges.flooding import LOG_END, MIB, Flood, FloodingForge, flooding_forge

from septet.errors import ForgeUnavailableError, TrackerUnavailableError
from septet.forges.answers import Foreign
from septet.forges.gitea.forge import GiteaForge, gitea_api
from septet.forges.github.forge import GitHubForge, github_api
from septet.forges.gitlab.forge import GitLabForge, gitlab_api
from septet.forges.http.api import HttpApi
from septet.forges.limits import LOG_LIMIT, LOG_TAIL_BYTES
from septet.forges.values import CommitCheck
from septet.trackers.linear.api import LinearApi

Ask = Callable[[str], object]
MOST_MEMORY = 96 * MIB


def _ask_linear(url: str) -> object:
    return LinearApi("key", url).ask("an issue", "query { viewer { id } }", {}, Foreign)


def _ask_app(url: str) -> object:
    with HttpApi("GitHub", url).asking("an installation") as client:
        return client.get(dict[str, object], "")


ASKS: dict[str, Ask] = {
    "github": lambda url: GitHubForge("o/r", github_api(url)).issue(1),
    "gitlab": lambda url: GitLabForge("o/r", gitlab_api(url)).issue(1),
    "gitea": lambda url: GiteaForge("o/r", gitea_api(url)).issue(1),
    "github-list": lambda url: GitHubForge("o/r", github_api(url)).open_issues("septet"),
    "app": _ask_app,
    "linear": _ask_linear,
}


@pytest.mark.parametrize("name", ASKS)
@pytest.mark.parametrize("flood", ["bomb", "endless", "packed"])
def test_an_answer_takes_no_more_memory_than_its_bound(name: str, flood: Flood) -> None:
    """The client refuses a gzip bomb, an endless body and an unknown packing before they fill its memory."""
    with flooding_forge(flood) as forge:
        tracemalloc.start()
        try:
            with pytest.raises((ForgeUnavailableError, TrackerUnavailableError)) as refused:
                ASKS[name](forge.url)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < MOST_MEMORY
        assert forge.sent_bytes < MOST_MEMORY
    words = "packed as" if flood == "packed" else "more than 16 MiB"
    assert words in refused.value.message


@pytest.mark.parametrize("flood", ["drip", "head"])
def test_an_answer_that_drips_ends_with_the_time(flood: Flood) -> None:
    """A request ends after its time limit even if each piece of the head or body arrives in time."""
    with flooding_forge(flood) as forge:
        for api in (github_api(forge.url), gitea_api(forge.url)):
            with (
                pytest.raises(ForgeUnavailableError, match="no whole answer within 1 s"),
                api.asking("GET /", within_seconds=1) as client,
            ):
                client.send("GET", "/")


def _github_log(forge: FloodingForge) -> str:
    return (
        GitHubForge("o/r", github_api(forge.url)).conversation(1).check_log(CommitCheck("test", "failure", id="1"))
    )


def _gitlab_log(forge: FloodingForge) -> str:
    return (
        GitLabForge("o/r", gitlab_api(forge.url)).conversation(1).check_log(CommitCheck("test", "failure", id="1"))
    )


@pytest.mark.parametrize("ask", [_github_log, _gitlab_log])
def test_of_a_long_log_the_end_is_read_and_nothing_else_kept(ask: Callable[[FloodingForge], str]) -> None:
    """The client keeps only the end of a log of 100 MiB in memory."""
    with flooding_forge("log") as forge:
        tracemalloc.start()
        try:
            log = ask(forge)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert log.endswith(LOG_END.decode())
        assert len(log) == LOG_LIMIT
        assert peak < 32 * MIB
        assert forge.sent_bytes > 100 * MIB
        assert forge.ranges in ([None], [f"bytes=-{LOG_TAIL_BYTES}"])


def test_a_log_without_an_end_is_read_up_to_its_bound() -> None:
    """The client stops reading an endless log after 256 MiB, and the text of the log says so."""
    with flooding_forge("endless") as forge:
        assert "The log goes on" in _github_log(forge)
        assert forge.sent_bytes < 300 * MIB
