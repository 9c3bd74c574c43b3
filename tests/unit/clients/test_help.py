from clients.cli.commands import GROUPS
from clients.cli.commands import SEPTET as TABLE


def test_each_command_stands_in_one_group() -> None:
    """`septet --help` lists every command in exactly one group."""
    assert sorted([name for group in GROUPS.values() for name in group]) == sorted(TABLE.commands)
