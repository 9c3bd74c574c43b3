"""Programs that a test puts on a machine, such as an editor, a hook or a git that waits."""

from pathlib import Path


def write_program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path
