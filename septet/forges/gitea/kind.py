"""The entry of Gitea and Forgejo for `choose`."""

from typing import Final

from septet.forges.events.webhook_events import EventForm, common_readers
from septet.forges.events.webhooks import Delivery, WebhookKind, is_hmac_sha256
from septet.forges.gitea.forge import GiteaForge, gitea_api
from septet.forges.kind import ForgeKind, web_address
from septet.git.engine.address import Address

_FORM: Final = EventForm(
    forge="gitea",
    issue_actions=frozenset({"opened", "reopened", "label_updated"}),
    push_action="synchronized",
    review_actions=frozenset({"reviewed"}),
)


def _is_signed(delivery: Delivery, secret: str) -> bool:
    return is_hmac_sha256(delivery.body, secret, delivery.header("x-gitea-signature"))


GITEA_WEBHOOK: Final = WebhookKind(
    is_signed=_is_signed,
    event_header="x-gitea-event",
    readers={
        **common_readers(_FORM),
        "pull_request_approved": _FORM.review,
        "pull_request_rejected": _FORM.review,
        "pull_request_comment": _FORM.review,
    },
)


def connect_gitea(address: Address, api_url: str | None, token: str | None) -> GiteaForge:
    """Return the forge of a repository."""
    return GiteaForge(address.project, gitea_api(api_url or f"{web_address(address)}/api/v1", token))


GITEA: Final = ForgeKind("gitea", "Gitea", nests=False, connect=connect_gitea, webhook=GITEA_WEBHOOK)
