"""The recorded behaviour that users rely on, compared with the current behaviour."""

import json

from fakes.behaviour import TABLES, as_text, tables


async def test_nothing_that_users_rely_on_has_changed() -> None:
    """Commands, settings, exit codes, the HTTP API and agents' tools are as recorded.

    An intended change is recorded with `tests/fakes/behaviour.py` and listed in CHANGELOG.md.
    """
    now = await tables()
    assert sorted(now) == sorted(path.stem for path in TABLES.iterdir())
    for name, table in now.items():
        recorded = json.loads((TABLES / f"{name}.json").read_text(encoding="utf-8"))
        assert json.loads(as_text(table)) == recorded, name
