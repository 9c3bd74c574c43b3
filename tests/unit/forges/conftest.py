"""The fixture that all tests of forges share."""

import pytest

from septet.forges.http.pauses import PAUSES


@pytest.fixture(autouse=True)
def no_pause() -> None:
    """Forget the pauses of other tests: a fake of this test may have the address of an earlier fake."""
    PAUSES.clear()
    PAUSES.folder = None
