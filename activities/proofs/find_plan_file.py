"""Step 3 is proved by the file."""

import hashlib
from functools import partial
from typing import Final

from activities.host.claims import Claim, Proof, prove_bare
from activities.host.host import Host
from activities.outgoing.plan_text import read_plan_text
from septet.answers.plain import bare_values
from septet.contracts.answers import FindPlanFileAnswer
from septet.git.evidence.evidence import is_ignored, plan_file

NONE: Final = "0"
"""What the agent answers when there is no plan."""
_IGNORED: Final = "the repository ignores {}: the plan will not be on the branch, nor linked from the pull request"


def prove_find_plan_file(_: Host, claim: Claim[FindPlanFileAnswer]) -> Proof:
    """Look whether the file is there; `0` is an answer too, and the workflow plans once more."""
    given = claim.answer.plan_path
    if given == NONE:
        return Proof(NONE)
    path = prove_bare(given, bare_values(given), partial(plan_file, claim.place))
    changed = any(change.path == path for change in claim.evidence.files_changed)
    warnings = (_IGNORED.format(path),) if not changed and is_ignored(claim.place, path) else ()
    content = read_plan_text(claim.place, path)
    sha256 = hashlib.sha256(content).hexdigest()
    return Proof(path, plan_sha256=sha256, plan_bytes=len(content), warnings=warnings)
