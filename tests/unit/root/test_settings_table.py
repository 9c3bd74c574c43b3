"""The tables of settings in docs/."""

import re
from collections.abc import Iterator
from pathlib import Path

from pydantic import AliasChoices

from septet.settings import Settings

_NAMES = ("settings.md", "forges.md", "observability.md")
PAGES = [Path(__file__).parents[3] / "docs" / name for name in _NAMES]
NO_FIELD = {"SEPTET_<AGENT>_PATH", "SEPTET_<AGENT>_LOGINS"}
"""The variables of `Settings.agent_programs` and `agent_logins`."""


def variables() -> Iterator[str]:
    for name, about in Settings.model_fields.items():
        if about.exclude:
            continue
        if isinstance(about.validation_alias, AliasChoices):
            yield from (str(choice) for choice in about.validation_alias.choices if str(choice).isupper())
        else:
            yield f"SEPTET_{name.upper()}"


def test_the_tables_of_settings_name_every_setting_once_and_nothing_else() -> None:
    """The tables name each variable of a setting exactly once, and no other variable."""
    pages = [page.read_text(encoding="utf-8") for page in PAGES]
    sections = [re.split(r"\n## (?:All s|S)ettings\n", page)[1].partition("\n## ")[0] for page in pages]
    cells = [line.split("|")[1] for text in sections for line in text.splitlines() if line.startswith("| `")]

    named = [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]

    assert sorted({*variables(), *NO_FIELD}) == sorted(named)
