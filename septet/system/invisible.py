"""Characters that people do not see and programs read: out they go, but where an emoji or script needs them."""

import re
import unicodedata
from typing import Final

_INVISIBLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_JOINERS: Final = frozenset("\u200c\u200d")
_EMOJI_STYLE: Final = "\ufe0f"
_SKIN: Final = range(0x1F3FB, 0x1F400)
_ZWJ: Final = "\u200d"


def without_invisible(text: str) -> str:
    """Return a text without characters that are not seen; in linear time.

    What joins two emojis or letters of a script that has such joints stays, and so does what makes an emoji of a
    sign; each of them once.
    """
    return text if text.isascii() else _INVISIBLE.sub(_joint, text)


def _joint(match: re.Match[str]) -> str:
    character, text = match[0], match.string
    before = text[match.start() - 1 : match.start()]
    after = text[match.end() : match.end() + 1]
    if character == _EMOJI_STYLE:
        return character if before and (_is_sign(before) or before in "0123456789#*") else ""
    if character not in _JOINERS or not before or not after:
        return ""
    joins_signs = character == _ZWJ and (_is_sign(before) or before == _EMOJI_STYLE) and _is_sign(after)
    return character if joins_signs or (_has_joints(before) and _has_joints(after)) else ""


def _is_sign(character: str) -> bool:
    return unicodedata.category(character) == "So" or ord(character) in _SKIN


def _has_joints(character: str) -> bool:
    """Say whether it is a letter or a mark of a script that has joints: from Arabic to the scripts of India."""
    return "\u0600" <= character <= "\u1aff" and unicodedata.category(character)[0] in "LM"
