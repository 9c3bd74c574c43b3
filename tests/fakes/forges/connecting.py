"""The forges on loopback, connected as by a worker whose settings name their host."""

from pathlib import Path
from typing import Final

from fakes.forges.gitea import GiteaFake
from fakes.forges.github import GitHubFake
from fakes.forges.gitlab import GitLabFake
from fakes.forges.state import ForgeFake

from septet.forges.choose import forge_for
from septet.forges.forge import Forge
from septet.git.engine.address import parse_address
from septet.settings import Settings

FAKES: Final[tuple[type[ForgeFake], ...]] = (GitHubFake, GitLabFake, GiteaFake)


def settings_for(fake: ForgeFake, state_dir: Path, token: str = "") -> dict[str, object]:
    return {
        "state_dir": str(state_dir),
        f"{fake.name}_hosts": [fake.url.removeprefix("http://")],
        f"{fake.name}_token": token or fake.token,
        f"{fake.name}_api_url": fake.url + fake.api_path,
    }


def connected(fake: ForgeFake, state_dir: Path, token: str = "") -> Forge:
    settings = Settings.model_validate(settings_for(fake, state_dir, token))
    return forge_for(parse_address(f"{fake.url}/{fake.project}.git"), settings)
