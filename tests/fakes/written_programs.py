"""Executable programs that a test writes."""

from pathlib import Path


def write_program(path: Path, text: str) -> Path:
    """Write an executable program, and its folder if that is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path
