"""The JSON event at the end of an output line that begins with other text, for example a terminal's title."""

import re

# In a line read backwards: text outside of strings, whole strings, and then a brace or a lone quote.
# Groups are atomic and never possessive: Python 3.11.2 of Debian 12 matches possessive groups wrongly.
_BRACE = re.compile(rb'(?>(?:[^"{}]++|"[^"]*+(?>(?:"(?=(?>(?:\\\\)*)\\(?!\\))[^"]*+)*)")*)([{}"]|\Z)')
_DEEPEST = 1000
"""The deepest nesting of braces that is followed."""


def object_at_end(line: bytes | bytearray) -> bytes:
    """Return the JSON object at the end of a line; empty if the line ends otherwise.

    An object that is only quoted in a string of another event is not returned: inside a string, every quotation
    mark is escaped.
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
