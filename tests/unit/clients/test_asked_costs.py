"""The answers about costs and budgets whose request is wrong, before any call to the server."""

from pathlib import Path

import httpx
from fakes.unreached import unreached

from clients.http.app import api_of


async def test_http_says_what_the_name_of_a_budget_is(tmp_path: Path) -> None:
    """The refusal of a budget's name lists the valid forms, for a query and for a body."""
    transport = httpx.ASGITransport(app=api_of(await unreached(tmp_path), None))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        shown = await client.get("/budgets/show", params={"budget": "nope/1"})
        raised = await client.post("/budgets/raise", json={"budget": "team/x", "limit": "1usd"})
    name = "must be `day`, a project such as project/o/r, a pipeline such as pipeline/pl-1, or a work order."
    assert (shown.status_code, shown.json()["detail"]) == (422, f"query parameter budget {name}")
    assert (raised.status_code, raised.json()["detail"]) == (422, f"budget {name}")
