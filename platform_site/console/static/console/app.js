/* Times in the viewer's zone, copying ids, and honest live parts. No framework of our own: htmx does the requests. */
"use strict";

const CLOCK = { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false };
const DAY = { year: "numeric", month: "short", day: "numeric" };

function tellTimes(root) {
  const today = new Date().toDateString();
  for (const element of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(element.dateTime);
    const clock = moment.toLocaleTimeString(undefined, CLOCK);
    const short = element.dataset.style === "clock" || moment.toDateString() === today;
    const text = short ? clock : `${moment.toLocaleDateString(undefined, DAY)}, ${clock}`;
    if (element.textContent !== text) element.textContent = text;
  }
}

/* Browsers give no clipboard to pages over plain http, but still copy a selection. */
function copySelection(text) {
  const field = document.body.appendChild(document.createElement("textarea"));
  field.value = text;
  field.select();
  document.execCommand("copy");
  field.remove();
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const text = button.dataset.copy;
  await (navigator.clipboard?.writeText(text) ?? Promise.reject()).catch(() => copySelection(text));
  button.focus();
  button.classList.add("copied");
  setTimeout(() => button.classList.remove("copied"), 1200);
});

/* A row whose mark differs from before is lit for a moment; its place does not change. */
const marks = new Map();

function rememberMarks() {
  for (const row of document.querySelectorAll("[data-mark][id]")) marks.set(row.id, row.dataset.mark);
}

function lightChanges() {
  for (const row of document.querySelectorAll("[data-mark][id]")) {
    if (!marks.has(row.id) || marks.get(row.id) === row.dataset.mark) continue;
    row.classList.remove("changed");
    void row.offsetWidth; // starts the animation anew
    row.classList.add("changed");
  }
}

/* A live part that could not refresh says since when it has been standing. */
let freshAt = Date.now();

function sayStale() {
  document.getElementById("stale").hidden = false;
  document.getElementById("stale-since").textContent = new Date(freshAt).toLocaleTimeString(undefined, CLOCK);
}

/* Rows do not move under a pointer or a focus: the refresh waits until it has left, and says so. */
let mouse = false; // a finger leaves :hover behind where it tapped last
document.addEventListener("pointerover", (event) => { mouse = event.pointerType === "mouse"; });

function rowsOf(card) {
  return [...(card?.querySelectorAll("[data-mark][id]") ?? [])].map((row) => row.id).join();
}

function wouldMoveRows(next) {
  const used = [...document.querySelectorAll("#live .card[id]")].filter(
    (card) => card.contains(document.activeElement) || (mouse && card.matches(":hover")),
  );
  return used.some((card) => rowsOf(card) !== rowsOf(next.querySelector(`[id="${card.id}"]`)));
}

document.addEventListener("htmx:before:swap", (event) => {
  const next = event.detail.tasks[0]?.fragment;
  const held = next !== undefined && wouldMoveRows(next);
  document.getElementById("held").hidden = !held;
  if (held) event.preventDefault();
  else rememberMarks();
});
document.addEventListener("htmx:after:swap", (event) => {
  if (event.detail.ctx.response.status >= 400) return;
  freshAt = Date.now();
  document.getElementById("stale").hidden = true;
  tellTimes(document);
  lightChanges();
});
document.addEventListener("htmx:response:error", sayStale);
document.addEventListener("htmx:error", sayStale);
/* A tab in the background asks for nothing; it catches up when it is looked at again. */
document.addEventListener("htmx:before:request", (event) => {
  if (document.hidden) event.preventDefault();
});

tellTimes(document);
