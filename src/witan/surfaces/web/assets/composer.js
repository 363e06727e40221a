// The question form: members of the selected council, a live cost estimate, and a draft that
// survives a reload.
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

// Files cannot be stored; an unticked box has no entry.
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

// A field shows its error below it until the field changes; do not repeat the error.
function isShown(words) {
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
let request = null;

async function estimate() {
  const line = document.getElementById("estimate");
  request?.abort();
  if (!composer.elements.question.value.trim()) {
    line.textContent = "";
    return;
  }
  request = new AbortController();
  const body = new FormData();
  for (const [name, value] of entries()) body.append(name, value);
  try {
    const { signal } = request;
    const response = await fetch(composer.dataset.estimate, { method: "POST", body, signal });
    if (response.status === TOO_MANY) pause = setTimeout(estimate, REFUSED_MS);
    else if (response.headers.get("Content-Type")?.startsWith("text/plain")) {
      const text = await response.text();
      const words = !response.ok && isShown(text) ? "" : text;
      if (line.textContent !== words) line.textContent = words;
      line.classList.toggle("note", !response.ok);
    }
  } catch {
    // The next change retries.
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
