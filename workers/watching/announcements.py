"""Announce to the server a worker's agents, and whether the worker serves metrics, by the names of its plugins.

Each announcement is a plugin that only has a name.
"""

from temporalio.plugin import SimplePlugin

from activities.host.host import Host
from septet.agents.clis.registry import usable_agents
from septet.forges.choose import hosts_with_key
from workers.watching.announced_agents import AGENT, DEFAULT, FORGE_KEY, METRICS, MODEL, SANDBOX


class _Announcement(SimplePlugin):
    """A name that the server shows with a worker."""


def announcements(host: Host) -> list[SimplePlugin]:
    """Return the plugins that announce the agents that a host can use when its worker starts."""
    names = [f"{AGENT}{name}" for name in usable_agents(host.agents, host.state.root)]
    others = [f"{DEFAULT}{host.settings.agent}", f"{SANDBOX}{host.sandbox.kind}"]
    others += [f"{MODEL}{host.settings.model}"] if host.settings.model else []
    others += [METRICS] if host.settings.metrics is not None else []
    others += [FORGE_KEY, *(f"{FORGE_KEY}{each}" for each in hosts_with_key(host.settings))]
    return [_Announcement(name) for name in (*names, *others)]
