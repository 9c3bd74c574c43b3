// Linear's own SDK: what it reads and writes at an address, and what it says of a webhook. The last line is JSON.
import { createRequire } from "node:module";

const require = createRequire(new URL("../../npm/package.json", import.meta.url));
const { LinearClient } = await import(require.resolve("@linear/sdk"));
const { LinearWebhookClient } = await import(require.resolve("@linear/sdk/webhooks"));
const asked = JSON.parse(process.argv[2]);
const linear = new LinearClient({ apiKey: asked.token, apiUrl: asked.url });
const nodesOf = async (connection, form) => (await connection).nodes.map(form);

async function read() {
  const issue = await linear.issue(asked.issue);
  const [team, state, session] = await Promise.all([issue.team, issue.state, linear.agentSession(asked.session)]);
  return {
    viewer: (await linear.viewer).id,
    issue: { id: issue.id, identifier: issue.identifier, title: issue.title, body: issue.description },
    state: state.type,
    team: team.key,
    started: await nodesOf(team.states({ filter: { type: { eq: "started" } } }), (each) => each.position),
    labels: await nodesOf(issue.labels(), (each) => each.name),
    comments: await nodesOf(issue.comments(), (each) => each.body),
    attachments: await nodesOf(issue.attachments(), (each) => ({ url: each.url, title: each.title, metadata: each.metadata })),
    status: session.status,
    activities: await nodesOf(session.activities(), (each) => ({
      kind: each.content.__typename, id: each.id, signal: each.signal ?? null,
      text: each.content.body ?? `${each.content.action} ${each.content.parameter} ${each.content.result}`,
    })),
    labelled: await nodesOf(
      linear.issues({
        filter: {
          team: { key: { eq: team.key } }, labels: { some: { name: { eq: "bug" } } }, state: { type: { nin: ["completed"] } },
        },
      }),
      (each) => each.number,
    ),
    history: await nodesOf(issue.history(), (each) => ({
      by: each.actorId ?? each.botActor?.name ?? null, added: each.addedLabels?.map((one) => one.name) ?? [],
    })),
    delegate: (await issue.delegate)?.id,
    links: session.externalLinks.map((each) => each.url),
  };
}

async function write() {
  const contents = [
    { type: "thought", body: "From the SDK." },
    { type: "action", action: "look", parameter: "here", result: "seen" },
    { type: "elicitation", body: "Which one?" },
    { type: "error", body: "No." },
    { type: "response", body: "Done." },
  ];
  const created = [];
  for (const content of contents) {
    created.push((await linear.createAgentActivity({ agentSessionId: asked.session, content })).success);
  }
  const once = { issueId: asked.issue, url: "https://example.com/1", title: "First" };
  await linear.createAttachment(once);
  await linear.createAttachment({ ...once, title: "Second" });
  const found = await linear.attachmentsForURL(once.url);
  const links = { addedExternalUrls: [{ label: "run", url: "https://example.com/run" }] };
  await linear.updateAgentSession(asked.session, links);
  const moved = await linear.updateIssue(asked.issue, { stateId: asked.state });
  return { created, attached: found.nodes.map((each) => each.title), moved: (await (await moved.issue).state).id };
}

async function refuse() {
  const told = [];
  for (const ask of [() => linear.issue("ENG-999"), () => linear.viewer]) {
    await ask().catch((error) => told.push({ type: error.type, resets: error.requestsResetAt ?? null }));
  }
  return told;
}

function verify() {
  const client = new LinearWebhookClient(asked.secret);
  return asked.deliveries.map(({ body, signature }) => {
    try {
      const payload = client.parseData(Buffer.from(body), signature, JSON.parse(body).webhookTimestamp);
      return { type: payload.type, action: payload.action, session: payload.agentSession?.id };
    } catch (error) {
      return { refused: error.message };
    }
  });
}

const doing = { read, write, refuse, verify };
process.stdout.write(JSON.stringify(await doing[asked.does]()) + "\n");
