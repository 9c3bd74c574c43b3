"""The repository's checks on the base commit: run once on a host, in a copy, and reported before work is paid."""

import os

import pytest
from fakes.processes import processes_with
from fakes.step_lab import StepLab, step_lab
from fakes.waiting import wait_until

from clients.disk.workspace_view import fails_on_base
from septet.base_checks import BaseChecks, result_of
from septet.contracts.names import Step, Verdict
from septet.system.durable import take_lock

pytestmark = pytest.mark.needs("bubblewrap")

_CHECK = 'checks = ["sh check.sh"]\n'
_REFUSE = f'on_failing_base = "refuse"\n{_CHECK}'
_MESSAGE = "bug: sum the prices"


def _push(lab: StepLab, script: str, settings: str = _CHECK) -> None:
    lab.origin.push({".septet/septet.toml": settings, "check.sh": script})


async def _result(lab: StepLab) -> BaseChecks:
    return await wait_until(lambda: result_of(lab.parts.host.state, lab.place))


def _journal(lab: StepLab) -> list[str]:
    path = lab.root / "looked"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


async def test_a_check_that_fails_before_any_work_is_told_to_people_and_to_those_who_change_code(
    lab: StepLab,
) -> None:
    """`show` has a line of the failure; the committer's prompt has the check's output, later prompts do not."""
    _push(lab, "echo needs a sum; grep -q sum src/app.py\n")
    await lab.open()
    assert [each.command for each in (await _result(lab)).failed] == ["sh check.sh"]
    line = "Check `sh check.sh` failed (exit code 1) on main already, before any work."
    assert fails_on_base(lab.parts.host.state, "wo-1") == (line,)
    await lab.open_to(Step.CREATE_COMMIT, {"answer": {"commit_message": _MESSAGE}})
    done = await lab.run(Step.CREATE_COMMIT)
    assert (done.verdict, done.checks_passed) == (Verdict.DONE, 1)
    assert "On main, before any change" in lab.prompts[-1]
    assert "needs a sum" in lab.prompts[-1]
    await lab.run(Step.GENERATE_BRANCH)
    assert "before any change" not in lab.prompts[-1]


async def test_an_agent_whose_check_fails_hears_that_it_failed_before(lab: StepLab) -> None:
    """The reason names the failure on the base commit; after an agent's work an opening checks no base."""
    _push(lab, "exit 3\n")
    await lab.open_to(Step.CREATE_COMMIT)
    await _result(lab)
    lab.scenario(create_commit={"answer": {"commit_message": _MESSAGE}})
    refused = await lab.run(Step.CREATE_COMMIT)
    assert refused.verdict is Verdict.UNPROVEN
    assert "failed (exit code 3)" in refused.reasons[0]
    assert "on the base commit too, before any work" in refused.reasons[0]
    (folder,) = lab.parts.host.state.base_checks.iterdir()
    (folder / "result.json").unlink()
    await lab.open()
    assert [(folder / "copy").exists(), result_of(lab.parts.host.state, lab.place)] == [False, None]


async def test_they_run_in_a_copy_that_guests_see_where_the_workspace_is(lab: StepLab) -> None:
    """The copy has the files of set-up and the workspace's path; the workspace stays, and the copy is removed."""
    script = 'pwd; cat installed.log; echo spoilt > src/app.py; touch "$PWD/made.txt"; mkdir -m 0 shut; exit 1\n'
    settings = f'setup = ["sh install.sh"]\n{_CHECK}'
    lab.origin.push({"install.sh": "pwd > installed.log\n"})
    _push(lab, script, settings)
    opened = await lab.open()
    told = (await _result(lab)).failed[0].why.splitlines()
    assert told[1:] == [opened.path, opened.path]
    assert not (lab.worktree / "made.txt").exists()
    assert (lab.worktree / "src" / "app.py").read_text(encoding="utf-8") != "spoilt\n"
    folder = lab.parts.host.state.base_checks
    await wait_until(lambda: not list(folder.glob("*/copy")))


async def test_all_work_orders_of_a_host_share_one_look(lab: StepLab) -> None:
    """Checks run once for each base commit and settings; another commit is checked anew."""
    _push(lab, f"echo looked >> {lab.root}/looked; exit 1\n")
    await lab.open()
    await _result(lab)
    await lab.open(work_order_id="wo-2")
    state = lab.parts.host.state
    assert result_of(state, lab.parts.host.place("wo-2")) == await _result(lab)
    assert _journal(lab) == ["looked"]
    lab.origin.push({"README.md": "another commit\n"})
    await lab.open(work_order_id="wo-3")
    await wait_until(lambda: result_of(state, lab.parts.host.place("wo-3")))
    assert _journal(lab) == ["looked", "looked"]


async def test_a_repository_can_refuse_work_on_a_base_that_fails(lab: StepLab) -> None:
    """No agent starts, and the error names check, output, branch and remedy; a retry runs the checks again."""
    _push(lab, f'echo looked >> {lab.root}/looked; echo "2 == 3"; [ -e "{lab.root}/mended" ]\n', _REFUSE)
    error = await lab.refused()
    assert (error.type, error.non_retryable) == ("BaseFails", True)
    assert error.message == "Check `sh check.sh` failed (exit code 1) on main already, before any work:\n2 == 3"
    assert error.details[0].remedy.startswith("Mend it on the base branch")
    assert lab.runs == []
    (lab.root / "mended").touch()
    await lab.open()
    assert (await _result(lab)).failed == ()
    assert _journal(lab) == ["looked", "looked"]


async def test_who_finds_a_look_under_way_does_not_begin_another(lab: StepLab) -> None:
    """A second opening starts no checks while the first ones run; after a dead run it starts them again."""
    _push(lab, f"echo looked >> {lab.root}/looked\n")
    await lab.open()
    await _result(lab)
    (folder,) = lab.parts.host.state.base_checks.iterdir()
    held = await wait_until(lambda: take_lock(folder / "lock"))  # the first look removes its copy last
    (folder / "result.json").unlink()
    (folder / "copy").mkdir()
    await lab.open()
    assert result_of(lab.parts.host.state, lab.place) is None
    os.close(held)
    await lab.open()
    await _result(lab)
    assert _journal(lab) == ["looked", "looked"]


async def test_a_worker_that_stops_ends_the_look(lab: StepLab) -> None:
    """No process of the checks outlives the worker, and no result is written."""
    _push(lab, "sleep 299.0625\n")
    async with step_lab(lab.root, lab.origin, lab.parts.host.settings) as own:
        await own.open()
        await wait_until(lambda: processes_with("299.0625"))
    assert processes_with("299.0625") == []
    assert result_of(lab.parts.host.state, lab.place) is None


async def test_without_a_sandbox_nothing_is_run_on_the_base(lab: StepLab) -> None:
    """Without a sandbox the checks cannot run in a copy at the workspace's path, so they do not run."""
    _push(lab, "exit 1\n")
    settings = lab.parts.host.settings.model_copy(update={"sandbox": "none"})
    async with step_lab(lab.root, lab.origin, settings) as unconfined:
        await unconfined.open()
    assert not lab.parts.host.state.base_checks.exists()
