"""The checks of `septet doctor` on the further logins that `SEPTET_<AGENT>_LOGINS` names."""

from collections.abc import Iterator
from pathlib import Path

from clients.cli.doctor.machine_checks import Check
from septet.agents.clis.adapter import Adapter, Machine
from septet.agents.clis.named_logins import read_login
from septet.agents.clis.registry import adapter_for
from septet.agents.clis.usable import seen_login
from septet.errors import SeptetError
from septet.settings import Settings


def login_checks(settings: Settings, machine: Machine) -> Iterator[Check]:
    """Yield for each further login whether it can be used, in the order in which work moves to them.

    Args:
        settings: Those of the workers of this machine.
        machine: What agents find here.
    """
    for agent, logins in settings.agent_logins.items():
        for name, path in logins.items():
            title = f"login {name} of {agent}"
            try:
                yield _login(title, adapter_for(agent), machine, name, path)
            except SeptetError as error:
                yield Check(title, "failed", f"No worker starts with it: {error.message}", error.remedy)


def _login(title: str, adapter: Adapter, machine: Machine, name: str, path: Path) -> Check:
    """Check that the CLI's login exists; only the model's provider can check that it is valid.

    Raises:
        InvalidInputError: It cannot be used.
    """
    login, facts = read_login(adapter, machine, name, path), adapter.capabilities
    seen = seen_login(adapter, login.machine)
    if seen is None and facts.needs_login:
        home = f"{facts.home[0]}={path} " if login.folder is not None else ""
        ways = (
            f"Log in with `{home}{adapter.name}`" if home else f"Write one of {', '.join(facts.login_variables)}"
        )
        return Check(title, "warning", f"No login was found in {path}.", f"{ways}.")
    return Check(title, "ok", f"{path}; login found: {seen}" if seen else str(path))
