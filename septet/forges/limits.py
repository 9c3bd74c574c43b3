"""The limits for titles, bodies, logs and lists on forges."""

from typing import Final

TITLE_LIMIT: Final = 256
"""The most characters of a title on GitHub."""
SHORT_TITLE_LIMIT: Final = 255
"""The most characters of a title on GitLab and Gitea, with the prefix of a draft."""
BODY_LIMIT: Final = 60_000
"""The most characters of a pull request's body; GitHub accepts 65,536."""
BODIES_LIMIT: Final = 65_000
"""The most characters of the body of a pull request for several work orders."""
MOST_BRANCHES: Final = 1000
"""The most branches with one prefix that are read."""
LOG_LIMIT: Final = 8000
"""The most characters of a failed check's log, from its end."""
LOG_TAIL_BYTES: Final = 4 * LOG_LIMIT
MOST_THREADS: Final = 100
"""The most review threads that are read, the newest first."""
MOST_COMMENT_PAGES: Final = 5
"""The most pages of one search for comments; the next search continues from the last comment."""
