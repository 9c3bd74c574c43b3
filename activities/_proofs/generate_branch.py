"""Step 4 is proved by the branch, which is made where the agent has not made it."""

from activities._claims import Claim, Proof
from activities.host import Host
from septet.contracts.answers import GenerateBranchAnswer
from septet.contracts.steps import StepCall
from septet.errors import EvidenceError
from septet.git.branches import branch_refusal, create_branch
from septet.system.masking import mask


def prove_generate_branch(host: Host, claim: Claim[GenerateBranchAnswer]) -> Proof:
    """Check name and remote, and make it the worktree's branch where the agent has not.

    Raises:
        EvidenceError: The name cannot be used.
    """
    name, token = claim.answer.branch_name, host.token_for(claim.call.workspace.repository)
    if mask(name) != name:
        raise EvidenceError("The branch's name holds a key of the worker: choose another one.")
    if refusal := branch_refusal(claim.place, name, token=token):
        raise EvidenceError(refusal)
    claim.fence.check()
    create_branch(claim.place, name)
    return Proof(name, warnings=_unusual(claim.call, name))


def _unusual(call: StepCall, name: str) -> tuple[str, ...]:
    """Warn of a name that nobody finds by its work order; a repository may have its own custom."""
    order_id = call.workspace.work_order_id
    return () if order_id in name else (f"the branch's name does not hold the work order's id, {order_id}",)
