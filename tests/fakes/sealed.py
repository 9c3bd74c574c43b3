"""Keys for sealing, and machines that seal their payloads in Temporal."""

from base64 import b64encode
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fakes.septet_command import Running, Septet
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHistory

from clients.page.access import cookie_name
from clients.page.key import looking_key
from septet.keys.key_ring import keys_in_file, new_key_line
from workers.connection.payload_codec import SealingCodec
from workers.connection.plugin import SeptetPlugin


def write_keys(path: Path, *ids: str) -> Path:
    """Write a file of new keys; the first key seals."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{new_key_line(each)}\n" for each in ids), encoding="ascii")
    path.chmod(0o600)
    return path


def sealing(client: Client, keys: Path, *, serves: bool = False, required: bool = False) -> Client:
    codec = SealingCodec(keys_in_file(keys), serves=serves, refuses_unsealed=required)
    return Client(client.service_client, namespace=client.namespace, plugins=[SeptetPlugin(codec=codec)])


def sealed_machine(root: Path, extra: Mapping[str, str] | None = None) -> Septet:
    keys = write_keys(root / "keys", "k1")
    return Septet(root, {"SEPTET_SEAL_KEYS_FILE": str(keys), **(extra or {})})


def database(state: Path) -> str:
    return "".join(path.read_bytes().decode("latin-1") for path in sorted(state.glob("temporal.db*")))


def words_in(text: str, words: Iterable[str]) -> set[str]:
    """Return the words that a text holds, plain or in base64."""

    def is_in(word: str) -> bool:
        forms = (b64encode(b" " * shift + word.encode()).decode()[4:-4] for shift in range(3))
        return word in text or any(form in text for form in forms)

    return {word for word in words if is_in(word)}


def payloads_in(history: WorkflowHistory) -> list[Payload]:
    """Return all payloads of a history without search attributes, headers and the SDK's own markers."""
    events = (each for each in history.events if each.event_type != EventType.EVENT_TYPE_MARKER_RECORDED)
    return [payload for event in events for payload in payloads_of(event)]


def payloads_of(message: Any) -> list[Payload]:
    found: list[Payload] = []
    for field, value in message.ListFields():
        if field.name in {"search_attributes", "header"} or field.type != field.TYPE_MESSAGE:
            continue
        for each in value.values() if hasattr(value, "values") else (value if field.is_repeated else [value]):
            if isinstance(each, Payload):
                found.append(each)
            elif hasattr(each, "ListFields"):
                found += payloads_of(each)
    return found


def ui_of(up: Running) -> str:
    """Return the address of Temporal's web UI for programs, which need not resolve the browsers' host name."""
    return f"http://127.0.0.1:{up.ready['ui'].rpartition(':')[2]}"


def cookie_of(up: Running) -> str:
    key = up.ready["page"].rpartition("token=")[2]
    return f"{cookie_name(int(up.api.rpartition(':')[2]))}={looking_key(key)}"
