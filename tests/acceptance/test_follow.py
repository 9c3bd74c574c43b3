"""What an agent does on an opened pull request: checks, reviews, conflicts, and the pushes of others."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from fakes.forges.github import GitHubFake
from fakes.forges.serving import serving_forge
from fakes.forges.state import ForgeFake, PullState
from fakes.repositories import git, make_origin
from fakes.septet_command import Septet
from fakes.waiting import until

FILES = {"README.md": "# app\n", "app.py": "print('hello')\n"}


@dataclass
class Followed:
    """A machine whose work orders are on a forge, and that forge."""

    septet: Septet
    fake: ForgeFake

    def run(self, order_id: str, *options: str) -> PullState:
        """Have a work order done, and return its pull request."""
        issue = self.fake.add_issue("Say goodbye too", "The app greets only.")
        ended = self.septet(
            "run", "--repo", f"{self.fake.url}/{self.fake.project}.git", "--issue", str(issue), "--id", order_id,
            "--follow-pr", *options, "--wait", "--json",
        )  # fmt: skip
        assert ended.code == 0, ended
        return next(pull for pull in self.fake.pulls.values() if order_id in pull.body)

    def task(self, order_id: str) -> dict[str, Any]:
        """Return a work order as it is shown."""
        task: dict[str, Any] = self.septet("show", order_id, "--json").json["task"]
        return task

    def fail(self, pull: PullState, name: str, log: str) -> str:
        """Let a check of the head fail, and return that head."""
        head = self.fake.sha(pull)
        with self.fake.lock:
            self.fake.logs[name] = log
            self.fake.statuses[head] = [(name, "failure"), ("lint", "success")]
        return head

    def file(self, pull: PullState, path: str) -> str:
        """Return a file as the branch has it on the forge."""
        assert self.fake.repositories is not None
        return git(self.fake.repositories / f"{self.fake.project}.git", "show", f"{pull.head}:{path}")


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Followed]:
    """A machine with GitHub."""
    root = tmp_path_factory.mktemp("followed")
    made = make_origin(root / "made", "foo.git")
    made.push(FILES)
    bare = root / "hosted" / "o" / "foo.js.git"
    bare.parent.mkdir(parents=True)
    git(root, "clone", "-q", "--bare", str(made.bare), str(bare))
    with serving_forge(GitHubFake(repositories=root / "hosted", protected=frozenset({"main"}))) as fake:
        extra = {
            "SEPTET_GITHUB_HOSTS": fake.url.removeprefix("http://"),
            "SEPTET_GITHUB_API_URL": fake.url,
            "SEPTET_GITHUB_TOKEN": fake.token,
            "SEPTET_LOOK_SECONDS": "0.2",
        }
        septet = Septet(root / "machine", extra)
        with septet.up():
            yield Followed(septet, fake)
    assert fake.deviations == []


def test_a_failed_check_is_mended_once(followed: Followed) -> None:
    """The end of its log reaches the agent, whose commit is pushed and told; the merge ends it."""
    pull = followed.run("wo-check")
    head = followed.fail(pull, "tests", "E: no farewell. Write `bye` into `farewell.txt`.")

    until(lambda: followed.fake.sha(pull) != head)
    until(lambda: followed.task("wo-check")["stage"] == "review")
    assert followed.file(pull, "farewell.txt") == "bye"
    task = followed.task("wo-check")
    assert task["rework"]["round"] == 1
    assert [run for run in followed.septet.runs("wo-check") if "rework" in run] == ["8-rework-1"]
    assert [note.author for note in pull.notes] == ["septet"]
    assert f"<!-- septet answers: checks:{head} -->" in pull.notes[0].body
    (row,) = followed.septet("steps", "wo-check", "--json").json["rounds"]
    assert row == {
        "number": 1,
        "events": ["checks failed: tests"],
        "outcome": "done",
        "commit_sha": followed.fake.sha(pull),
    }
    shown = " ".join(followed.septet("steps", "wo-check").out.split())
    assert f"round 1 done {row['commit_sha'][:12]} answers checks failed: tests" in shown
    followed.fake.end_pull(pull.number, "merged")
    until(lambda: followed.task("wo-check")["stage"] == "done")
    assert "merged" in followed.task("wo-check")["rework"]["why"]
