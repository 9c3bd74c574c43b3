// Puts pieces of the page in place as the server sends them. They are the server's own templates, escaped there, and
// the content security policy runs no script but this file.
"use strict";

const mark = document.querySelector("[data-live]");

function put(piece) {
  const place = document.getElementById(piece.id);
  if (!place) return;
  const kept = new Map([...place.querySelectorAll("details[data-key]")].map((one) => [one.dataset.key, one.open]));
  place.innerHTML = piece.html;
  for (const one of place.querySelectorAll("details[data-key]")) {
    if (kept.has(one.dataset.key)) one.open = kept.get(one.dataset.key);
  }
}

function add(piece) {
  const place = document.getElementById(piece.id);
  if (!place) return;
  place.insertAdjacentHTML("beforeend", piece.html);
}

// A reader who has scrolled up to read is left there.
function followEnd(change) {
  return (event) => {
    const transcript = document.getElementById("transcript");
    const atEnd = !transcript || transcript.scrollHeight - transcript.scrollTop - transcript.clientHeight < 40;
    change(JSON.parse(event.data));
    if (transcript && atEnd) transcript.scrollTop = transcript.scrollHeight;
  };
}

function listen() {
  const events = new EventSource(mark.dataset.live);
  events.addEventListener("put", followEnd(put));
  events.addEventListener("add", followEnd(add));
  events.addEventListener("open", () => mark.classList.add("on"));
  events.addEventListener("error", () => mark.classList.remove("on"));
  events.addEventListener("over", () => {
    events.close();
    mark.remove();
  });
}

function tick() {
  for (const one of document.querySelectorAll("[data-since]")) {
    const seconds = Math.max(0, Math.round((Date.now() - Date.parse(one.dataset.since)) / 1000));
    const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
    one.textContent = seconds < 60 ? `${seconds} s` : parts.map((n, i) => (i ? String(n).padStart(2, "0") : n)).join(":");
  }
}

if (mark) {
  const transcript = document.getElementById("transcript");
  if (transcript) transcript.scrollTop = transcript.scrollHeight;
  listen();
  setInterval(tick, 1000);
}
