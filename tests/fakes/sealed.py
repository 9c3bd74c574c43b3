"""Keys that seal, and machines whose payloads in Temporal are sealed by them."""

from collections.abc import Mapping
from pathlib import Path

from fakes.septet_command import Septet

from septet.key_ring import new_key_line


def write_keys(path: Path, *ids: str) -> Path:
    """Write a file of new keys, of which the first seals."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{new_key_line(each)}\n" for each in ids), encoding="ascii")
    path.chmod(0o600)
    return path


def sealed_machine(root: Path, extra: Mapping[str, str] | None = None) -> Septet:
    """Return a machine whose commands all seal with the one key of `root/keys`."""
    keys = write_keys(root / "keys", "k1")
    return Septet(root, {"SEPTET_SEAL_KEYS_FILE": str(keys), **(extra or {})})
