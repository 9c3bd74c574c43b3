"""The entry of GitHub for `choose`."""

from typing import Final

from septet.forges.events.webhook_events import EventForm, common_readers
from septet.forges.events.webhooks import Delivery, WebhookKind, is_hmac_sha256
from septet.forges.github.forge import GitHubForge, github_api
from septet.forges.kind import ForgeKind
from septet.git.engine.address import Address

_FORM: Final = EventForm(
    forge="github",
    issue_actions=frozenset({"opened", "reopened", "labeled"}),
    push_action="synchronize",
    review_actions=frozenset({"submitted", "created"}),
)


def _is_signed(delivery: Delivery, secret: str) -> bool:
    algorithm, _, signature = delivery.header("x-hub-signature-256").partition("=")
    return algorithm == "sha256" and is_hmac_sha256(delivery.body, secret, signature)


GITHUB_WEBHOOK: Final = WebhookKind(
    is_signed=_is_signed,
    event_header="x-github-event",
    readers={
        **common_readers(_FORM),
        "pull_request_review": _FORM.review,
        "pull_request_review_comment": _FORM.review,
        "check_run": _FORM.checks,
        "check_suite": _FORM.checks,
    },
)


_PUBLIC: Final = "github.com"


def connect_github(address: Address, api_url: str | None, token: str | None) -> GitHubForge:
    """Return the forge of a repository."""
    return GitHubForge(address.project, github_api(github_api_url(address, api_url), token))


def github_api_url(address: Address, api_url: str | None) -> str:
    """Return the API's address for a repository: from the settings, or else from the host."""
    follows = f"https://api.{_PUBLIC}" if address.host == _PUBLIC else f"https://{address.host}/api/v3"
    return api_url or follows


GITHUB: Final = ForgeKind(
    "github",
    "GitHub",
    nests=False,
    connect=connect_github,
    webhook=GITHUB_WEBHOOK,
    login=("gh", "auth", "token", "--hostname"),
)
