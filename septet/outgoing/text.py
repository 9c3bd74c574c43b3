"""Clean every text of an agent before a forge gets it: titles, bodies, replies, comments, messages.

This removes text that acts on a forge in the worker's name: text that closes other issues, mentions people, skips
CI, gives commands or signs for others. It also removes text that people do not see, and pictures on other servers,
which would learn who reads the text. Words, tables and code stay.
"""

import html
import re
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from septet.outgoing.pieces import Piece, pieces_of
from septet.system.masking import mask
from septet.system.text import without_controls, without_invisible

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
    """Return a text with the name after each `@` in backquotes, so that no forge notifies anybody."""

    def quiet(match: re.Match[str]) -> str:
        if match["link"]:
            return f"[{without_mentions(match['words'])}]{match['to']}"
        return match[0] if match["address"] else f"@`{match['name']}`"

    return _MENTION.sub(quiet, text) if "@" in text else text


def without_closing(text: str, own: AbstractSet[str]) -> str:
    """Return a text that closes no other issue: a reference after a word such as `fixes` is put in backquotes.

    `own` has the references to the work order's own issue, in lower case.
    """

    def keep(match: re.Match[str]) -> str:
        return match[0] if match[0].lower() in own else f"`{match[0]}`"

    return _CLOSING.sub(lambda match: match["verb"] + _ONE.sub(keep, match["all"]), text)


_TRAILER: Final = re.compile(r"\s{0,3}[A-Za-z0-9-]{1,100}\s{0,3}:")
_ALLOWED: Final = re.compile(r"\s{0,3}change-id\s{0,3}:", re.IGNORECASE)
_SPEAKS_FOR_OTHERS: Final = re.compile(
    r"^[ \t>*-]{0,10}(?:[A-Za-z0-9-]{1,60}-by|on-behalf-of|skip-checks)[ \t]{0,3}:.*(?:\n[ \t]+\S.*)*\n?",
    re.IGNORECASE | re.MULTILINE,
)
"""The pattern of lines that name an author, a reviewer or a witness, or that stop CI."""
_BLANK_LINE: Final = re.compile(r"\n[ \t]+(?=\n)")


def without_attributions(text: str) -> str:
    """Return a text without trailer lines that name an author, a signer or a reviewer."""
    return _SPEAKS_FOR_OTHERS.sub("", text)


def without_trailers(message: str) -> str:
    """Return a commit's message with only allowed trailers; other trailers become items of a list."""
    subject, newline, rest = _BLANK_LINE.sub("\n", message.strip()).partition("\n")
    rest = without_attributions(rest).rstrip()
    gap_above = rest[: len(rest) - len(rest.lstrip("\n"))]
    body, gap, last = rest.lstrip("\n").rpartition("\n\n")
    lines = last.split("\n")
    is_block = (
        all(_TRAILER.match(line) or line[:1] in {" ", "\t"} for line in lines) or "(cherry picked from" in last
    )
    if last.strip() and is_block:
        said = "\n".join(f"- {line.strip()}" for line in lines if not _ALLOWED.match(line))
        kept = "\n".join(line.strip() for line in lines if _ALLOWED.match(line))
        last = "\n\n".join(filter(None, (said, kept)))
    return f"{subject}{newline}{gap_above}{body}{gap}{last}".rstrip()


