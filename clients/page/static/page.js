// Keeps the page up to date, sends what people decide, and tells them what needs them. The server escapes the pieces.
"use strict";

const mark = document.querySelector("[data-live]");
const ENDED = "This link has ended: septet open";
const mover = document.getElementById("mover");
const find = (selector, within = document) => [...within.querySelectorAll(selector)];

// The link's answer hands over the key that decides; no page of another port can read where it is kept.
const handed = /^#key=([0-9a-f]{64})$/.exec(location.hash);
if (handed) {
  localStorage.setItem("septet-key", handed[1]);
  history.replaceState(null, "", location.pathname + location.search);
}

// A fold that is open, a draft in a form and the focus stay as they are when the piece around them changes.
const morphing = {
  morphStyle: "innerHTML",
  ignoreActiveValue: true,
  callbacks: {
    beforeAttributeUpdated: (name, node) => !(name === "open" && /^(DETAILS|DIALOG)$/.test(node.tagName)),
    beforeNodeMorphed: (old) => !(old.dataset && old.dataset.dirty),
  },
};

function put({ id, html }) {
  const place = document.getElementById(id);
  if (place) Idiomorph.morph(place, html, morphing);
}

function add({ id, html }) {
  document.getElementById(id)?.insertAdjacentHTML("beforeend", html);
}

// A reader who has scrolled up is left there.
function change(how) {
  return (event) => {
    const transcript = document.getElementById("transcript");
    const atEnd = !transcript || transcript.scrollHeight - transcript.scrollTop - transcript.clientHeight < 40;
    how(JSON.parse(event.data));
    if (transcript && atEnd) transcript.scrollTop = transcript.scrollHeight;
    tell();
  };
}

function listen() {
  const events = new EventSource(mark.dataset.live);
  events.addEventListener("put", change(put));
  events.addEventListener("add", change(add));
  let lost;
  const show = (words) => say(words, mark, mark.classList.toggle("on", words === "live"));
  events.onopen = () => show("live", (lost = ""));
  events.onerror = () => {
    lost ||= new Date().toLocaleTimeString();
    show(events.readyState === 2 ? ENDED : `Connection lost since ${lost}, trying again`);
  };
  events.addEventListener("over", () => {
    events.close();
    mark.remove();
  });
}

function clock(seconds) {
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  return seconds < 60 ? `${seconds} s` : parts.map((n, i) => (i ? String(n).padStart(2, "0") : n)).join(":");
}

function age(seconds) {
  const unit = [["d", 86400], ["h", 3600], ["min", 60]].find(([, size]) => seconds >= size);
  return unit ? `${Math.floor(seconds / unit[1])} ${unit[0]}` : "now";
}

function tick() {
  for (const [name, words] of [["since", clock], ["age", age]]) {
    for (const one of find(`[data-${name}]`)) {
      const text = words(Math.max(0, Math.round((Date.now() - Date.parse(one.dataset[name])) / 1000)));
      if (one.textContent !== text) one.textContent = text;
    }
  }
}

// What needs a person is in the title, and in a notification where that is allowed. What was there at first is known.
let known = null;
function tell() {
  const title = document.querySelector("[data-title]");
  if (title) document.title = title.dataset.title;
  const now = new Map(find("[data-tell]").map((one) => [one.dataset.tell, one.dataset.say]));
  for (const [key, words] of now) {
    if (!known || known.has(key) || localStorage.getItem("septet-notify") !== "on") continue;
    const note = new Notification("Septet", { body: words, tag: key });
    note.onclick = () => open(key.split(" ")[0]);
  }
  known = now;
}

function showNotify(button) {
  const on = localStorage.getItem("septet-notify") === "on" && Notification.permission === "granted";
  button.hidden = false;
  button.setAttribute("aria-pressed", on);
  button.textContent = on ? "Notifications on" : "Notify me";
}

async function switchNotify(button) {
  const was = localStorage.getItem("septet-notify") === "on";
  const allowed = (await Notification.requestPermission()) === "granted";
  localStorage.setItem("septet-notify", !was && allowed ? "on" : "off");
  showNotify(button);
  if (!allowed) say("Allow notifications in your browser's site settings.");
}

// The HTTP API has the rules and the words.
async function decide(path, body) {
  const { who } = document.body.dataset;
  const answer = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", "Septet-Page-Key": localStorage.getItem("septet-key") || "" },
    body: JSON.stringify(/^.(agent-work-orders|rescues.restore)$/.test(path) ? body : { who, ...body }),
  }).catch(() => null);
  if (!answer) throw new Error("The server does not answer. Start it: septet up");
  const reply = await answer.json().catch(() => ({}));
  if (answer.status === 401) throw new Error(ENDED);
  if (!answer.ok) throw new Error([reply.detail, reply.remedy].filter(Boolean).join(" ") || answer.statusText);
  return [reply, answer.headers.get("Location")];
}

