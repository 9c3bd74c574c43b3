"""After any failure a work order can return to any step, and ends in one pull request with the work."""

import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from fakes.forges.github import GitHubFake
from fakes.forges.serving import serving_forge
from fakes.forges.state import Fault
from fakes.repositories import Origin, git, make_origin
from fakes.septet_command import Running, Septet
from fakes.shared_server import Host
from fakes.shell_programs import write_program
from fakes.small_disk import small_disk
from fakes.waiting import until

from septet.contracts.names import Step

pytestmark = [pytest.mark.world, pytest.mark.law, pytest.mark.timeout(900)]

PROJECT: Final = "o/foo.js"
WORK: Final = {"two.txt": "two\n"}
_HOOK: Final = """\
#!/bin/sh
# Refuses commits as forges do: each is looked at that the repository does not have yet.
while read -r old new ref; do
    for commit in $(git rev-list "$new" --not --all); do
        {test} || {{ echo "{words}" >&2; exit 1; }}
    done
done
"""
_REFUSALS: Final = {
    "dco": ("git log -1 --format=%B $commit | grep -q ^Signed-off-by:", "Commit must contain a DCO signoff"),
    "signing": ("git cat-file commit $commit | grep -q ^gpgsig", "GH013: Commits must have verified signatures."),
    "secret": ("! git grep -q acme_live_ $commit", "GH013: Push cannot contain secrets"),
    "size": ("! git ls-tree -rl $commit | grep -q ' [0-9]\\{6,\\}\t'", "GH001: Large files detected."),
}
"""The test that a commit must pass, and the forge's words if it does not."""
_SIGNER: Final = (
    "#!/bin/sh\ncat >/dev/null\necho '[GNUPG:] SIG_CREATED ' >&2\necho '-----BEGIN PGP SIGNATURE-----'\n"
)
_BAD_EDITS: Final = {"secret": {"key.txt": "acme_live_4f\n"}, "size": {"big.txt": "x" * 200_000}}
KINDS: Final = ("dco", "signing", "secret", "size", "422", "cancel", "host lost", "disk full")


@dataclass
class World:
    """A repository on a forge, and one work order of a host that shares a server with others."""

    served: Septet
    root: Path
    kind: str
    fake: GitHubFake
    origin: Origin
    stack: ExitStack
    order: str
    worker: Running | None = None
    gone: str = ""
    host: Host = field(init=False)
    free: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        """Make the host beside the server."""
        self.host = self._host("first")

    @property
    def septet(self) -> Septet:
        return self.host.septet

    def fail(self) -> dict[str, Any]:
        """Let the work order end without a pull request, or on another host; return it after that."""
        self._write_hook()
        first = {**WORK, "first.txt": "first\n", **_BAD_EDITS.get(self.kind, {})}
        steps: dict[str, Any] = {"implement_plan": [{"edits": first}, {"edits": WORK}]}
        messages = ["bug: the first", "bug: the second"]
        steps["create_commit"] = [{"answer": {"commit_message": message}} for message in messages]
        if self.kind in {"cancel", "host lost", "disk full"}:
            steps["create_pull_request"] = [{"wait_for": str(self.root / "go on")}, {}]
        self.septet.scenario(self.order, {"steps": steps})
        if self.kind == "422":
            self.fake.faults.append(Fault(status=422, text="Validation Failed", method="POST", path="/pulls"))
        self._start_worker()
        about = {"title": "Add two", "description": "It is missing."}
        self.host.start(self.origin, self.order, repository=f"{self.fake.url}/{PROJECT}.git", **about)
        return {"cancel": self._cancel, "host lost": self._lose_host, "disk full": self._fill_disk}.get(
            self.kind, self.closed
        )()

    def mend(self) -> None:
        """Change the machine as the remedy says; the caller then retries."""
        if self.kind == "signing":
            signer = write_program(self.root / "signer", _SIGNER)
            (self.septet.root / "home" / ".gitconfig").write_text(f"[gpg]\n\tprogram = {signer}\n")
            self._restart_worker(SEPTET_SIGN_COMMITS="true")
        if self.kind == "dco":
            self._restart_worker(SEPTET_SIGN_OFF="true")
        self.free()

    def _restart_worker(self, **variables: str) -> None:
        assert self.worker is not None
        self.worker.end()
        self._start_worker(**variables)

    def retry(self, *words: str) -> dict[str, Any]:
        ended = self.septet("retry", self.order, *words, "--json")
        assert ended.code == 0, ended
        return self.closed()

    def closed(self, seconds: float = 150.0) -> dict[str, Any]:
        return self.served.closed(self.order, seconds)

    def expect_one_pull_request(self, task: dict[str, Any]) -> None:
        assert task["status"] == "completed", task["error"]
        (pull,) = self.fake.pulls.values()
        assert (pull.state, pull.head) == ("open", task["branch_name"])
        assert self.origin.sha(pull.head) == task["commit_sha"]
        assert git(self.origin.bare, "show", f"{pull.head}:two.txt") == "two"

    def expect_nothing_lost(self) -> None:
        rescues = self.septet("rescue", "list", self.order, "--json").json["rescues"]
        found = []
        for number, rescue in enumerate(rescues):
            to = self.root / f"back-{number}"
            restored = self.septet("rescue", "restore", rescue["snapshot"], "--to", to, "--json")
            assert restored.code == 0, restored
            found.append((to / "first.txt").exists())
        assert any(found), rescues

    def _write_hook(self) -> None:
        if self.kind not in _REFUSALS:
            return
        test, words = _REFUSALS[self.kind]
        write_program(self.origin.bare / "hooks" / "pre-receive", _HOOK.format(test=test, words=words))

    def _host(self, name: str) -> Host:
        host = Host.beside(self.served, self.root / name)
        host.queue = self.order
        extra = {**host.septet.extra, **self.fake.settings, "SEPTET_TASK_QUEUE": self.order}
        if self.kind == "host lost":
            extra["SEPTET_CHECKPOINT_REMOTE"] = str(self.root / "checkpoints")
        host.septet.extra = extra
        return host

    def _start_worker(self, **extra: str) -> None:
        if self.kind == "disk full":
            disk = self.stack.enter_context(small_disk(self.septet.state, mib=48, inodes=20_000))
            self.fill, self.free = disk.fill, disk.free
            extra["SEPTET_DISK_WAIT_SECONDS"] = "1"
        self.worker = self.stack.enter_context(self.host.worker(**extra))

    def _comes_to_the_end(self) -> None:
        """Wait until the last step's agent works, so that its next start is the second."""
        said = self.septet.state / "runs" / self.order / "7-create_pull_request-1" / "stdout.jsonl"
        until(lambda: said.exists() and "I begin" in said.read_text(encoding="utf-8"))

    def _cancel(self) -> dict[str, Any]:
        self._comes_to_the_end()
        return self.septet.cancelled(self.order)

    def _lose_host(self) -> dict[str, Any]:
        self._comes_to_the_end()
        assert self.worker is not None
        self.gone = str(self.worker.ready["host"])
        self.worker.kill()
        self.septet.end_all()
        shutil.rmtree(self.septet.state)
        self.host = self._host("second")
        self.septet.scenario(self.order, {"steps": {"implement_plan": {"edits": WORK}}})
        self._start_worker()
        assert self.septet("host-gone", self.gone, "--json").code == 0
        return self.closed()

    def _fill_disk(self) -> dict[str, Any]:
        self._comes_to_the_end()
        self.fill()
        (self.root / "go on").touch()
        return self.closed()


