"""Partitions, and ends that no worker sees: one writer in a worktree, and none that nobody asked for."""

from fakes.repositories import Origin, git
from fakes.septet_command import until
from fakes.shared_server import Host, stopped

from septet.contracts.names import Step

ONCE = [f"{step.number}-{step.value}-1" for step in Step]


def test_a_worker_that_was_stopped_for_too_long_wakes_and_commits_nothing(host: Host, origin: Origin) -> None:
    """Its step goes to the next worker of the host, with the same agent; its own late result, and commit, are refused."""
    go = host.scenario("wo-split", create_commit={"waits": True})
    with host.worker() as first:
        host.start(origin, "wo-split")
        host.run_of("wo-split", "6-create_commit-1")
        with host.worker():
            worktree = host.worktree("wo-split")
            with stopped(first):
                began = len(host.attempts("wo-split"))
                until(lambda: len(host.attempts("wo-split")) > began)
                head = git(worktree, "rev-parse", "HEAD")
                go.touch()
                until(lambda: git(worktree, "rev-parse", "HEAD") != head)
                (worktree / "late.txt").write_text("written after the commit\n", encoding="utf-8")
            task = host.septet.closed("wo-split")
            until(lambda: any("attempt_superseded" in line for line in first.errors))
    assert task["status"] == "completed"
    assert host.septet.runs("wo-split") == ONCE
    assert origin.sha(task["branch_name"]) == task["commit_sha"]
    assert git(origin.bare, "rev-list", "--count", f"main..{task['branch_name']}") == "1"
    assert "late.txt" not in git(origin.bare, "ls-tree", "-r", "--name-only", task["branch_name"])


def test_a_terminated_work_order_ends_its_agent(host: Host, origin: Origin) -> None:
    """Terminated while its agent works, it has no agent and a rescue a moment later, and no step follows."""
    host.scenario("wo-terminated", classify_issue={"waits": True, "edits": {"half.txt": "half done\n"}})
    with host.worker():
        host.start(origin, "wo-terminated")
        run = host.run_of("wo-terminated", "1-classify_issue-1")
        until((host.worktree("wo-terminated") / "half.txt").exists)
        host.temporal("workflow", "terminate", "--workflow-id", "wo-terminated")
        until(lambda: not host.at_work("wo-terminated"), 10)
        until(lambda: host.rescues("wo-terminated"))
    assert (run / "exit.json").exists()
    assert host.septet.runs("wo-terminated") == ONCE[:1]


def test_a_worker_that_starts_ends_the_agent_of_a_work_order_that_was_terminated_meanwhile(
    host: Host, origin: Origin
) -> None:
    """Terminated while no worker lived, a work order has its agent until a worker of its host starts."""
    host.scenario("wo-stray", classify_issue={"waits": True, "edits": {"half.txt": "half done\n"}})
    with host.worker() as first:
        host.start(origin, "wo-stray")
        host.run_of("wo-stray", "1-classify_issue-1")
        until((host.worktree("wo-stray") / "half.txt").exists)
        first.kill()
        host.temporal("workflow", "terminate", "--workflow-id", "wo-stray")
        assert host.at_work("wo-stray")
        with host.worker():
            until(lambda: not host.at_work("wo-stray"), 10)
            (rescue,) = until(lambda: host.rescues("wo-stray"))
    assert "closed" in rescue["reason"]


def test_a_work_order_that_was_cancelled_while_no_worker_lived_ends_with_the_next_one(
    host: Host, origin: Origin
) -> None:
    """Within ten seconds of the worker's start there is no agent; the work order is cancelled and names its rescue."""
    host.scenario("wo-later", classify_issue={"waits": True, "edits": {"half.txt": "half done\n"}})
    with host.worker() as first:
        host.start(origin, "wo-later", timeouts={})
        host.run_of("wo-later", "1-classify_issue-1")
        until((host.worktree("wo-later") / "half.txt").exists)
        first.kill()
        host.temporal("workflow", "cancel", "--workflow-id", "wo-later")
        with host.worker():
            until(lambda: not host.at_work("wo-later"), 10)
            task = host.septet.closed("wo-later")
            shown = host.septet("show", "wo-later", "--json").json["task"]
    assert (task["status"], task["stage"]) == ("cancelled", "done")
    assert [row["snapshot"] for row in shown["rescues"]] == [row["snapshot"] for row in host.rescues("wo-later")]
    assert shown["steps"][-1]["step"] == "classify_issue"
    assert shown["steps"][-1]["rescue"]
