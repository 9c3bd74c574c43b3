"""What a run of schemathesis is told beside the API's description: what there is, and what no schema can say."""

import os
import zlib
from typing import Any

import schemathesis

ORDERS = os.environ.get("SEPTET_ORDERS", "").split()
PIPELINES = os.environ.get("SEPTET_PIPELINES", "").split()
CLOSED = os.environ.get("SEPTET_CLOSED_ORDERS", "").split()


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Ask two times of three for what there is, a stream only of what ends; and name issues as a pipeline takes them.

    Ids of issues are unique, one without a number has a title, and what they depend on is among them.
    """
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    for name, known in (
        ("order_id", CLOSED if case.path.endswith("/stream") else ORDERS),
        ("pipeline_id", PIPELINES),
    ):
        given = case.path_parameters.get(name) if case.path_parameters else None
        chosen = zlib.crc32(repr((given, case.body, case.query)).encode(errors="replace"))
        if isinstance(given, str) and known and chosen % 3:
            case.path_parameters[name] = known[chosen % len(known)]
    if case.path == "/pipelines" and isinstance(case.body, dict) and case.body.get("issues"):
        case.body["issues"] = [
            {**issue, "id": f"i{at}", "title": "T", "depends_on": []}
            if isinstance(issue, dict)
            else 1_000_000 + at
            for at, issue in enumerate(case.body["issues"])
        ]
