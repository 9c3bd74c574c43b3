"""docs/architecture.md describes the packages of `septet/` as they are."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"


def _rooms(folder: Path) -> set[str]:
    packages = {f"{path.parent.name}/" for path in folder.glob("*/__init__.py")}
    return packages | {path.name for path in folder.glob("*.py") if path.name != "__init__.py"}


def test_the_picture_shows_every_room_of_the_core_and_no_other() -> None:
    """The picture shows exactly the packages and modules of `septet/` and `septet/agents/`."""
    (picture,) = re.findall(r"## The rooms\n\n```\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    core = picture[picture.index("septet/ ") + len("septet/ ") :]
    words = [word for line in core.splitlines()[1:] for word in line.split()]
    names = {word for word in words if re.fullmatch(r"[a-z_]+(?:/|\.py)", word)}
    assert names == _rooms(ROOT / "septet") | _rooms(ROOT / "septet" / "agents")


def test_every_path_that_the_documents_name_is_there() -> None:
    """Each path of ours that a document names exists."""
    missing = {
        f"{page.relative_to(ROOT)}: {path}"
        for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
        for path in re.findall(
            r"`((?:septet|activities|workflows|workers|clients|tests)/[\w./-]*)`", page.read_text("utf-8")
        )
        if not (ROOT / path).exists()
    }
    assert missing == set()
