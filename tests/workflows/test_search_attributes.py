from septet.contracts.task import Task
from workflows.wire.search_attributes import PROJECT, PULL_REQUEST, REPOSITORY, start_attributes


def test_no_value_is_larger_than_the_server_takes() -> None:
    """A long address is cut: the server refuses 2 KiB, and the workflow task would fail forever."""
    for long in ("/" * 2048, "€" * 2048):
        found = start_attributes(Task(id="wo-1", repository_url=long, project=long, pr_url=long))
        for key in (REPOSITORY, PROJECT, PULL_REQUEST):
            value = found[key]
            assert long.startswith(value)
            assert 1990 < len(value.encode()) <= 2000
