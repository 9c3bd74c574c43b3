"""The last thing that an answer passes: the keys of this process are masked in it, whatever it was made of."""

from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from septet.system.masking import hidden_values, mask_bytes, mask_json

_JSON: Final = b"json"


class MaskedAnswers:
    """Masks bodies: whole ones, and each part of a stream, of which events are never torn apart."""

    def __init__(self, app: ASGIApp) -> None:
        """Stand before `app`."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and hidden_values():
            send = _Masking(send).send
        await self._app(scope, receive, send)


class _Masking:
    """One answer: its head waits for the first part of its body, whose length it may tell."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._head: Message | None = None
        self._is_json = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._head = message
            self._is_json = any(
                name.lower() == b"content-type" and _JSON in value for name, value in message["headers"]
            )
            return
        if message["type"] == "http.response.body":
            is_whole = self._head is not None and not message.get("more_body", False)
            mask = mask_json if is_whole and self._is_json else mask_bytes
            message = {**message, "body": mask(message.get("body", b""))}
            await self._send_head(len(message["body"]) if is_whole else None)
        await self._send(message)

    async def _send_head(self, length: int | None) -> None:
        head, self._head = self._head, None
        if head is None:
            return
        told = [(name, value) for name, value in head["headers"] if name.lower() != b"content-length"]
        if len(told) < len(head["headers"]) and length is not None:
            told.append((b"content-length", str(length).encode()))
        await self._send({**head, "headers": told})
