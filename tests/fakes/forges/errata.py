"""The errors in a forge's published description."""

from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Erratum:
    """One wrong place of a description: its text, and the forge's behaviour."""

    place: tuple[str, ...]
    """The keys that lead to the place in `tests/data/openapi/NAME.json`."""
    says: Any
    does: Any
    why: str

    def correct(self, described: dict[str, Any]) -> None:
        """Replace the described value by the forge's behaviour, unless the description has another value by now."""
        *way, last = self.place
        holder = described
        for key in way:
            holder = holder[key]
        if holder[last] != self.says:
            raise ValueError(f"{'/'.join(self.place)} says {holder[last]}: look whether it is still wrong.")
        holder[last] = self.does


_SCHEMAS: Final = "#/components/schemas/"
_PROJECT: Final = "/projects/{id}"


def _entity(name: str) -> dict[str, str]:
    return {"$ref": f"{_SCHEMAS}APIEntities{name}"}


def _list_of(schema: object) -> dict[str, object]:
    return {"type": "array", "items": schema}


def _listed(path: str, entity: str) -> Erratum:
    return Erratum(
        ("paths", f"{_PROJECT}{path}", "GET", "responses", "200", "content", "application/json", "schema"),
        _entity(entity),
        _list_of(_entity(entity)),
        "It answers a page of a list; the description has one of its entries.",
    )


def _comma_separated(body: str, name: str) -> Erratum:
    words = {"type": "array", "items": {"type": "string"}}
    return Erratum(
        ("known", f"{_SCHEMAS}RequestBody_{body}", "properties", name),
        words | {"nullable": True},
        {"type": ["array", "string", "null"], "items": {"type": "string"}},
        "It is sent as one text, separated by commas, as its own words for people say.",
    )


GITLAB: Final = (
    _listed("/issues", "Issue"),
    _listed("/issues/{noteable_id}/notes", "Note"),
    _listed("/merge_requests/{noteable_id}/notes", "Note"),
    _listed("/merge_requests/{noteable_id}/discussions", "Discussion"),
    _listed("/events", "Event"),
    Erratum(
        ("known", f"{_SCHEMAS}APIEntitiesDiscussion", "properties", "notes"),
        _entity("Note"),
        _list_of(_entity("Note")),
        "A discussion has many notes.",
    ),
    Erratum(
        ("known", f"{_SCHEMAS}APIEntitiesMergeRequestApprovals", "properties", "approved_by"),
        _entity("Approvals"),
        _list_of(_entity("Approvals")),
        "Many may approve.",
    ),
    Erratum(
        ("known", f"{_SCHEMAS}APIEntitiesMember", "properties", "access_level"),
        {"type": "string"},
        {"type": "integer"},
        "It is a number, such as 30; its entity in the source has no type, and `string` is what is written then.",
    ),
    Erratum(
        ("paths", f"{_PROJECT}/jobs/{{job_id}}/trace", "GET", "responses", "200", "content"),
        {"application/json": {"schema": _entity("CiJob")}},
        {"text/plain": {"schema": {"type": "string"}}},
        "A trace is text.",
    ),
    _comma_separated("d48c5188ea01", "labels"),
    _comma_separated("ca4969d35a6c", "add_labels"),
    _comma_separated("ca4969d35a6c", "remove_labels"),
)

ERRATA: Final[dict[str, tuple[Erratum, ...]]] = {"gitlab": GITLAB}
