// The page of a session: which section is read, and that it stays in place when the session ends.
"use strict";

// A section is read from when its heading is this far below the bar until the next one's is.
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

// What is read keeps its place on the screen, whatever a patch puts above it.
let place = null;

document.addEventListener("htmx:before:swap", () => {
  const read = scrollY > 0 && section();
  place = read ? { id: read.id, top: read.getBoundingClientRect().top } : null;
});

document.addEventListener("htmx:after:swap", () => {
  const read = place && document.getElementById(place.id);
  if (read) scrollBy({ top: read.getBoundingClientRect().top - place.top, behavior: "instant" });
  place = null;
  markSoon();
});
