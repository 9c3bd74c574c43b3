"""Tokens of a GitHub App, which are valid for an hour and replace a person's token."""

import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from septet.errors import ForgeError
from septet.forges.answers import Foreign
from septet.forges.http.api import HttpApi
from septet.forges.http.pauses import PAUSES
from septet.system.masking import hide_of

_KEPT_SECONDS: Final = 3000.0
"""The age in seconds at which a token is replaced; it expires after an hour, and requests may take minutes."""
_JWT_SECONDS: Final = 540
"""The life of a JWT in seconds; GitHub accepts at most ten minutes."""
_BY_ID: Final = re.compile(r"/repositories/(\d+)/installation$")
_REMEDIES: Final[Mapping[int, str]] = {
    401: (
        "Make sure that SEPTET_GITHUB_APP_ID and SEPTET_GITHUB_APP_KEY_FILE belong together, and "
        "that the clock is right."
    ),
    404: "Install the App on the repository's account, and give it this repository.",
}


class _Installation(Foreign):
    id: int


class _InstallationToken(Foreign):
    token: str


@dataclass(frozen=True, slots=True)
class GitHubApp:
    """A GitHub App, and the key with which it requests tokens."""

    id: str
    """The App id or the client id."""
    key_file: Path
    """The file with the App's private key, in PEM."""


@dataclass(slots=True)
class InstallationTokens:
    """The tokens of the App's installations, replaced before they expire."""

    _known: dict[tuple[str, str, str], tuple[float, str]] = field(default_factory=dict)
    """For each App, API and repository, the token and when it was requested, by the monotonic clock."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def token(self, app: GitHubApp, api_url: str, project: str) -> str:
        """Return a token for a repository, on which the App must be installed.

        Raises:
            NotFoundError: The App is not installed on the repository.
            ForgeUnavailableError: GitHub did not answer.
            ForgeError: The key cannot be used, or GitHub refused.
        """
        key = (app.id, api_url, project)
        with self._lock:
            known = self._known.get(key)
            if known is not None and time.monotonic() - known[0] < _KEPT_SECONDS:
                return known[1]
            began, token = time.monotonic(), _ask(app, api_url, project)
            self._known[key] = (began, token)
            return token


def _ask(app: GitHubApp, api_url: str, project: str) -> str:
    jwt = _jwt(app)
    PAUSES.count_for(jwt, f"app {app.id}")
    api = HttpApi("GitHub", api_url, jwt, _REMEDIES)
    with api.asking(f"a token of GitHub App {app.id} for {project}") as client:
        answer = client.send("GET", f"/repos/{project}/installation")
        found = _Installation.model_validate_json(answer.content)
        by_id = _BY_ID.search(answer.url.path)  # GitHub redirects a renamed repository's request to its id
        wished = {"repository_ids": [int(by_id[1])]} if by_id else {"repositories": [project.partition("/")[2]]}
        token = client.post(_InstallationToken, f"/app/installations/{found.id}/access_tokens", wished).token
    # A token lasts an hour: to mask the tokens of a whole year would slow the masking of each line.
    hide_of(f"app {app.id}, {api_url}, {project}", [token])
    PAUSES.count_for(token, f"installation {found.id} of app {app.id}")
    return token


def _jwt(app: GitHubApp) -> str:
    """Return a JWT that authenticates the App for some minutes, signed with the App's key."""
    import jwt  # ten megabytes, which only a worker with an App needs

    now = int(time.time())
    # The clocks may differ by a minute.
    claims = {"iat": now - 60, "exp": now + _JWT_SECONDS, "iss": app.id}
    try:
        return jwt.encode(claims, app.key_file.read_bytes(), algorithm="RS256")
    except (OSError, ValueError, TypeError, jwt.InvalidKeyError) as error:
        raise ForgeError(
            f"The RSA key of GitHub App {app.id} at {app.key_file} cannot be read: {type(error).__name__}.",
            remedy="Make it a PEM file with the App's private key that the worker's user may read; or start the "
            "worker (`septet up`) again with another SEPTET_GITHUB_APP_KEY_FILE. Then run `septet retry ID`.",
        ) from error


INSTALLATIONS: Final = InstallationTokens()
"""The installation tokens of this process."""
