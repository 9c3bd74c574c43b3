"""A client some of whose calls go through a test's functions."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from temporalio.client import Client, Interceptor, OutboundInterceptor

Call = Callable[..., Any]
"""A function of the server's own call and of its input."""


def around(client: Client, **calls: Call) -> Client:
    config = client.config()
    config["interceptors"] = [*config["interceptors"], _Between(calls)]
    return Client(**config)


class _Between(Interceptor):
    def __init__(self, calls: Mapping[str, Call]) -> None:
        self._calls = calls

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:  # noqa: A002 -- the SDK's name
        following = OutboundInterceptor(next)
        for name, call in self._calls.items():
            setattr(following, name, partial(call, getattr(next, name)))
        return following
