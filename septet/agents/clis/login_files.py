"""The login files of CLIs: what a run gets of a file, and what is written back to the file.

In claude, codex and opencode, a refresh token works once: a refresh returns the next token, which the file must
contain. An agent could change its copy. So only the fields that a refresh replaces are written back, if they hold
a later login of the same account. Septet cannot check an opaque token's account, which only the server knows.
"""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from septet.agents.clis.plain_settings import read_object

_TOKEN: Final = re.compile(r"[\x21-\x7e]{8,16384}")
_LONGEST_SECONDS: Final = 400 * 86400.0
"""The longest time, in seconds, until a credible expiry: no access token is valid for so long."""
_EXPIRED: Final = 1
"""The expiry of an expired token: a time long ago, but not zero, which some CLIs read as no expiry."""

Login = dict[str, Any]
"""The parts of a login file's content that belong to a login."""


@dataclass(frozen=True, slots=True)
class TokenFields:
    """The names of the fields that a refresh of the login changes in a login file."""

    within: str
    """The key of the object with the tokens; for `*`, each object with a refresh token is a login."""
    access: str
    refresh: str
    expires: str = ""
    """The field of the access token's expiry, in milliseconds; empty for a JWT, which holds its expiry."""
    owner: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    noted: tuple[str, ...] = ()
    """The top-level fields that a refresh replaces."""
    document_owner: tuple[str, ...] = ()
    """The top-level fields that identify the account; a CLI may leave them out."""