function say(words, place = document.getElementById("notice")) {
  place.textContent = words;
  place.hidden = !words;
  if (words && place.id) setTimeout(() => place.textContent === words && say(""), 5000);
}

function bodyOf(form, pressed) {
  const body = JSON.parse(form.dataset.body || "{}");
  for (const field of form.elements) {
    if (!field.name || field.type === "submit" || field.disabled) continue;
    if ("flag" in field.dataset) Object.assign(body, field.value && { [field.value]: true });
    else if ("list" in field.dataset) body[field.name] = [...(body[field.name] || []), ...(field.checked ? [field.value] : [])];
    else if (field.type === "checkbox") body[field.name] = field.checked;
    else if (field.value.trim()) body[field.name] = field.type === "number" ? Number(field.value) : field.value;
  }
  return pressed?.name ? { ...body, [pressed.name]: pressed.value } : body;
}

async function send(form, pressed) {
  const alert = form.querySelector("[role=alert]");
  const buttons = find("button", form);
  say("", alert);
  buttons.forEach((one) => (one.disabled = true));
  try {
    const path = pressed?.dataset.post || form.dataset.post;
    const [reply, where] = await decide(path, bodyOf(form, pressed));
    delete form.dataset.dirty;
    if (form === mover?.firstElementChild) mover.close();
    if (where) location.assign(where.replace("/agent-work-orders/", "/work-orders/"));
    else if (reply.restored_to) say(`Restored to ${reply.restored_to}`, alert);
    else if (reply.is_raised === false) say("Nothing was added: this budget has changed meanwhile.");
    else if (!mark?.isConnected) location.reload();
    else if (form.dataset.done) say(form.dataset.done);
  } catch (error) {
    say(error.message, alert);
  }
  buttons.forEach((one) => (one.disabled = false));
}

function move(id, to) {
  const moved = decide(`/agent-work-orders/${encodeURIComponent(id)}/move`, { to });
  moved.then(() => say(`${id} moves to ${to}.`), (error) => say(error.message));
}

function openMover({ id, targets, title }) {
  const form = mover.firstElementChild;
  form.dataset.post = `/agent-work-orders/${encodeURIComponent(id)}/move`;
  form.querySelector("h2").textContent = `Move ${title}`;
  form.elements.to.replaceChildren(...targets.split(" ").map((one) => new Option(one)));
  say("", form.querySelector("[role=alert]"));
  mover.showModal();
}

let dragged = null;
const stageUnder = (event) => {
  const stage = dragged && event.target.closest?.("[data-stage]");
  return stage && dragged.targets.split(" ").includes(stage.dataset.stage) ? stage : null;
};
const settle = () => find(".stage.may, .stage.over").forEach((one) => one.classList.remove("may", "over"));

const handlers = {
  submit(event) {
    if (!event.target.matches("form[data-post]")) return;
    event.preventDefault();
    send(event.target, event.submitter);
  },
  input(event) {
    const form = event.target.closest("form[data-post]");
    if (form) form.dataset.dirty = "yes";
  },
  async change(event) {
    const form = event.target.closest("form[data-ask]");
    if (!form) return;
    const { repository_url, agent } = form.elements;
    const query = new URLSearchParams({ repository_url: repository_url.value, agent: agent.value });
    const answer = await fetch(`${form.dataset.ask}?${query}`).catch(() => null);
    if (answer?.ok) put({ id: "estimate", html: await answer.text() });
  },
  click(event) {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.targets) openMover(button.dataset);
    else if (button.matches("[data-close]")) button.closest("dialog").close();
    else if (button.id === "notify") switchNotify(button);
    else if (button.dataset.copy) navigator.clipboard.writeText(button.dataset.copy).then(() => say("Copied."));
  },
  dragstart(event) {
    dragged = event.target.closest?.(".card")?.querySelector("[data-targets]")?.dataset;
    if (!dragged) return;
    event.dataTransfer.setData("text/plain", dragged.id);
    for (const stage of find("[data-stage]")) {
      stage.classList.toggle("may", dragged.targets.split(" ").includes(stage.dataset.stage));
    }
  },
  dragover(event) {
    const stage = stageUnder(event);
    find(".stage.over").forEach((one) => one.classList.toggle("over", one === stage));
    if (!stage) return;
    event.preventDefault();
    stage.classList.add("over");
  },
  drop(event) {
    const stage = stageUnder(event);
    if (!stage) return;
    event.preventDefault();
    move(dragged.id, stage.dataset.stage);
  },
  dragend: settle,
};
for (const [name, handler] of Object.entries(handlers)) document.addEventListener(name, handler);

const notify = document.getElementById("notify");
if (notify && "Notification" in window) showNotify(notify);
const transcript = document.getElementById("transcript");
if (transcript) transcript.scrollTop = transcript.scrollHeight;
tell();
tick();
setInterval(tick, 1000);
if (mark) listen();
