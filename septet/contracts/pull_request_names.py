"""What a pull request and the watch over it are known by: ids, addresses, keys of a memo."""

import re
from typing import Final

WATCHER: Final = "watcher"
"""The key of a watch's memo under which the host lies that looks at its pull request."""
TROUBLE: Final = "trouble"
"""The key of a watch's memo under which lies why nobody can tell what became of its pull request."""
FOLLOWS: Final = "follows"
"""The key of a watch's memo under which lies whether an agent answers what happens on its pull request."""

LOCAL_PULL: Final = re.compile(r"file://(?P<path>/.+)/pull/(?P<number>[1-9][0-9]{0,8})")
"""The address of a pull request of a repository on a machine's disk."""
_WATCH: Final = "/pr"
"""No work order's id can end so."""


def watch_id(order_id: str) -> str:
    """Return the id of the workflow that watches a work order's pull request."""
    return f"{order_id}{_WATCH}"


def watched_order(workflow_id: str) -> str:
    """Return the id of the work order that a workflow is, or whose pull request it watches."""
    return workflow_id.removesuffix(_WATCH)
