"""Circles among things that come after each other."""

from collections.abc import Mapping, Sequence


def circle_in(after: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return one circle, its first member at its end again; empty where there is none.

    Args:
        after: By each thing, what it comes after; all of that is a key as well.
    """
    finished_ids: set[str] = set()
    for start in after:
        way: list[str] = [start]
        rest = [iter(after[start])] if start not in finished_ids else []
        while rest:
            following = next(rest[-1], None)
            if following is None:
                rest.pop()
                finished_ids.add(way.pop())
            elif following in way:
                return (*way[way.index(following) :], following)
            elif following not in finished_ids:
                way.append(following)
                rest.append(iter(after[following]))
    return ()
