"""The address of a repository, as people and programs give it: what is read of it has no credentials."""

import re
from typing import Annotated, Final

from pydantic import AfterValidator, StringConstraints

_ACCOUNT: Final = re.compile(
    r"^(?P<scheme>\s*[A-Za-z][A-Za-z0-9+.-]*://)(?P<user>[^/?#:]*)(?P<password>:[^/?#]*)?@"
)
_ACCOUNT_OF_SCP: Final = re.compile(r"^(?P<user>\s*[A-Za-z0-9_][A-Za-z0-9._-]*):[^/]*@(?=[^@/:]+:)")


def without_credentials(address: str) -> str:
    """Return an address without password and token; the user stays where ssh needs one. A path stays as it is.

    Of an `http` or `https` address the user goes too, for it may be a token; and so does a query, or a fragment.
    """
    if "://" not in address:
        return _ACCOUNT_OF_SCP.sub(r"\g<user>@", address, count=1)
    is_ssh = address.lower().lstrip().startswith(("ssh://", "git+ssh://"))
    kept = r"\g<scheme>\g<user>@" if is_ssh else r"\g<scheme>"
    shown = _ACCOUNT.sub(kept, address, count=1)
    return shown if shown.lower().startswith("file:") else re.split(r"[?#]", shown, maxsplit=1)[0]


Repository = Annotated[
    str,
    StringConstraints(min_length=1, max_length=2048, pattern=r"^[^\x00-\x1f]+$"),
    AfterValidator(without_credentials),
]
"""It goes into search attributes, rows and summaries, of which not all are sealed."""
