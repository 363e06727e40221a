// Texts: buttons that copy their code block, or the source of the text whose id they name; fields
// that Ctrl+Enter submits.
"use strict";

document.documentElement.classList.add("scripted");

// Delete the draft of a question once the page of its session loads.
const sent = sessionStorage.getItem("draft that was sent");
if (sent && location.pathname.includes("/sessions/")) {
  sessionStorage.removeItem(sent);
  sessionStorage.removeItem("draft that was sent");
}

// A card offers to show more only if its text is cut.
const sizes = new ResizeObserver((all) => all.forEach(({ target }) => markCut(target)));

function markCut(text) {
  const card = text.parentElement;
  if (!card.matches(":target")) card.classList.toggle("cut", text.scrollHeight > text.clientHeight + 1);
}

function watchCards() {
  sizes.disconnect();
  for (const text of document.querySelectorAll(".answer:has(> .whole-or-not) > .prose")) {
    markCut(text);
    sizes.observe(text);
  }
}

watchCards();
document.addEventListener("htmx:after:swap", watchCards);

const SHOWN_MS = 2000;

const copied = document.createElement("span");
copied.className = "hear";
copied.setAttribute("role", "status");
document.body.append(copied);

// Without a secure connection browsers hide the clipboard API, but still support the command.
function copyByCommand(text) {
  const field = document.createElement("textarea");
  field.className = "hear";
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyByCommand(text);
  }
}

function sourceOf(button) {
  const code = button.closest(".code")?.querySelector("code");
  return code ? code.textContent : document.getElementById(button.dataset.copies)?.dataset.source;
}

document.addEventListener("click", async ({ target }) => {
  const button = target.closest?.(".copy");
  const text = button && sourceOf(button);
  if (typeof text !== "string") return;
  const done = await copyText(text);
  copied.textContent = done ? "Copied." : "The browser does not allow copying.";
  button.focus();
  if (button.dataset.state) return;
  const words = [...button.childNodes];
  button.dataset.state = done ? "done" : "refused";
  button.replaceChildren(done ? "Copied" : "Not allowed");
  setTimeout(() => {
    button.replaceChildren(...words);
    delete button.dataset.state;
    copied.textContent = "";
  }, SHOWN_MS);
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.repeat) return;
  const form = event.target.closest?.("[data-sends]")?.form;
  if (!form) return;
  event.preventDefault();
  form.requestSubmit(form.querySelector("button[type=submit]"));
});
