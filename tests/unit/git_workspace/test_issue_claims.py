"""Claims of issues in a real repository."""

from pathlib import Path

import pytest
from fakes.repositories import Origin

from septet.git.commits.issue_claims import IssueClaims
from septet.git.engine.remote import Remote

FIRST, LATER = "2026-01-01T00:00:00.000Z", "2026-01-01T00:05:00.000Z"


@pytest.fixture
def claims(tmp_path: Path, env: dict[str, str], origin: Origin) -> IssueClaims:
    return IssueClaims(Remote(str(origin.bare), env), tmp_path / "scratch")


def test_who_has_taken_an_issue_has_it_when_it_asks_again(claims: IssueClaims) -> None:
    """A claim counts again for its own pass, even at a later time, and blocks another pass."""
    assert claims.claim(7, "wo-app-7", "pass-1", FIRST)
    assert claims.claim(7, "wo-app-7", "pass-1", LATER)
    assert not claims.claim(7, "wo-app-7", "pass-2", LATER)
    assert claims.claim(7, "wo-app-7", "pass-2", LATER, {"pass-1"})
    assert not claims.claim(7, "wo-app-7", "pass-1", LATER)
