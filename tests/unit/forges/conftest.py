"""The fixtures that tests of forges share."""

from collections.abc import Iterator

import pytest
from fakes.forges.connecting import FAKES
from fakes.forges.serving import serving_forge
from fakes.forges.state import ForgeFake

from septet.forges.http.pauses import PAUSES


@pytest.fixture(autouse=True)
def no_pause() -> None:
    """Forget the pauses of other tests: a fake of this test may have the address of an earlier fake."""
    PAUSES.clear()
    PAUSES.folder = None


@pytest.fixture(params=FAKES, ids=lambda fake: fake.name)
def fake(request: pytest.FixtureRequest) -> Iterator[ForgeFake]:
    """Return a forge whose repository and whose fork each have a branch beside `main`; `ada` may push, `eve` may not."""
    branches = {"main": "a" * 40, "feat-1": "b" * 40}
    with serving_forge(
        request.param(heads={"o/foo.js": branches, "me/foo.js": {"feat-2": "c" * 40}, "you/foo.js": {}})
    ) as fake:
        yield fake
    assert fake.deviations == []  # clients and fake use only published parts of the API
