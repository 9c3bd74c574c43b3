"""Log the error that ends a service."""

import json
import sys
from datetime import UTC, datetime

from septet.contracts.task import TaskError
from septet.errors import SeptetError
from septet.settings import load_settings
from septet.system.masking import mask
from septet.system.timestamps import timestamp
from workers.observing.logs import logs_are_json


def log_end(error: TaskError) -> bool:
    """Log an error that ends this service, and return `True`; if a person reads the logs, only return `False`."""
    try:
        settings = load_settings()
    except SeptetError:  # the settings are the error
        settings = None
    if not logs_are_json(settings):
        return False
    event = {"event": "ended_by_error", **error.model_dump(), "level": "error"}
    line = json.dumps({**event, "timestamp": timestamp(datetime.now(UTC))}, ensure_ascii=False)
    sys.stderr.write(mask(line) + "\n")
    return True
