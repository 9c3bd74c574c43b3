"""What all tests of forges share."""

import pytest

from septet.forges.http.pauses import PAUSES


@pytest.fixture(autouse=True)
def no_pause() -> None:
    """Forget what forges of other tests wanted: this one's may answer at an address of theirs."""
    PAUSES.clear()
    PAUSES.folder = None
