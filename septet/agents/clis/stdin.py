"""A prompt as the bytes of a CLI's stdin."""


def stdin_of(prompt: str) -> bytes:
    """Return the prompt so that its first word is no command of the CLI's own (`/init` would be carried out)."""
    text = f"Your task:\n\n{prompt}" if prompt.lstrip().startswith("/") else prompt
    return text.encode("utf-8", errors="replace")