@contextmanager
def world(served: Septet, root: Path, kind: str, order: str) -> Iterator[World]:
    origin = make_origin(root / "o", "foo.js.git")
    origin.push({"README.md": "# foo\n"})
    with ExitStack() as stack:
        fake = stack.enter_context(serving_forge(GitHubFake(repositories=root, project=PROJECT)))
        yield World(served, root, kind, fake, origin, stack, order)


HELPS_FROM = {"dco": Step.CREATE_COMMIT, "signing": Step.CREATE_COMMIT, "secret": Step.IMPLEMENT_PLAN}
HELPS_FROM["size"] = Step.IMPLEMENT_PLAN
"""The last step from which a retry makes the refused part anew; for a kind without an entry any step does."""
CELLS = [(kind, step) for kind in KINDS for step in Step]
if os.environ.get("SEPTET_WORLD") == "sample":
    CELLS = [("dco", Step.CREATE_COMMIT), ("secret", Step.CREATE_PULL_REQUEST), ("422", Step.GENERATE_BRANCH)]


def _cell(kind: str, step: Step) -> Any:
    marks = [pytest.mark.small_disk] if kind == "disk full" else []
    return pytest.param(kind, step, id=f"{kind.replace(' ', '_')}-{step.value}", marks=marks)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Septet]:
    septet = Septet(tmp_path_factory.mktemp("served"))
    with septet.up():
        yield septet


@pytest.mark.parametrize(("kind", "step"), [_cell(*cell) for cell in CELLS])
def test_it_goes_back_to_a_step(served: Septet, tmp_path: Path, kind: str, step: Step) -> None:
    """The retry opens the one pull request, or fails with a remedy that then opens it."""
    order = f"wo-{kind.replace(' ', '-')}-{step.number}"
    with world(served, tmp_path, kind, order) as there:
        failed = there.fail()
        if kind != "host lost":
            assert failed["status"] == ("cancelled" if kind == "cancel" else "failed"), failed
        there.mend()
        task = there.retry("--from", step.value)
        if step.number > HELPS_FROM.get(kind, step).number:
            assert task["status"] == "failed", task
            (remedy,) = re.findall(r"`septet retry ([^`]+)`", task["error"]["remedy"])
            _, *words = shlex.split(remedy)
            task = there.retry(*words)
        there.expect_one_pull_request(task)
        if step.number <= Step.IMPLEMENT_PLAN.number and kind != "host lost":
            there.expect_nothing_lost()
