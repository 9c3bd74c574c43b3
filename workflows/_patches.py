"""Which way a run of a workflow goes: today's, or that in which it began."""

from typing import Final

from temporalio import workflow

_ONE_FOR_ALL: Final = "one-patch-for-all"
"""A run that has it goes today's way in everything: each patch of its own would cost it two events and two
Actions. It is asked for at a run's beginning, so that one that began before it goes on in its own ways."""


def has_patch(patch_id: str) -> bool:
    """Say whether this run goes the way that a patch has brought.

    Args:
        patch_id: A patch of an earlier release, or of this one: it is asked for where the run began before.
    """
    return workflow.patched(_ONE_FOR_ALL) or workflow.patched(patch_id)
