"""Record the histories that tests/replay lacks of this version, on a real server with doubled activities.

Those of work orders lie in histories/<version>, those of the janitor's passes in janitor/<version>. A history that
is there is kept, whatever its version: it stands for what this version began, and every later one must replay it.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHistory

HistoryOf = Callable[[str], Awaitable[WorkflowHistory]]
ROOT = Path(__file__).resolve().parent.parent
REPLAY = ROOT / "tests" / "replay"


async def record() -> None:
    """Record what is missing, and say what was recorded."""
    from fakes.board_histories import BOARDS, WATCHES, history_of_board, history_of_watch
    from fakes.budget_histories import BUDGETS, history_of_budget
    from fakes.histories import TOLD, history_of
    from fakes.intake_histories import INTAKES, history_of_intake
    from fakes.janitor_histories import PASSES, history_of_pass
    from fakes.pipeline_histories import MEMBERS, PIPELINES, history_of_pipeline
    from fakes.tracker_histories import TRACKED, history_of_tracked
    from temporalio.testing import WorkflowEnvironment

    from workers.connection.plugin import SeptetPlugin
    from workers.server.preflight import register_search_attributes
    from workers.server.server import temporal_program

    server = await WorkflowEnvironment.start_local(
        plugins=[SeptetPlugin()],
        dev_server_existing_path=str(temporal_program()),
        identity="recorder",
    )
    async with server:
        await register_search_attributes(server.client)
        await _record(REPLAY / "histories", TOLD, partial(history_of, server.client))
        await _record(REPLAY / "janitor", PASSES, partial(history_of_pass, server.client))
        await _record(REPLAY / "board", BOARDS, partial(history_of_board, server.client))
        await _record(REPLAY / "intake", INTAKES, partial(history_of_intake, server.client))
        await _record(REPLAY / "tracker", TRACKED, partial(history_of_tracked, server.client))
        await _record(REPLAY / "budget", BUDGETS, partial(history_of_budget, server.client))
        ways = (*PIPELINES, *MEMBERS)
        await _record(REPLAY / "pipeline", ways, partial(history_of_pipeline, server.client))
        await _record(REPLAY / "pull_request", WATCHES, partial(history_of_watch, server.client))


async def _record(root: Path, names: Iterable[str], history_of: HistoryOf) -> None:
    """Record the histories of these names that this version's folder lacks."""
    folder = root / version("septet")
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        path = folder / f"{name}.json"
        if path.exists():
            print(f"{root.name}/{name} was there before.")
            continue
        history = await history_of(name)
        whole = json.loads(history.to_json(), object_hook=_without_places)
        path.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
        print(f"recorded {root.name}/{name}: {len(history.events)} events")


def _without_places(part: dict[str, Any]) -> dict[str, Any]:
    """Drop what says only where it was recorded: a traceback's paths."""
    return {name: value for name, value in part.items() if name != "stackTrace"}


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    asyncio.run(record())
    from septet.system.own_process import end_process

    end_process(0)
