"""All kinds of forges with an HTTP API; a new forge needs a package and an entry in `KINDS`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from septet.forges.events.webhooks import Delivery, EventForm, WebhookKind, common_readers, is_hmac_sha256
from septet.forges.forge import Forge
from septet.forges.gitea.forge import GiteaForge, gitea_api
from septet.forges.github.forge import GitHubForge, github_api
from septet.forges.gitlab.forge import GitLabForge, gitlab_api
from septet.forges.gitlab.webhooks import GITLAB_WEBHOOK
from septet.git.engine.address import Address


@dataclass(frozen=True, slots=True)
class ForgeKind:
    """A kind of forge with an HTTP API: its names, its webhooks, and how to connect to it."""

    name: str
    """The name in records and settings: `SEPTET_<NAME>_TOKEN`, `_HOSTS` and `_API_URL`."""
    title: str
    """The name for people."""
    nests: bool
    """Whether repositories may be in groups of groups."""
    connect: Callable[[Address, str | None, str | None], Forge]
    """Returns the forge for a repository's address, an API address (`None` for the usual one) and a key."""
    webhook: WebhookKind
    """How the forge sends events to `POST /webhooks/<name>`."""
    login: tuple[str, ...] = ()
    """The command that prints a token; Septet appends the host name. Empty if there is no such command."""


def _web_address(address: Address) -> str:
    """Return the web address of a repository's forge: http only if the repository's address is http."""
    scheme = "http" if address.url.startswith("http://") else "https"
    return f"{scheme}://{address.host}"


_PUBLIC_GITHUB: Final = "github.com"
_GITHUB_EVENTS: Final = EventForm(
    forge="github",
    issue_actions=frozenset({"opened", "reopened", "labeled"}),
    push_action="synchronize",
    review_actions=frozenset({"submitted", "created"}),
)


def _is_signed_by_github(delivery: Delivery, secret: str) -> bool:
    algorithm, _, signature = delivery.header("x-hub-signature-256").partition("=")
    return algorithm == "sha256" and is_hmac_sha256(delivery.body, secret, signature)


def github_api_url(address: Address, api_url: str | None) -> str:
    """Return the address of a repository's API: `api_url` from the settings, or else GitHub's usual address."""
    is_public = address.host == _PUBLIC_GITHUB
    return api_url or (f"https://api.{_PUBLIC_GITHUB}" if is_public else f"https://{address.host}/api/v3")


GITHUB: Final = ForgeKind(
    "github",
    "GitHub",
    nests=False,
    connect=lambda address, api_url, token: GitHubForge(
        address.project, github_api(github_api_url(address, api_url), token)
    ),
    webhook=WebhookKind(
        is_signed=_is_signed_by_github,
        event_header="x-github-event",
        readers={
            **common_readers(_GITHUB_EVENTS),
            "pull_request_review": _GITHUB_EVENTS.review,
            "pull_request_review_comment": _GITHUB_EVENTS.review,
            "check_run": _GITHUB_EVENTS.checks,
            "check_suite": _GITHUB_EVENTS.checks,
        },
    ),
    login=("gh", "auth", "token", "--hostname"),
)
GITLAB: Final = ForgeKind(
    "gitlab",
    "GitLab",
    nests=True,
    connect=lambda address, api_url, token: GitLabForge(
        address.project, gitlab_api(api_url or f"{_web_address(address)}/api/v4", token)
    ),
    webhook=GITLAB_WEBHOOK,
    login=("glab", "config", "get", "token", "--host"),
)
_GITEA_EVENTS: Final = EventForm(
    forge="gitea",
    issue_actions=frozenset({"opened", "reopened", "label_updated"}),
    push_action="synchronized",
    review_actions=frozenset({"reviewed"}),
)
GITEA: Final = ForgeKind(
    "gitea",
    "Gitea",
    nests=False,
    connect=lambda address, api_url, token: GiteaForge(
        address.project, gitea_api(api_url or f"{_web_address(address)}/api/v1", token)
    ),
    webhook=WebhookKind(
        is_signed=lambda delivery, secret: is_hmac_sha256(
            delivery.body, secret, delivery.header("x-gitea-signature")
        ),
        event_header="x-gitea-event",
        readers={
            **common_readers(_GITEA_EVENTS),
            "pull_request_approved": _GITEA_EVENTS.review,
            "pull_request_rejected": _GITEA_EVENTS.review,
            "pull_request_comment": _GITEA_EVENTS.review,
        },
    ),
)
KINDS: Final = (GITHUB, GITLAB, GITEA)
"""All forges except `local`."""
WEBHOOK_KINDS: Final = {kind.name: kind.webhook for kind in KINDS}
"""The webhooks of each kind, by the name in their path, such as `POST /webhooks/github`."""
