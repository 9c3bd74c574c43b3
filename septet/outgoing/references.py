"""References that do something on a forge: accounts that get a notification, and issues that a merge closes."""

import re
from collections.abc import Set as AbstractSet
from typing import Final

_MENTION: Final = re.compile(
    r"(?P<link>(?<!\\)\[(?P<words>[^\[\]\n]{0,1000})\](?P<to>\([^()\s]{0,2000}\)))"
    r"|(?P<address>\bhttps?://[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+(?::\d{1,5})?(?:[/?#][\w./~%#?&=+:@-]*)?)"
    r"|(?<![\w])[\\`]{0,10}@(?P<name>[A-Za-z0-9_](?:[\w./-]*\w)?)`{0,10}"
)
_VERB: Final = (
    r"\b(?:clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)|implement(?:s|ed|ing)?|complet(?:e[sd]?|ing)"
    r"|reopen(?:s|ed)?)\b"
)
_REFERENCE: Final = (
    r"(?:https?://[^\s)>\]`]{1,300}?/(?:issues|pulls?|merge_requests|work_items)/\d{1,18}"
    r"|(?:[\w.-]{1,100}(?:/[\w.-]{1,100}){1,10})?[#!]\d{1,18}|GH-\d{1,18}"
    r"|(?-i:(?!(?:UTF|SHA|ISO|RFC|CVE|CWE|PEP|MD|AES|UCS)-)[A-Z][A-Z0-9_]{0,9}-\d{1,18}))"
)
_CLOSING: Final = re.compile(
    rf"(?P<verb>{_VERB}[\s:*_~()\[<\"'-]{{1,10}}(?:(?:the |an? )?(?:issues?|bugs?|tickets?)[\s:]{{1,3}})?)"
    rf"(?P<all>{_REFERENCE}(?:(?:\s{{0,3}}(?:,|&|\+|\band\b|\bor\b)){{0,2}}\s{{0,3}}{_REFERENCE}){{0,50}})",
    re.IGNORECASE,
)
_ONE: Final = re.compile(_REFERENCE, re.IGNORECASE)


def without_mentions(text: str) -> str:
    """Return a text that mentions nobody: of `@name` the name becomes code, which no forge reads as an account."""

    def quiet(match: re.Match[str]) -> str:
        if match["link"]:
            return f"[{without_mentions(match['words'])}]{match['to']}"
        return match[0] if match["address"] else f"@`{match['name']}`"

    return _MENTION.sub(quiet, text) if "@" in text else text


def without_closing(text: str, own: AbstractSet[str]) -> str:
    """Return a text whose words close nothing but the work order's own issue: other references become code.

    Args:
        text: The text.
        own: The references of that issue, in lower case.
    """

    def keep(match: re.Match[str]) -> str:
        return match[0] if match[0].lower() in own else f"`{match[0]}`"

    return _CLOSING.sub(lambda match: match["verb"] + _ONE.sub(keep, match["all"]), text)
