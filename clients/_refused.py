"""What the Temporal server refuses, in words of ours: of a work order, and of one that has to be open."""

from temporalio.service import RPCError, RPCStatusCode

from septet.errors import NotFoundError, RefusedTransitionError, SeptetError, ServerNotReachedError


def refused(error: RPCError) -> ServerNotReachedError:
    """Return what is said where the server did not do what everybody may ask for."""
    return ServerNotReachedError(f"The Temporal server refused: {error.message}.")


def refused_of(error: RPCError, order_id: str) -> SeptetError:
    """Return what is said where the server did not tell of a work order."""
    if error.status is RPCStatusCode.NOT_FOUND:
        return NotFoundError(f"There is no work order {order_id}.", remedy="See them all with `septet board`.")
    return refused(error)


def refused_of_pipeline(error: RPCError, pipeline_id: str) -> SeptetError:
    """Return what is said where the server did not tell of a pipeline."""
    if error.status is RPCStatusCode.NOT_FOUND:
        remedy = "See them all with `septet pipeline list`."
        return NotFoundError(f"There is no pipeline {pipeline_id}.", remedy=remedy)
    return refused(error)


def refused_of_open(error: RPCError, order_id: str, show: str = "septet show") -> SeptetError:
    """Return what is said where a workflow was to be open: it may have met its end meanwhile.

    Args:
        error: The server's.
        order_id: The work order's, or the pipeline's.
        show: The command by which people look at it.
    """
    if error.status is RPCStatusCode.NOT_FOUND:
        remedy = f"Look at it with `{show} {order_id}`."
        return RefusedTransitionError(f"{order_id} is not open: {error.message}.", remedy=remedy)
    return refused(error)
