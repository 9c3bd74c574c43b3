"""The sample repository and its origin."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from septet.errors import GitError
from septet.git.engine.engine import Git
from septet.sample import FILES, Sample, make_sample


@pytest.fixture
def env(tmp_path: Path) -> Mapping[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}


@pytest.fixture
def sample(tmp_path: Path, env: Mapping[str, str]) -> Sample:
    return make_sample(tmp_path / "sample", lambda _origin, _title, _body: 1, env)


def test_the_origin_is_bare_and_the_same_everywhere(
    tmp_path: Path, sample: Sample, env: Mapping[str, str]
) -> None:
    """The origin is bare, and its only commit on `main` has the same id in each sample."""
    other = make_sample(tmp_path / "other" / "deep", lambda _origin, _title, _body: 1, env)
    commits = [Git(made.origin, env=env).text("rev-parse", "main") for made in (sample, other)]
    assert commits[0] == commits[1]
    git = Git(sample.origin, env=env)
    assert git.text("symbolic-ref", "HEAD") == "refs/heads/main"
    assert git.text("rev-parse", "--is-bare-repository") == "true"
    assert git.text("ls-tree", "-r", "--name-only", "main").splitlines() == sorted(FILES)


def test_a_second_sample_in_the_same_folder_changes_nothing_of_the_first(
    sample: Sample, env: Mapping[str, str]
) -> None:
    """A second sample in the same folder does not change the origin's branch."""
    before = Git(sample.origin, env=env).text("rev-parse", "main")
    make_sample(sample.origin.parent, lambda _origin, _title, _body: 2, env)
    assert Git(sample.origin, env=env).text("rev-parse", "main") == before


def test_a_folder_that_git_cannot_use_is_an_error(tmp_path: Path, env: Mapping[str, str]) -> None:
    """A folder that git cannot use causes an error, and no issue is added."""
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "shop.git").write_text("no folder")
    with pytest.raises(GitError):
        make_sample(tmp_path / "s", lambda _origin, _title, _body: pytest.fail("an issue was added"), env)
