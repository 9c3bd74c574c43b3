"""A lane that passes to the next work order: the earlier runs are summed up and not read again."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from fakes.agent_lab import Lab
from fakes.waiting import wait_until

from activities.turns.results import context_of
from septet.agents.clis.adapter import Turn
from septet.agents.clis.registry import adapter_for
from septet.agents.runs.records import RunKey
from septet.agents.runs.usage import pass_on
from septet.agents.turns.turn_runs import TurnResult

ANSWER = "init(); turn('m1'); result('done')"
CODEX = """\
#!{python} -IS
import os
with open({count!r}, "a") as file:
    file.write("x")
used = 10 * os.path.getsize({count!r})
print('{{"type":"thread.started","thread_id":"0199a213-81c0-7800-8aa1-bbab2a035a53"}}')
print('{{"type":"item.completed","item":{{"id":"item_1","type":"agent_message","text":"done"}}}}')
print('{{"type":"turn.completed","usage":{{"input_tokens":%d,"output_tokens":%d}}}}' % (used, used))
"""


async def carry_out_turn(lab: Lab, order_id: str, session_id: str | None = None, **more: Any) -> TurnResult:
    turn = Turn("Work.\n", lab.worktree, resume_id=session_id)
    request = lab.request(turn=turn)
    turn_result = await lab.run_turn(replace(request, key=RunKey("wo-1", f"run of {order_id}", "5"), **more))
    await wait_until(lambda: not turn_result.run.lives())
    return turn_result


async def test_a_lane_that_forgot_its_past_reads_it_again(lab: Lab) -> None:
    """A damaged sum is computed again from the folders of the runs."""
    lab.agent(ANSWER)
    runs = lab.runtime.runs
    first = (await carry_out_turn(lab, "a")).run
    pass_on(runs, "wo-1")
    (runs.folder_of("wo-1") / "past.json").write_bytes(b"half wri")
    second = (await carry_out_turn(lab, "b")).run
    assert (second.record.serial if second.record else 0) == 2
    assert [run.name for run in runs.lately("wo-1")] == [first.name, second.name]
    pass_on(runs, "wo-1")
    pass_on(runs, "wo-1")
    assert runs.lately("wo-1") == []


async def test_no_run_has_the_name_of_one_that_is_gone(lab: Lab) -> None:
    """With an archived run's name a living run would be hidden, and a second agent could start."""
    lab.agent(ANSWER)
    runs = lab.runtime.runs
    first = (await carry_out_turn(lab, "a")).run
    pass_on(runs, "wo-1")
    first.folder.rename(lab.root / "gone")
    second = (await carry_out_turn(lab, "b")).run
    assert [run.name for run in runs.lately("wo-1")] == [second.name] != [first.name]


async def test_what_a_session_has_used_before_its_lane_was_passed_on_is_no_turns_own(lab: Lab) -> None:
    """The figures of codex grow with its thread, and each turn counts only its own share."""
    program = lab.root / "codex"
    program.write_text(CODEX.format(python=sys.executable, count=str(lab.root / "count")), encoding="utf-8")
    program.chmod(0o755)
    runtime = replace(lab.runtime, host=replace(lab.runtime.host, programs={"codex": str(program)}))
    written, session = [], None
    for order_id in ("a", "b", "c"):
        turn_result = await carry_out_turn(lab, order_id, session, adapter=adapter_for("codex"), runtime=runtime)
        session = turn_result.outcome.session_id
        written.append(turn_result.usage.output_tokens)
        pass_on(runtime.runs, "wo-1")
    assert written == [10, 10, 10]


async def test_a_session_is_as_long_as_all_that_was_said_in_it(lab: Lab) -> None:
    """If the CLI does not report the session's length, the turns of earlier work orders count as well."""
    lab.agent("init(); result('done', ',\"told\":\"%s\"' % ('x' * 60000))")
    first = await carry_out_turn(lab, "a")
    length = context_of(first)
    pass_on(lab.runtime.runs, "wo-1")
    assert context_of(await carry_out_turn(lab, "b", first.outcome.session_id)) > 1.9 * length


async def test_a_run_that_nobody_saw_end_is_not_over(lab: Lab) -> None:
    """A run without a record of its end stays among the lane's current runs."""
    lab.agent(ANSWER)
    run = (await carry_out_turn(lab, "a")).run
    (run.folder / "exit.json").unlink()
    pass_on(lab.runtime.runs, "wo-1")
    assert [each.name for each in lab.runtime.runs.lately("wo-1")] == [run.name]
    assert not Path(lab.runtime.runs.folder_of("wo-1") / "past.json").exists()
