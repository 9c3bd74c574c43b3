"""The supervisor's side of a guest's proxy."""

import os

from septet.agents.proxy.way_out import WayOut


def test_a_proxy_that_cannot_be_replaced_keeps_no_supervisor_from_its_record() -> None:
    """A supervisor whose proxy cannot be replaced does not wait for the proxy's log or end."""
    way_out = WayOut({"port": 3128})
    assert not way_out.replace()
    way_out.await_log()
    way_out.send_log(os.open(os.devnull, os.O_RDONLY))
    way_out.end()
    way_out.control_of_proxy.close()
