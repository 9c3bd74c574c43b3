"""Webhooks of Gitea and Forgejo: mostly GitHub's form, with other names of kinds and actions."""

from typing import Final

from septet.forges.events.webhook_events import EventForm, common_readers
from septet.forges.events.webhooks import Delivery, WebhookKind, is_hmac_sha256

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
