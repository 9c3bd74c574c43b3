"""What an account may do in a repository of GitHub's, and whose account a key is."""

from typing import Final

from septet.errors import ForgeError, ForgeUnavailableError, NotFoundError
from septet.forges.github.answers import AccountAnswer, PermissionAnswer
from septet.forges.github.client import asking, read
from septet.forges.github.issue_history import VIEWER, ask_graphql
from septet.forges.own_account import BOT, OWN_ACCOUNTS
from septet.forges.renames import NAMES

_WRITERS: Final = frozenset({"admin", "maintain", "write"})
_HEADERS: Final = {"X-GitHub-Api-Version": "2022-11-28"}


def may_write(api_url: str, token: str | None, project: str, account: str) -> bool:
    """Say whether an account may push to a repository; one that GitHub does not know may not.

    Raises:
        ForgeUnavailableError: GitHub did not answer.
        ForgeError: It refused.
    """
    if account.endswith(BOT):  # GitHub tells no App's right; that of our own follows from its key
        return account.lower() == own_account(api_url, token).lower()
    owner, _, name = NAMES.now(api_url, project).partition("/")
    try:
        with asking(api_url, token, f"what {account} may do in {project}") as github:
            answer = github.rest.repos.get_collaborator_permission_level(owner, name, account, headers=_HEADERS)
            return read(PermissionAnswer, answer).permission in _WRITERS
    except NotFoundError:
        return False


def own_account(api_url: str, token: str | None) -> str:
    """Return the account that the key writes by; empty where GitHub does not tell.

    Raises:
        ForgeUnavailableError: GitHub did not answer.
    """

    def ask() -> str:
        what = "whose key this is"
        try:
            with asking(api_url, token, what) as github:
                return read(AccountAnswer, github.rest.users.get_authenticated(headers=_HEADERS)).login
        except ForgeUnavailableError:
            raise
        except ForgeError:  # the key of an App's installation
            with asking(api_url, token, what) as github:
                login = str(ask_graphql(github, what, VIEWER, {})["viewer"]["login"])
                return login if login.endswith(BOT) else f"{login}{BOT}"

    return OWN_ACCOUNTS.name_of(api_url, token, ask)


def is_own_account(api_url: str, token: str | None, account: str) -> bool:
    """Say whether an account is the one that the key writes by; where an App's is not told, it is no person's.

    Raises:
        ForgeUnavailableError: GitHub did not answer.
    """
    own = own_account(api_url, token)
    return account.lower() == own.lower() if own else account.endswith(BOT)
