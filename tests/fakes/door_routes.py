"""Attempts of strangers to get in, which `tests/acceptance/test_doors.py` tries with and without each protection."""

from dataclasses import dataclass

from fakes.attack_tables import counted


@dataclass(frozen=True)
class DoorRoute:
    attack: str
    protection: str
    tests: tuple[str, str]
    """The test in which the attempt fails, and the test in which it succeeds without the protection."""


_BROWSER = "test_a_page_of_another_site_starts_and_sees_nothing"
_OPEN_SERVER = "test_a_server_that_asks_nobody_lets_that_page_in"
_LURED = "test_another_port_of_this_machine_gets_no_key_of_the_page"
_NAME_KNOWN = "test_who_knows_the_pages_own_name_is_sent_its_key"
_USER = "test_another_user_reads_no_key_and_no_work"
_OPEN_FILES = "test_files_that_are_open_tell_that_user_all"

DOOR_ROUTES = (
    DoorRoute("a page in the user's browser: start a work order by the HTTP API", "the token, and the page's own `Origin`", (_BROWSER, _OPEN_SERVER)),
    DoorRoute("… cancel one", "the token, and the page's own `Origin`", (_BROWSER, _OPEN_SERVER)),
    DoorRoute("… use the tools of agents", "the token, and the page's own `Origin`", (_BROWSER, _OPEN_SERVER)),
    DoorRoute("… start a workflow by Temporal's web UI", "the relay in front of it", (_BROWSER, _OPEN_SERVER)),
    DoorRoute("… start a workflow by the server's own HTTP API", "it answers no one", (_BROWSER, _OPEN_SERVER)),
    DoorRoute("another user of the machine: lure that browser to another port, for the page's key", "a host name that nobody is told", (_LURED, _NAME_KNOWN)),
    DoorRoute("… read the HTTP API's token", "modes of folders and files", (_USER, _OPEN_FILES)),
    DoorRoute("… read where the server is and how it was started", "modes of folders and files", (_USER, _OPEN_FILES)),
    DoorRoute("… read the embedded server's database", "modes of folders and files", (_USER, _OPEN_FILES)),
)  # fmt: skip


def door_table() -> str:
    pairs = [(each.attack, each.protection) for each in DOOR_ROUTES]
    first_of_user = next(i for i, each in enumerate(DOOR_ROUTES) if each.tests[0] != _BROWSER)
    return counted(
        {
            "a page of another site in the user's browser": pairs[:first_of_user],
            "another user of the machine": pairs[first_of_user:],
        }
    )
