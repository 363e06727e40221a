// The page of a session: mark the current section, keep scroll position and open details across
// patches, and recount.
"use strict";

// A section is current once its heading is within this many pixels below the bar.
const BELOW_BAR = 48;

function sections() {
  return [...document.querySelectorAll("#session > section[id]")];
}

function bar() {
  return document.querySelector(".places")?.getBoundingClientRect().bottom ?? 0;
}

function section() {
  const line = bar() + BELOW_BAR;
  return sections().findLast((each) => each.getBoundingClientRect().top <= line);
}

let marked = false;

function markPlace() {
  marked = false;
  const at = section()?.id;
  for (const link of document.querySelectorAll(".places a")) {
    if (link.hash === `#${at}`) link.setAttribute("aria-current", "location");
    else link.removeAttribute("aria-current");
  }
}

function markSoon() {
  if (marked) return;
  marked = true;
  requestAnimationFrame(markPlace);
}

document.addEventListener("scroll", markSoon, { passive: true });
addEventListener("resize", markSoon);
markPlace();

// Details that the reader opened, keyed by section and text, as a patch may replace the element.
// The server opens and closes lanes.
function folds() {
  const found = new Map();
  for (const fold of document.querySelectorAll("#session details:not(.lane)")) {
    const summary = fold.querySelector("summary");
    const words = (summary?.querySelector("span") ?? summary)?.textContent.trim();
    const key = `${fold.closest("section")?.id} ${words}`;
    found.set(key, [...(found.get(key) ?? []), fold]);
  }
  return [...found].flatMap(([key, same]) => same.map((fold, n) => [`${key} ${n}`, fold]));
}

function foldState() {
  const all = folds();
  const at = all.find(([, fold]) => document.activeElement === fold.querySelector("summary"));
  return { keys: all.filter(([, fold]) => fold.open).map(([key]) => key), focus: at?.[0] };
}

function restoreFolds({ keys, focus }) {
  for (const [key, fold] of folds()) {
    if (keys.includes(key)) fold.open = true;
    if (key === focus) fold.querySelector("summary").focus({ preventScroll: true });
  }
}

// Keep the current section in place on the screen when a patch inserts content above it.
let place = null;
let state = null;

document.addEventListener("htmx:before:swap", () => {
  const read = scrollY > 0 && section();
  place = read ? { id: read.id, top: read.getBoundingClientRect().top } : null;
  state = foldState();
});

document.addEventListener("htmx:after:swap", () => {
  if (state) restoreFolds(state);
  const read = place && document.getElementById(place.id);
  if (read) scrollBy({ top: read.getBoundingClientRect().top - place.top, behavior: "instant" });
  place = state = null;
  markSoon();
});

// Weights and ballots: ask the server to recount, and replace the parts that depend on the count.
const COUNTED = ["verdict", "problem", "counted", "ballots"];
const SETTLE_MS = 150;
let recounting = null;
let soon = 0;

function isOwn({ value, dataset: { own } }) {
  return value === own || Number(value) === Number(own);
}

function countAddress(form) {
  const query = new URLSearchParams(new FormData(form));
  if (isOwn(form.elements.rule)) query.delete("rule");
  for (const name of ["reviewer", "weight"]) query.delete(name);
  for (const slider of form.querySelectorAll("input[type=range]")) {
    if (isOwn(slider)) continue;
    query.append("reviewer", slider.previousElementSibling.value);
    query.append("weight", slider.value);
  }
  const address = new URL(form.action);
  address.search = query;
  address.hash = "";
  return address;
}

async function recount(form) {
  recounting?.abort();
  recounting = new AbortController();
  const { signal } = recounting;
  const address = countAddress(form);
  const response = await fetch(address, { signal });
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  if (signal.aborted || !page.getElementById("counted")) return;
  const state = foldState();
  for (const id of COUNTED) {
    const fresh = page.getElementById(id);
    if (fresh) document.getElementById(id)?.replaceWith(fresh);
  }
  restoreFolds(state);
  history.replaceState(history.state, "", address);
}

document.addEventListener("input", ({ target }) => {
  const form = target.closest("#recount");
  if (!form) return;
  if (target.type === "range") target.nextElementSibling.textContent = `× ${target.value}`;
  clearTimeout(soon);
  soon = setTimeout(() => recount(form).catch(() => null), SETTLE_MS);
});
