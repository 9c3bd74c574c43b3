"""What a Temporal server can read of each workflow of a sealed installation, for each way that people's words take."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from fakes.sealed import cookie_of, database, payloads_in, payloads_of, sealed_machine, ui_of, words_in
from fakes.sealed_day import WORDS, Day, serving_day
from fakes.septet_command import Running, Septet
from fakes.waiting import wait_until
from temporalio.api.common.v1 import Payload
from temporalio.client import Client

from septet.contracts.seal import is_sealed

pytestmark = [pytest.mark.faces, pytest.mark.release]

TYPES = {
    "WorkOrder", "PullRequest", "Notification", "Board", "Pipeline", "Intake", "CommentCommand", "Account", "Costs",
}  # fmt: skip
ON_THE_FORGE_ALONE = {WORDS["log"], WORDS["review"]}
"""An agent's texts of a failed check and of a review: the host reads them from the forge, and no workflow has them."""
UI = "/api/v1/namespaces/default"


@dataclass(frozen=True)
class Seen:
    """What a client without keys can read on a server."""

    types: set[str]
    clear: dict[str, int]
    """The number of unsealed payloads, by the type of their workflow."""
    places: Mapping[str, str]
    """All readable text, by its place."""

    @property
    def words(self) -> dict[str, set[str]]:
        """The words in each place."""
        return {place: words_in(text, WORDS.values()) for place, text in self.places.items()}


def is_clear(payload: Payload) -> bool:
    """Say whether a payload has readable data; the server returns an absent payload as an empty one."""
    return bool(payload.data) and not is_sealed(payload.metadata)


async def types_on(up: Running) -> set[str]:
    """Return the types of all workflows."""
    client = await Client.connect(up.address)
    return {row.workflow_type async for row in client.list_workflows("")}


async def look(up: Running) -> Seen:
    """Read all histories, descriptions and schedules, and the web UI's answers."""
    client = await Client.connect(up.address)
    rows = [row async for row in client.list_workflows("")]
    histories, descriptions, clear = [], [], dict.fromkeys((row.workflow_type for row in rows), 0)
    headers = {"Cookie": cookie_of(up)}
    async with httpx.AsyncClient(base_url=ui_of(up), headers=headers, trust_env=False, timeout=60) as ui:
        shown = [(await ui.get(f"{UI}/{path}")).text for path in ("workflows", "schedules")]
        for row in rows:
            handle = client.get_workflow_handle(row.id, run_id=row.run_id)
            history, described = await handle.fetch_history(), (await handle.describe()).raw_description
            payloads = [*payloads_in(history), *payloads_of(described)]
            clear[row.workflow_type] += sum(map(is_clear, payloads))
            histories.append(history.to_json())
            descriptions.append(str(described))
            shown.append((await ui.get(f"{UI}/workflows/{row.id}/history?execution.runId={row.run_id}")).text)
    schedules = [
        (await client.get_schedule_handle(each.id).describe()).raw_description
        async for each in await client.list_schedules()
    ]
    clear["schedules"] = sum(is_clear(each) for told in schedules for each in payloads_of(told))
    places = {
        "histories": "".join(histories),
        "descriptions": "".join(descriptions),
        "schedules": "".join(map(str, schedules)),
        "the UI": "".join(shown),
    }
    return Seen({row.workflow_type for row in rows}, clear, places)


async def live_through(day: Day) -> Seen:
    """Use each way once, with a change of the build in between, and return what the server can read."""
    with day.septet.up(SEPTET_BUILD_ID="of-yesterday") as first:
        day.begin()
        assert first.end() == 0
        with day.septet.up() as up:
            day.promote()
            day.start_pipeline()
            day.take_in(up.api)
            day.go_on()
            tools_log = await day.use_tools()
            day.until_pipeline_ended()
            await wait_until(lambda: types_on(up), lambda types: types >= TYPES)
            seen = await look(up)
    log = "".join((*first.errors, *up.errors, tools_log))
    files = {"the database": database(day.septet.state), "logs": log}
    server_log = (day.septet.state / "server.log").read_text(encoding="utf-8")
    return Seen(seen.types, seen.clear, {**seen.places, **files, "the server's log": server_log})


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("is_sealed_here", [True, False], ids=["sealed", "open"])
async def test_no_way_in_leaves_a_word_on_the_server(tmp_path: Path, *, is_sealed_here: bool) -> None:
    """With keys no payload of a workflow is clear and no word is found; without keys each word is found."""
    machine = sealed_machine(tmp_path / "machine") if is_sealed_here else Septet(tmp_path / "machine")
    with serving_day(machine, tmp_path) as day:
        seen = await live_through(day)
    if is_sealed_here:
        assert {kind: count for kind, count in seen.clear.items() if count} == {}
        assert seen.words == {place: set() for place in seen.places}
        return
    assert all(seen.clear[kind] for kind in TYPES), seen.clear
    for place in ("histories", "the database"):
        assert set(WORDS.values()) - seen.words[place] == ON_THE_FORGE_ALONE
    assert WORDS["answer"] in seen.words["logs"]
