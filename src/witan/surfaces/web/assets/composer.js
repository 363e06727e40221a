// The form that asks: the members of the chosen council, the cost as one writes, and a draft that
// outlasts a reload.
"use strict";

const composer = document.querySelector("form.composer");
const DRAFT = `draft of ${composer ? location.pathname + location.search : ""}`;
const SENT = "draft that was sent";
const PAUSE_MS = 600;
const REFUSED_MS = 30_000;
const TOO_MANY = 429;

function showMembers() {
  for (const chips of composer.querySelectorAll("[data-council]")) {
    const shown = chips.dataset.council === composer.elements.profile.value;
    chips.hidden = !shown;
    chips.disabled = !shown;
  }
}

// Files cannot be kept; a box that is not ticked has no entry.
function entries() {
  return [...new FormData(composer)].filter(([, value]) => typeof value === "string");
}

function saveDraft() {
  sessionStorage.setItem(DRAFT, JSON.stringify(entries().filter(([, value]) => value !== "")));
}

function restoreDraft() {
  const saved = sessionStorage.getItem(DRAFT);
  if (!saved || composer.dataset.filled === "true") return;
  const values = JSON.parse(saved);
  for (const field of composer.elements) {
    const own = values.filter(([name]) => name === field.name).map(([, value]) => value);
    if (field.type === "checkbox") field.checked = own.includes(field.value);
    else if (own.length && field.type !== "file") [field.value] = own;
  }
}

// What is wrong with a field is said beneath it, once, until one changes it.
function isSaid(words) {
  const text = words.toLowerCase();
  const notes = [...composer.querySelectorAll(".note")];
  return notes.some((each) => text.includes(each.textContent.toLowerCase().replace(/\.$/, "")));
}

function forgetFault({ target }) {
  const about = target.closest("[aria-invalid]")?.getAttribute("aria-describedby");
  if (!about) return;
  for (const each of composer.querySelectorAll(`[aria-describedby="${about}"]`))
    each.removeAttribute("aria-invalid");
  document.querySelector(`#${about} .note`)?.remove();
}

let pause = null;
let asked = null;

async function estimate() {
  const line = document.getElementById("estimate");
  asked?.abort();
  if (!composer.elements.question.value.trim()) {
    line.textContent = "";
    return;
  }
  asked = new AbortController();
  const body = new FormData();
  for (const [name, value] of entries()) body.append(name, value);
  try {
    const { signal } = asked;
    const response = await fetch(composer.dataset.estimate, { method: "POST", body, signal });
    if (response.status === TOO_MANY) pause = setTimeout(estimate, REFUSED_MS);
    else if (response.headers.get("Content-Type")?.startsWith("text/plain")) {
      const told = await response.text();
      const words = !response.ok && isSaid(told) ? "" : told;
      if (line.textContent !== words) line.textContent = words;
      line.classList.toggle("note", !response.ok);
    }
  } catch {
    // The next change asks again.
  }
}

function estimateSoon() {
  clearTimeout(pause);
  pause = setTimeout(estimate, PAUSE_MS);
}

function start() {
  restoreDraft();
  showMembers();
  const { question } = composer.elements;
  question.setSelectionRange(question.value.length, question.value.length);
  composer.addEventListener("input", (event) => {
    forgetFault(event);
    showMembers();
    saveDraft();
    estimateSoon();
  });
  composer.addEventListener("submit", ({ submitter }) => {
    if (!submitter?.hasAttribute("formaction")) sessionStorage.setItem(SENT, DRAFT);
  });
  if (question.value) estimate();
}

if (composer) start();
