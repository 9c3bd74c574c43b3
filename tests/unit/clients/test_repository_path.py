from pathlib import Path

import pytest

from clients.starting.repository_path import RepositoryReference, parse_reference


@pytest.mark.parametrize(
    ("text", "repository", "issue"),
    [
        ("o/r", "https://github.com/o/r", None),
        ("o/r#42", "https://github.com/o/r", 42),
        ("github.com/o/r/issues/42", "https://github.com/o/r", 42),
        ("https://github.com/o/r/issues/42#issuecomment-1", "https://github.com/o/r", 42),
        ("https://github.com/o/r/pull/7/files?w=1", "https://github.com/o/r", 7),
        ("https://gitlab.example/g/s/r/-/issues/3", "https://gitlab.example/g/s/r", 3),
        ("https://git.example/o/r/pulls/9", "https://git.example/o/r", 9),
        ("file:///srv/app.git/issues/1", "file:///srv/app.git", 1),
        ("git@github.com:o/r.git", "git@github.com:o/r.git", None),
        ("https://github.com/issues/r", "https://github.com/issues/r", None),
    ],
)
def test_a_repository_is_named_in_many_ways(text: str, repository: str, issue: int | None) -> None:
    """Addresses of browsers and of git, and `o/r`, name a repository, and some of them an issue."""
    assert parse_reference(text) == RepositoryReference(repository, issue)


def test_a_folder_that_is_here_goes_before_github(tmp_path: Path) -> None:
    """`o/r` is a folder if it exists here; a path that begins with `./` is always a folder."""
    (tmp_path / "o" / "r").mkdir(parents=True)
    assert parse_reference("o/r", folder=tmp_path).repository == str(tmp_path / "o" / "r")
    assert parse_reference("./x/y", folder=tmp_path).repository == str(tmp_path / "x" / "y")
    assert parse_reference("app", folder=tmp_path).repository == str(tmp_path / "app")
