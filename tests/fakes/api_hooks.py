"""What a run of schemathesis is told beside the API's description: work orders that there are, by SEPTET_ORDERS."""

import os
import zlib
from typing import Any

import schemathesis

ORDERS = os.environ.get("SEPTET_ORDERS", "").split()
CLOSED = os.environ.get("SEPTET_CLOSED_ORDERS", "").split()


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Ask two times of three for a work order that there is; a stream only of one that ends."""
    given = case.path_parameters.get("order_id") if case.path_parameters else None
    if not isinstance(given, str) or case.meta is None or not case.meta.generation.mode.is_positive:
        return
    known = CLOSED if case.path.endswith("/stream") else ORDERS
    chosen = zlib.crc32(repr((given, case.body, case.query)).encode(errors="replace"))
    if known and chosen % 3:
        case.path_parameters["order_id"] = known[chosen % len(known)]
