"""Exit 0 when this container's HTTP API answers and reaches the Temporal server, 1 when it does not."""

import json
import sys
import urllib.request

ADDRESS = "http://127.0.0.1:8888/health"
TIMEOUT_SECONDS = 4


def main() -> int:
    """Ask it, and say what it answered."""
    try:
        with urllib.request.urlopen(ADDRESS, timeout=TIMEOUT_SECONDS) as answer:
            health = json.load(answer)
    except OSError as error:
        print(f"the API does not answer: {error}")
        return 1
    print(health)
    return 0 if health["temporal"] else 1


if __name__ == "__main__":
    sys.exit(main())
