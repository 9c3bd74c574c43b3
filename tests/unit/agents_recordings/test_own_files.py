"""The folders of a CLI in the user's home that its agents see."""

from pathlib import Path

import pytest

from septet.agents.clis.adapter import Machine
from septet.agents.clis.own_files import own_folders, own_packages
from septet.agents.clis.registry import ADAPTERS, adapter_for


@pytest.mark.parametrize("name", sorted(ADAPTERS))
def test_a_cli_has_its_own_folders_alone(name: str, tmp_path: Path) -> None:
    """A CLI's folders never include the home itself; the folder of its sessions is made."""
    folders = own_folders(adapter_for(name), Machine({"HOME": str(tmp_path)}))
    assert all(name in folder.name and folder.is_relative_to(tmp_path) for folder in folders)
    assert tmp_path not in folders
    assert all(folder.is_dir() for folder in folders[:1])


def test_what_a_cli_has_unpacked_is_named_where_it_is_there(tmp_path: Path) -> None:
    """The folder is named only after copilot has unpacked itself there."""
    host = Machine({"HOME": str(tmp_path)})
    assert own_packages(adapter_for("copilot"), host) == ()
    package = tmp_path / ".cache" / "copilot" / "pkg"
    package.mkdir(parents=True)
    assert own_packages(adapter_for("copilot"), host) == ()
    (package / "1.0.102").mkdir()
    assert own_packages(adapter_for("copilot"), host) == (package,)
