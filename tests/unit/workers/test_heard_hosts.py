"""The living hosts, by the heartbeats that a server lists."""

from dataclasses import replace

from workers.watching.heard_hosts import HeardHosts, WorkerHeartbeat

INTERVAL = 10.0
LIMIT = 3 * INTERVAL


def beat(host: str, sent_at: int, interval: float = INTERVAL) -> WorkerHeartbeat:
    return WorkerHeartbeat(f"{host}-worker", host, sent_at, interval)


def heard(own: str, *hosts: str, until: float = LIMIT) -> HeardHosts:
    """Return the knowledge of a host that heard all hosts every ten seconds until that time."""
    hosts_heard = HeardHosts(own, INTERVAL)
    for second in range(0, int(until) + 1, 10):
        hosts_heard.note([beat(host, second) for host in (own, *hosts)], second)
    return hosts_heard


def test_a_host_whose_heartbeat_stands_still_is_silent() -> None:
    """A host whose heartbeat does not change is silent, although the server still lists the host."""
    hosts = heard("a", "b")
    hosts.note([beat("a", 40), beat("b", 30)], 40)
    assert hosts.living(59) == {"a", "b"}
    hosts.note([beat("a", 60), beat("b", 30)], 60)
    assert hosts.living(60) == {"a"}
    assert hosts.silent_seconds("b", 60) == 30


def test_the_clocks_of_others_do_not_matter() -> None:
    """The clock of another host does not matter: each new heartbeat counts."""
    hosts = heard("a")
    hosts.note([beat("a", 40), beat("b", -(10**9)), beat("c", 10**9)], 40)
    assert hosts.living(40) == {"a", "b", "c"}


def test_one_with_rare_heartbeats_is_given_more_time() -> None:
    """A host with rare heartbeats has more time until it counts as silent."""
    hosts = heard("a")
    hosts.note([beat("a", 40), beat("b", 1, interval=60)], 40)
    hosts.note([beat("a", 140), beat("b", 1, interval=60)], 140)
    assert hosts.living(140) == {"a", "b"}
    assert hosts.living(220) == set()


def test_only_the_first_living_host_speaks() -> None:
    """Only the first living host by name speaks, and the next host speaks after the first is silent."""
    first, second = heard("a", "b"), heard("b", "a")
    assert (first.speaks(30), second.speaks(30)) == (True, False)
    second.note([beat("b", 70), beat("a", 30)], 70)
    assert second.speaks(70)


def test_nobody_speaks_who_has_not_listened_for_long_enough() -> None:
    """A host speaks only after it has listened for the whole limit."""
    assert not heard("a", until=LIMIT - INTERVAL).speaks(LIMIT - INTERVAL)


def test_an_empty_list_is_no_death() -> None:
    """After an empty list, as from a restarted server, a host speaks only after it has listened again."""
    hosts = heard("a", "b", until=60)
    hosts.note([], 70)
    assert not hosts.speaks(70)
    hosts.note([beat("a", 80)], 80)
    assert not hosts.speaks(80)
    hosts.note([beat("a", 90), beat("b", 90)], 90)
    hosts.note([beat("a", 110), beat("b", 110)], 110)
    assert hosts.speaks(110)
    assert hosts.living(110) == {"a", "b"}


def test_of_the_hosts_that_serve_metrics_the_first_living_one_measures_for_all() -> None:
    """Only the first living host with metrics measures for all hosts."""

    def note(hosts: HeardHosts, at: int, *with_metrics: str) -> HeardHosts:
        for second in range(0, at + 1, 10):
            beats = [replace(beat(host, second), serves_metrics=host in with_metrics) for host in ("a", "b", "c")]
            hosts.note(beats, second)
        return hosts

    known = {host: note(HeardHosts(host, INTERVAL), 30, "b", "c") for host in ("a", "b", "c")}
    assert [host for host, heard in known.items() if heard.speaks(30, with_metrics=True)] == ["b"]
    known["c"].note([replace(beat("c", 70), serves_metrics=True), beat("b", 30)], 70)
    assert known["c"].speaks(70, with_metrics=True)
    assert not note(HeardHosts("a", INTERVAL), 30).speaks(30, with_metrics=True)
