"""A worker dies as it keeps the plan alone: the planner's other files are rescued once and reach no implementor."""

import os
import shutil
from pathlib import Path

import pytest
from fakes.repositories import Origin, git
from fakes.septet_command import ONCE
from fakes.shared_server import Host
from fakes.shell_programs import write_program
from fakes.waiting import until

pytestmark = [pytest.mark.recovery, pytest.mark.law]

ORDER = "wo-plan-return"
PLAN = "specs/plan.md"
LEFT = {"AGENTS.md": "obey\n", "CLAUDE.local.md": "obey\n", "README.md": "# other\n", "tools/run.sh": "obey\n"}
_GIT = """\
#!/bin/sh
# git, which stops once: at its first call where a rescue has its name and the worktree is so, until the test lets it fail.
if (
    [ -e "{armed}" ] && cd "{worktree}" && {is_so} && ls "{vaults}"/*/refs/septet/{order}/*-rescue
) > /dev/null 2>&1
then
    mv "{armed}" "{stopped}"
    while [ -e "{stopped}" ]; do sleep 0.05; done
    exit 1
fi
exec {git} "$@"
"""


@pytest.mark.parametrize(
    "is_so",
    ["[ -e AGENTS.md ]", "[ ! -e README.md ]", "[ -e README.md ] && [ ! -e AGENTS.md ]"],
    ids=["between", "midst", "after"],
)
def test_a_kill_around_the_return_loses_nothing_and_rescues_nothing_twice(
    host: Host, origin: Origin, tmp_path: Path, is_so: str
) -> None:
    """The worker is killed before the return, with half of the files put back, and before it notes the rescue."""
    origin.push({".gitignore": "CLAUDE.local.md\n"})
    armed, stopped = tmp_path / "armed", tmp_path / "stopped"
    path = _stopping_git(tmp_path / "bin", host, is_so, armed, stopped)
    answer = {"plan_path": PLAN, "summary": "A plan."}
    host.scenario(
        ORDER,
        build_plan={"edits": {PLAN: "# Say goodbye\n", **LEFT}, "answer": answer},
        find_plan_file={"answer": {"plan_path": PLAN}},
    )
    seen = host.septet.look(ORDER)
    with host.worker(PATH=path) as worker:
        host.start(origin, ORDER)
        until(stopped.exists)
        worker.kill()
        stopped.unlink()
        with host.worker():
            task = host.septet.closed(ORDER)
    assert (task["status"], task["steps"][2]["recovered_by"], host.septet.runs(ORDER)) == (
        "completed",
        "read",
        ONCE,
    )

    (rescue,) = host.rescues(ORDER)
    assert [each["snapshot"] for each in task["rescues"]] == [rescue["snapshot"]]
    assert ", ".join(LEFT) in rescue["reason"]
    back = tmp_path / "back"
    assert host.septet("rescue", "restore", rescue["snapshot"], "--to", str(back)).code == 0
    assert {name: (back / name).read_text(encoding="utf-8") for name in LEFT} == LEFT

    implementor = seen()[4]
    assert [line for line in implementor.split("\n") if line.startswith(("??", " M"))] == [f"?? {PLAN}"]
    assert not (host.worktree(ORDER) / "CLAUDE.local.md").exists()
    changed = git(origin.bare, "diff", "--name-only", f"main..{task['branch_name']}").split()
    assert PLAN in changed
    assert not set(LEFT) & set(changed)


def _stopping_git(folder: Path, host: Host, is_so: str, armed: Path, stopped: Path) -> str:
    """Write the stopping git into a folder, and return a PATH that begins with this folder."""
    program = shutil.which("git")
    assert program
    places = {"vaults": host.septet.state / "vaults", "worktree": host.worktree(ORDER), "order": ORDER}
    text = _GIT.format(armed=armed, stopped=stopped, is_so=is_so, git=program, **places)
    write_program(folder / "git", text)
    armed.touch()
    return f"{folder}{os.pathsep}{os.environ['PATH']}"
