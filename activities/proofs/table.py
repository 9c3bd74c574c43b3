"""Which proof is which step's."""

from collections.abc import Callable, Mapping
from typing import Final

from activities.host.claims import AnyClaim, Proof
from activities.host.host import Host
from activities.proofs.build_plan import prove_build_plan
from activities.proofs.classify_issue import prove_classify_issue
from activities.proofs.create_commit import prove_create_commit
from activities.proofs.create_pull_request import prove_create_pull_request
from activities.proofs.find_plan_file import prove_find_plan_file
from activities.proofs.generate_branch import prove_generate_branch
from activities.proofs.implement_plan import prove_implement_plan
from activities.proofs.read_outgoing import prove_read_outgoing
from activities.proofs.rework import prove_rework
from septet.contracts.names import READ_OUTGOING, REWORK, Step

PROOFS: Final[Mapping[str, Callable[[Host, AnyClaim], Proof]]] = {
    Step.CLASSIFY_ISSUE: prove_classify_issue,
    Step.BUILD_PLAN: prove_build_plan,
    Step.FIND_PLAN_FILE: prove_find_plan_file,
    Step.GENERATE_BRANCH: prove_generate_branch,
    Step.IMPLEMENT_PLAN: prove_implement_plan,
    Step.CREATE_COMMIT: prove_create_commit,
    Step.CREATE_PULL_REQUEST: prove_create_pull_request,
    REWORK: prove_rework,
    READ_OUTGOING: prove_read_outgoing,
}
"""Each holds a claim against git and the forge, and does of it what the agent has left to the engine."""