_LONGEST: Final = 65_536
_LONGEST_LINE: Final = 2048
"""The most characters of a title that are read; forges accept fewer."""
_ENTITY: Final = re.compile(r"&(?:#\d{1,8}|#[xX][0-9a-fA-F]{1,7}|[A-Za-z][A-Za-z0-9]{1,30});")
_SHOWN: Final = re.compile(r"[A-Za-z0-9@#/:]")
"""The characters that may replace their HTML entities, because Markdown gives them no meaning."""
_SKIPS_CI: Final = re.compile(
    r"\[[ \t]*((?:skip|no)[ -][\w -]{1,30}|[\w -]{1,30}[ -]skip)[ \t]*\]|\*{3}[ \t]*(NO_CI)[ \t]*\*{3}",
    re.IGNORECASE,
)
_MARK: Final = re.compile(r"<!(?=--\s*septet)", re.IGNORECASE)
_COMMAND: Final = re.compile(r"^([ \t]*)/(?=[A-Za-z])", re.MULTILINE)
_PICTURE: Final = re.compile(
    r"!+\[(?P<words>[^\[\]]{0,1000})\]\(\s{0,5}<?(?P<to>[^\s()<>]{0,2000})>?(?P<title>\s[^()]{0,500})?\)"
)
_OTHER_PICTURE: Final = re.compile(r"!+\[")
_DEFINITION: Final = re.compile(r"^( {0,3})(\[(?P<label>[^\[\]]{1,500})\]:)", re.MULTILINE)
_ELSEWHERE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|[/\\]{2}|\\")
_LINK_TITLE: Final = re.compile(
    r"(\]\(\s{0,5}<?[^\s()<>]{1,2000}>?)\s{1,5}(?:\"[^\"]{0,2000}\"|'[^']{0,2000}'|\([^()]{0,2000}\))\s{0,5}\)"
)
_DEFINITION_TITLE: Final = re.compile(
    r"^( {0,3}\[[^\[\]]{1,500}\]:\s{0,5}\S{1,2000})\s{1,5}"
    r"(?:\"[^\"]{0,2000}\"|'[^']{0,2000}'|\([^()]{0,2000}\))[ \t]*$",
    re.MULTILINE,
)
_FENCE_WORDS: Final = re.compile(r"^([^`~]{0,200}(?:`{3,200}|~{3,200})[ \t]{0,5}[^\s`]{0,60})[ \t][^`]*$")
_UNSEEN: Final = re.compile(
    r"\s(?:title|aria-[\w-]{1,40}|data-[\w-]{1,40}|placeholder|summary|label)\s*="
    r"\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'>]+)",
    re.IGNORECASE,
)
"""The pattern of attributes whose words a page never shows, or shows only under the mouse pointer."""
_TAG_NAME: Final = re.compile(r"</?([A-Za-z0-9-]+)")
_SOURCE: Final = re.compile(r"\s(?:src)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)
_INSTEAD: Final = re.compile(r"\salt\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", re.IGNORECASE)
_FETCHING: Final = frozenset((
    "img", "image", "source", "video", "audio", "track", "embed", "object", "iframe", "frame", "link", "base",
    "meta", "style", "script", "svg", "input", "form",
))  # fmt: skip
"""The tags that load a file when a page opens; only those of the repository's own pictures stay."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Cleans all text that one work order publishes."""

    closes: frozenset[str] = frozenset()
    """The references to the issue that a text may close, in lower case: `#7`, `o/r#7` and its address."""
    pictures: tuple[str, ...] = ()
    """The prefixes of the addresses of the repository's pictures; a relative address needs none of them."""
    without_keys: Callable[[str], str] = mask
    """A function that masks what looks like a key."""

    def markdown(self, text: str) -> str:
        """Return a body, a comment or a reply, cleaned as Markdown."""
        text = self.without_keys(readable(text[:_LONGEST]))
        labels = text.lower()
        return _quiet("".join(self._clean(piece, labels) for piece in without_hidden(text)))

    def code(self, text: str) -> str:
        """Return a text cleaned for a code block that Septet puts around it."""
        return _quiet(self.without_keys(readable(text[:_LONGEST])))

    def line(self, text: str) -> str:
        """Return a title as one line, cleaned even in code, because a forge may act on all words of a title."""
        words = self.without_keys(_without_comments(readable(text[:_LONGEST_LINE])))
        return _quiet(without_closing(without_mentions(" ".join(words.split())), self.closes))

    def message(self, text: str) -> str:
        """Return a commit's message, cleaned even in code, because a forge acts on all words of a message.

        Keys are not masked here: a key in a message waits for a person's decision, like a key in a file.
        """
        pieces = pieces_of(_without_comments(readable(text[:_LONGEST])))
        words = "".join(piece.text if piece.kind == "code" else without_mentions(piece.text) for piece in pieces)
        return _quiet(without_closing(without_trailers(words), self.closes))

    def _clean(self, piece: Piece, labels: str) -> str:
        if piece.kind == "code":
            return without_fence_words(piece.text)
        return self._tag(piece.text) if piece.kind == "tag" else self._prose(piece.text, labels)

    def _prose(self, text: str, labels: str) -> str:
        text = without_link_titles(without_attributions(prose_characters(text)))
        text = _OTHER_PICTURE.sub("[", _PICTURE.sub(self._picture, text))
        text = _DEFINITION.sub(lambda match: _defined(match, labels), _COMMAND.sub(r"\1\\/", text))
        return without_closing(without_mentions(text), self.closes).replace("<!--", "&lt;!--")

    def _picture(self, match: re.Match[str]) -> str:
        if self._is_own(match["to"]):
            return f"{_OWN}{match[0].lstrip('!')}"
        return f"[{match['words']}]({match['to'].partition('?')[0]})"

    def _tag(self, tag: str) -> str:
        tag = without_unseen(tag)
        name = _TAG_NAME.match(tag)
        if name is None or name[1].lower() not in _FETCHING:
            return tag
        sources = _SOURCE.findall(tag)
        is_picture = name[1].lower() == "img" and len(sources) == 1 and "srcset" not in tag.lower()
        if is_picture and self._is_own(html.unescape("".join(sources[0]))):
            return tag
        instead = _INSTEAD.search(tag)
        return self._prose(instead[1] or instead[2] or "", "") if instead else ""

    def _is_own(self, address: str) -> bool:
        """Return whether an address is in the repository without a query that can carry data; `raw` is allowed."""
        path, _, query = address.partition("?")
        if query and query not in {"raw=true", "raw=1"}:
            return False
        if ".." in path or "%" in path or "\\" in path or "&" in path:
            return False
        lowered = path.lower()
        return not _ELSEWHERE.match(path) or any(lowered.startswith(prefix.lower()) for prefix in self.pictures)


_OWN: Final = "\x00"
"""The character that stands for the `!` of a picture that stays, while a text is cleaned; no text contains it."""


def readable(text: str) -> str:
    """Return a text with plain line ends, without control and invisible characters."""
    plain = without_controls(text.replace("\r\n", "\n").replace("\r", "\n"))
    return without_invisible(plain.encode(errors="replace").decode())


def _without_comments(text: str) -> str:
    parts = text.split("<!--")
    shown = [part.partition("-->")[2] if "-->" in part else f"&lt;!--{part}" for part in parts[1:]]
    return "".join((parts[0], *shown))


def without_hidden(text: str) -> Iterator[Piece]:
    """Yield a text's pieces; a space replaces each hidden piece and joins the prose on both sides."""
    words = ""
    for piece in pieces_of(text):
        if piece.kind in {"prose", "hidden"}:
            words += piece.text if piece.kind == "prose" else " "
        else:
            yield from (Piece("prose", words), piece)
            words = ""
    yield Piece("prose", words)


def prose_characters(text: str) -> str:
    """Return prose with HTML entities replaced by their characters, and without invisible characters."""
    return without_invisible(_ENTITY.sub(_character, text))


def without_link_titles(text: str) -> str:
    """Return prose without link titles, which a page shows only under the mouse pointer."""
    return _DEFINITION_TITLE.sub(r"\1", _LINK_TITLE.sub(r"\1)", text))


def without_unseen(tag: str) -> str:
    """Return a tag without attributes whose words a page does not show."""
    return _UNSEEN.sub("", tag)


def without_fence_words(code: str) -> str:
    """Return a code block with only the language in its first line; no page shows further words there."""
    first, newline, rest = code.partition("\n")
    shown = _FENCE_WORDS.sub(r"\1", first) if newline else first
    return f"{shown}{newline}{rest}"


def _character(match: re.Match[str]) -> str:
    character = html.unescape(match[0])
    return character if _SHOWN.fullmatch(character) or not without_invisible(character) else match[0]


def _defined(match: re.Match[str], labels: str) -> str:
    """Return a link's definition; escape a definition that no link uses, so that a page shows the text."""
    is_used = labels.count(f"[{match['label'].lower()}]") > 1
    return match[0] if is_used else f"{match[1]}\\{match[2]}"


def _quiet(text: str) -> str:
    """Disarm Septet's hidden marks, and words that skip CI, because both work even in a code block."""
    text = _SKIPS_CI.sub(lambda match: f"({match[1] or match[2]})", text)
    return _MARK.sub("<! ", text).replace(_OWN, "!")
