"""Prepare a text for a log: one line of limited length, without text that looks like a key."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from septet.system.masking import MASK, mask, mask_bytes
from septet.system.text import cut

_SHORTEST_SECRET: Final = 6
"""The fewest characters of a secret that is masked: a mask for a shorter value would hide ordinary words."""
_LOOKED_AT: Final = 16_384
"""The number of characters of a text that are read, which is more than a preview shows."""
_LONGEST_KEY_BYTES: Final = 16 * 1024
"""The size of the longest key, in any encoding."""
_BLOCK: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
_KEYS: Final = re.compile(
    r"""
      \b sk-[A-Za-z0-9_-]{8,}                            # OpenAI, Anthropic
    | \b gh[oprsu]_[A-Za-z0-9]{10,}                      # GitHub
    | \b github_pat_[A-Za-z0-9_]{10,}
    | \b glpat-[A-Za-z0-9_-]{10,}                        # GitLab
    | \b (?:AKIA|ASIA)[A-Z0-9]{12,}                      # AWS
    | \b AIza[A-Za-z0-9_-]{20,}                          # Google
    | \b xox[abeoprs]-[A-Za-z0-9-]{8,}                   # Slack
    | (?<![A-Za-z0-9_-]) eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*   # JSON web tokens
    """,
    re.VERBOSE,
)
_AFTER_A_WORD: Final = re.compile(
    r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}|(://[^\s/:@]*:)[^\s/@]+(?=@)"
    r"|\b((?:api[_-]?key|secret|token|password|passwd)[\"']?\s*[:=]\s*[\"']?)[^\s\"',;]{4,}"
)


def preview(text: str, *, secrets: Iterable[str] = (), limit: int = 200) -> str:
    """Return the beginning of `text` on one line, with keys, text that looks like a key, and `secrets` masked."""
    line = " ".join(scrub(text[:_LOOKED_AT], secrets).split())
    return cut(printable(line[: limit + 1]), limit)


def printable(text: str) -> str:
    """Return `text` with unprintable characters replaced, which could steer a terminal; newlines and tabs stay."""
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else "\N{REPLACEMENT CHARACTER}" for letter in text
    )


def scrub(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` with this process's keys, `secrets`, and text that looks like a key masked."""
    text = mask(text)
    for secret in sorted(set(secrets), key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, MASK)
    text = _BLOCK.sub(MASK, text)
    text = _KEYS.sub(MASK, text)
    return _AFTER_A_WORD.sub(_mask, text)


def end_of_file(path: Path, limit_bytes: int) -> str:
    """Return the end of a file as text, with this process's keys masked, even a key of which only a part is left.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        begin = max(size - limit_bytes - 2 * _LONGEST_KEY_BYTES, 0)
        file.seek(begin)
        content = mask_bytes(file.read(size - begin))
    if begin:  # the part may begin with half a key; masks have shortened other keys
        content = content[min(_LONGEST_KEY_BYTES, len(content) // 2) :]
    return content[-limit_bytes:].decode("utf-8", errors="replace")


def _mask(match: re.Match[str]) -> str:
    if match[1] is not None:
        return f"{match[1]} {MASK}"
    return f"{match[2] or match[3]}{MASK}"
