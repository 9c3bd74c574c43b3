"""The used part of GitHub's GraphQL API, over a part of its own schema."""

from functools import cache
from pathlib import Path

from fakes.forges.state import SEPTET, Answer, Asked, ForgeFake, IssueEvent, IssueState, Json
from graphql import GraphQLInterfaceType, GraphQLSchema, GraphQLUnionType, build_schema, graphql_sync

_FILE = Path(__file__).parents[2] / "data" / "github" / "schema.graphql"
_TYPES = {"labeled": "LabeledEvent", "renamed": "RenamedTitleEvent"}
_NAMES = {"LABELED_EVENT": "labeled", "RENAMED_TITLE_EVENT": "renamed"}
_BOT = "[bot]"


@cache
def github_schema() -> GraphQLSchema:
    """Return the schema; each value names its type by `__typename`."""
    built = build_schema(_FILE.read_text())
    for kind in built.type_map.values():
        if isinstance(kind, GraphQLInterfaceType | GraphQLUnionType):
            kind.resolve_type = lambda value, *_: str(value["__typename"])
    return built


def answer_graphql(forge: ForgeFake, asked: Asked, *, viewer: str = SEPTET) -> Answer:
    """Execute a document, and return GraphQL's answer: a refusal has a good status."""

    def repository(_info: object, owner: str, name: str) -> Json:
        return {"issue": issue} if f"{owner}/{name}" in {forge.project, *forge.old_names} else None

    def issue(_info: object, number: int) -> Json:
        state = forge.issues.get(number)
        if state is None:
            missing.append(f"Could not resolve to an Issue with the number of {number}.")
            return None
        return _issue(state)

    missing: list[str] = []
    root = {"repository": repository, "viewer": {"login": viewer}}
    result = graphql_sync(github_schema(), asked.body["query"], root, variable_values=asked.body.get("variables"))
    answer: Json = dict(result.formatted)
    if missing:
        answer["errors"] = [{"type": "NOT_FOUND", "path": ["repository", "issue"], "message": missing[0]}]
    return 200, answer


def _issue(state: IssueState) -> Json:
    edits = [each for each in reversed(state.events) if each.kind == "edited"]
    if edits:  # the edits include the first body
        edits.append(IssueEvent("edited", state.author))

    def timeline(_info: object, last: int, itemTypes: list[str]) -> Json:  # noqa: N803 -- GitHub's name
        wanted = {_NAMES[each] for each in itemTypes}
        fitting = [each for each in state.events if each.kind in wanted]
        page = {"hasNextPage": False, "hasPreviousPage": len(fitting) > last}
        return {"nodes": [_event(each) for each in fitting[-last:]], "pageInfo": page}

    def content_edits(_info: object, first: int) -> Json:
        nodes = [{"editedAt": each.at, "editor": _actor(each.actor)} for each in edits[:first]]
        return {"nodes": nodes, "pageInfo": {"hasNextPage": len(edits) > first, "hasPreviousPage": False}}

    return {
        "lastEditedAt": edits[0].at if edits else None,
        "editor": _actor(edits[0].actor) if edits else None,
        "userContentEdits": content_edits,
        "timelineItems": timeline,
    }


def _event(event: IssueEvent) -> Json:
    told = {"__typename": _TYPES[event.kind], "createdAt": event.at, "actor": _actor(event.actor)}
    return {**told, "label": {"name": event.label}} if event.label else told


def _actor(name: str) -> Json:
    """Return an account; an App's login lacks `[bot]` here, and a deleted account is `None`."""
    if not name:
        return None
    return {"__typename": "Bot" if name.endswith(_BOT) else "User", "login": name.removesuffix(_BOT)}
