"""Webhooks of GitHub: `X-GitHub-Event` has the kind, `X-Hub-Signature-256` the signature."""

from typing import Final

from septet.forges.events.webhook_events import EventForm, common_readers
from septet.forges.events.webhooks import Delivery, WebhookKind, is_hmac_sha256

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
