import pytest

from clients.cli.terminal.serving import page_link_lines

LINK = "http://septet-1f.localhost:8888/?token=2e"


@pytest.mark.parametrize(("platform", "count"), [("linux", 1), ("darwin", 2)])
def test_where_a_browser_may_not_find_the_page_its_other_name_is_told(platform: str, count: int) -> None:
    """The link is the first line; on a Mac a second line helps users of Safari."""
    first, *hints = page_link_lines(LINK, platform)
    assert first == f"Open in your browser: {LINK}"
    assert ["127.0.0.1" in hint for hint in hints] == [True] * (count - 1)
