"""The GraphQL documents for Linear's API; a test checks them against Linear's schema."""

from typing import Final

ISSUE: Final = """
query Issue($id: String!) {
  issue(id: $id) {
    id identifier title description url
    team { key }
    project { id slugId name }
    labels(first: 50) { nodes { name } }
    comments(first: 100) {
      nodes { body createdAt user { id displayName guest } botActor { name } externalUser { name } }
    }
  }
}
"""
MARKS: Final = """
query Marks($id: String!) {
  viewer { id }
  issue(id: $id) { attachments(first: 250) { nodes { url createdAt metadata creator { id } } } }
}
"""
ISSUES: Final = """
query Issues($filter: IssueFilter!, $after: String) {
  viewer { id }
  issues(first: 50, after: $after, filter: $filter) {
    nodes {
      number
      delegate { id }
      attachments(first: 50) { nodes { url createdAt metadata creator { id } } }
    }
    pageInfo { hasNextPage endCursor }
  }
}
"""
LABELLED: Final = """
query Labelled($id: String!, $after: String) {
  viewer { id }
  issue(id: $id) {
    creator { id displayName guest app }
    history(first: 100, after: $after) {
      nodes { createdAt actor { id displayName guest app } botActor { name } addedLabels { name } }
      pageInfo { hasNextPage endCursor }
    }
  }
}
"""
START: Final = """
query Start($id: String!) {
  viewer { id app }
  issue(id: $id) {
    id
    state { type }
    delegate { id }
    team { states(first: 100, filter: { type: { eq: "started" } }) { nodes { id position } } }
  }
}
"""
ACTIVITY: Final = """
query Activity($id: String!) { agentActivity(id: $id) { id agentSession { id } } }
"""
ATTACH: Final = """
mutation Attach($input: AttachmentCreateInput!) { attachmentCreate(input: $input) { success } }
"""
SAY: Final = """
mutation Say($input: AgentActivityCreateInput!) { agentActivityCreate(input: $input) { success } }
"""
MOVE: Final = """
mutation Move($id: String!, $input: IssueUpdateInput!) { issueUpdate(id: $id, input: $input) { success } }
"""
LINK: Final = """
mutation Link($id: String!, $input: AgentSessionUpdateInput!) {
  agentSessionUpdate(id: $id, input: $input) { success }
}
"""
DOCUMENTS: Final = (ISSUE, MARKS, ISSUES, LABELLED, START, ACTIVITY, ATTACH, SAY, MOVE, LINK)