@dataclass(frozen=True, slots=True)
class LoginFile:
    """A login file of a CLI."""

    name: str
    """The path of the login file; `~` is the user's home."""
    kept: tuple[str, ...] = ()
    """The keys of the file's document that hold this CLI's login; empty if all keys do."""
    tokens: TokenFields | None = None
    """The fields of tokens that work only once; `None` if a run's copy is never written back."""

    def read(self, content: bytes | None) -> Login | None:
        """Return the login in a file's content; `None` if there is no login."""
        document = read_object(content) if content is not None else None
        if document is None:
            return None
        return {key: value for key, value in document.items() if not self.kept or key in self.kept} or None

    def expires_at(self, login: Login) -> float | None:
        """Return when the first access token of a login expires, in seconds since the epoch; `None` if unknown."""
        moments = [self._expiry(entry) for entry in self._entries(login).values()]
        return min((each for each in moments if each is not None), default=None)

    def as_expired(self, login: Login) -> Login:
        """Return the login with expired access tokens, so that a CLI refreshes the login when it starts."""
        due = deepcopy(login)
        for entry in self._entries(due).values():
            if self.tokens is not None and self.tokens.expires:
                entry[self.tokens.expires] = _EXPIRED
            elif self.tokens is not None:
                entry[self.tokens.access] = _expired_jwt(entry[self.tokens.access])
        return due

    def refusal(self, before: Login, after: Login, now: float) -> str:
        """Return why the login `after` must not replace the login `before`; empty if it may.

        The user's file has `before`, and a run's copy has `after`. `now` is the time in seconds.
        """
        old, new = self._entries(before), self._entries(after)
        refreshed = [name for name in old if new.get(name) != old[name]]
        fields = self.tokens.document_owner if self.tokens is not None else ()
        if any(after.get(key, before.get(key)) != before.get(key) for key in fields):
            return "it is another account's"
        if old.keys() - new.keys():
            return "it has lost its tokens"
        reasons = (self._entry_refusal(old[name], new[name], now) for name in refreshed)
        return next(filter(None, reasons), "" if refreshed else "its tokens are the same")

    def has_tokens_of(self, login: Login, copy: Login) -> bool:
        """Return whether a login has the same tokens as a run's copy, so that nothing has to be written back."""
        fields, own, copied = self.tokens, self._entries(login), self._entries(copy)
        if fields is None or not own or own.keys() - copied.keys():
            return False
        names = (fields.access, fields.refresh, fields.expires)
        return all(entry.get(key) == copied[name].get(key) for name, entry in own.items() for key in names)

    def merge(self, content: bytes, after: Login) -> bytes:
        """Return the content of the user's file with the tokens of `after`, and otherwise unchanged."""
        fields = self.tokens
        document = read_object(content)
        if fields is None or document is None:
            return content
        new = self._entries(after)
        for name, entry in self._entries(document).items():
            replaced = (fields.access, fields.refresh, fields.expires, *fields.replaced)
            entry |= {key: new[name][key] for key in replaced if key in entry and key in new[name]}
        document |= {key: after[key] for key in fields.noted if key in document and _is_plain(after.get(key))}
        return json.dumps(document, indent=2).encode()

    def _entry_refusal(self, was: Login, now_is: Login, now: float) -> str:
        fields = self.tokens
        if fields is None:
            return "it has no tokens that change"
        tokens = (now_is.get(fields.access), now_is.get(fields.refresh))
        if not all(isinstance(token, str) and _TOKEN.fullmatch(token) for token in tokens):
            return "it has no tokens"
        if not all(_is_plain(now_is.get(key)) for key in fields.replaced if key in was):
            return "it has lost a field"
        if self._owner(was) != self._owner(now_is):
            return "it is another account's"
        before, after = self._expiry(was), self._expiry(now_is)
        if after is None or (before is not None and after <= before) or after > now + _LONGEST_SECONDS:
            return "it is not a newer one"
        return ""

    def _entries(self, login: Login) -> dict[str, Login]:
        fields = self.tokens
        if fields is None:
            return {}
        names = tuple(login) if fields.within == "*" else (fields.within,)
        entries = {name: login.get(name) for name in names}
        return {
            name: entry
            for name, entry in entries.items()
            if isinstance(entry, dict) and isinstance(entry.get(fields.refresh), str) and entry[fields.refresh]
        }

    def _expiry(self, entry: Login) -> float | None:
        fields = self.tokens
        if fields is None:
            return None
        if fields.expires:
            moment = entry.get(fields.expires)
            return moment / 1000 if isinstance(moment, (int, float)) and not isinstance(moment, bool) else None
        moment = _claims(entry.get(fields.access)).get("exp")
        return float(moment) if isinstance(moment, (int, float)) and not isinstance(moment, bool) else None

    def _owner(self, entry: Login) -> tuple[object, ...]:
        fields = self.tokens
        if fields is None:
            return ()
        named = tuple(entry.get(key) for key in fields.owner)
        if fields.expires:
            return named
        return (*named, *(_subject(entry.get(key)) for key in (fields.access, *fields.replaced)))


def digest_of(login: Login | None) -> str:
    """Return a digest of a login, which shows whether the login has changed."""
    return hashlib.sha256(json.dumps(login, sort_keys=True).encode()).hexdigest()


def _is_plain(value: object) -> bool:
    """Return whether a value is a number, or a text of 8 to 16384 visible ASCII characters."""
    is_text = isinstance(value, str) and bool(_TOKEN.fullmatch(value))
    return is_text or (isinstance(value, (int, float)) and not isinstance(value, bool))


def _subject(token: object) -> tuple[object, object]:
    claims = _claims(token)
    account = claims.get("https://api.openai.com/auth")
    return claims.get("sub"), account.get("chatgpt_account_id") if isinstance(account, dict) else None


def _claims(token: object) -> Mapping[str, Any]:
    """Return the claims of a JWT; empty for a text that is no JWT."""
    match token.split(".") if isinstance(token, str) else []:
        case [_header, payload, _signature]:
            with suppress(ValueError, RecursionError):
                claims = json.loads(base64.urlsafe_b64decode(f"{payload}=="))
                return claims if isinstance(claims, dict) else {}
    return {}


def _expired_jwt(token: str) -> str:
    claims = {**_claims(token), "exp": _EXPIRED}
    header, _, signature = (*token.split("."), "", "")[:3]
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"{header}.{payload}.{signature}"
