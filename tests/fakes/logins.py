"""Made-up logins by subscription in the CLIs' own files, before and after refreshes."""

import base64
import json
import time
from pathlib import Path
from typing import Any

HOUR = 3600.0
FILES = {
    "claude": ".claude/.credentials.json",
    "codex": ".codex/auth.json",
    "opencode": ".local/share/opencode/auth.json",
}


def jwt(account: str, expires_at: float) -> str:
    claims = {
        "sub": account,
        "exp": int(expires_at),
        "https://api.openai.com/auth": {"chatgpt_account_id": account},
    }
    parts = ({"alg": "none"}, claims)
    words = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join((*words, "signature"))


def login(agent: str, number: int, valid_seconds: float = 8 * HOUR, account: str = "ann") -> dict[str, Any]:
    """Return the login of an account after `number` refreshes, with other secrets that no guest may read."""
    expires_at = time.time() + valid_seconds
    if agent == "codex":
        token = jwt(account, expires_at)
        tokens = {
            "id_token": token, "access_token": token, "refresh_token": f"refresh-{account}-{number}", "account_id": account,
        }  # fmt: skip
        return {"OPENAI_API_KEY": None, "tokens": tokens, "last_refresh": f"2026-11-23T10:00:{number:02}Z"}
    access, refresh, moment = f"access-{account}-{number}", f"refresh-{account}-{number}", int(expires_at * 1000)
    if agent == "opencode":
        oauth = {"type": "oauth", "access": access, "refresh": refresh, "expires": moment, "accountId": account}
        return {"anthropic": oauth, "groq": {"type": "api", "key": "key-of-groq"}}
    oauth = {"accessToken": access, "refreshToken": refresh, "expiresAt": moment, "scopes": ["user:inference"]}
    return {"claudeAiOauth": oauth, "organizationUuid": account, "mcpOAuth": {"a-server": "key-of-a-server"}}


def log_in(home: Path, agent: str, document: dict[str, Any]) -> Path:
    path = home / FILES[agent]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document), encoding="utf-8")
    path.chmod(0o600)
    return path
