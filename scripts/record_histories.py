"""Record the histories that tests/replay/histories/<this version> lacks, on a real server with doubled activities.

A history that is there is kept, whatever its version: it stands for the work orders that this version began, and
every later one must replay it.
"""

import asyncio
import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HISTORIES = ROOT / "tests" / "replay" / "histories" / version("septet")


async def record() -> None:
    """Record what is missing, and say what was recorded."""
    from fakes.histories import TOLD, history_of
    from temporalio.contrib.pydantic import pydantic_data_converter
    from temporalio.testing import WorkflowEnvironment

    from workers.preflight import register_search_attributes
    from workers.server import temporal_program

    missing = [name for name in TOLD if not (HISTORIES / f"{name}.json").exists()]
    server = await WorkflowEnvironment.start_local(
        data_converter=pydantic_data_converter,
        dev_server_existing_path=str(temporal_program()),
        identity="recorder",
    )
    HISTORIES.mkdir(parents=True, exist_ok=True)
    async with server:
        await register_search_attributes(server.client)
        for name in missing:
            history = await history_of(server.client, name)
            whole = json.loads(history.to_json(), object_hook=_without_places)
            (HISTORIES / f"{name}.json").write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
            print(f"recorded {name}: {len(history.events)} events")
    print(f"{len(TOLD) - len(missing)} histories were there before.")


def _without_places(part: dict[str, Any]) -> dict[str, Any]:
    """Drop what says only where it was recorded: a traceback's paths."""
    return {name: value for name, value in part.items() if name != "stackTrace"}


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    asyncio.run(record())
