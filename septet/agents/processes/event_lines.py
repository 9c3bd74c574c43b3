"""Lines of a stream on which something stands before the event: a terminal's title, a log line with no newline."""

import re

# In a line read backwards: what stands outside of strings, whole strings, and then a brace or a lone quote.
# Groups are atomic and never possessive: those are matched wrongly by Python 3.11.2, which Debian 12 has.
_BRACE = re.compile(rb'(?>(?:[^"{}]++|"[^"]*+(?>(?:"(?=(?>(?:\\\\)*)\\(?!\\))[^"]*+)*)")*)([{}"]|\Z)')
_DEEPEST = 1000
"""No reader follows braces deeper."""


def object_at_end(line: bytes | bytearray) -> bytes:
    """Return what would be the JSON object that a line ends with, or nothing, in one walk back from its end.

    Inside of a string every quote is escaped, so from its end there is only one place where the object can begin,
    and what is quoted in a string of another event is never that place.
    """
    line = bytes(line).rstrip()
    if not line.endswith(b"}"):
        return b""
    backwards, depth = line[::-1], 0
    for brace in _BRACE.finditer(backwards):
        depth += {b"}": 1, b"{": -1}.get(brace[1], _DEEPEST + 1)
        if depth == 0:
            return line[len(line) - brace.end() :]
        if depth > _DEEPEST:
            break
    return b""
