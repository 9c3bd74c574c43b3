"""The forges that send webhooks, by the names in their paths: `POST /webhooks/github`."""

from collections.abc import Mapping
from typing import Final

from septet.forges.gitea.webhook import GITEA_WEBHOOK
from septet.forges.github.webhook import GITHUB_WEBHOOK
from septet.forges.gitlab.webhook import GITLAB_WEBHOOK
from septet.forges.webhooks import WebhookKind

WEBHOOK_KINDS: Final[Mapping[str, WebhookKind]] = {
    "github": GITHUB_WEBHOOK,
    "gitlab": GITLAB_WEBHOOK,
    "gitea": GITEA_WEBHOOK,
}
"""Another forge is another module, and a line here."""
