// What HTML alone cannot do: running seconds, arrow keys in the matrix of ballots, and a place in
// what comes later than its page.
"use strict";

const began = new WeakMap();

function tick() {
  for (const clock of document.querySelectorAll("[data-elapsed]")) {
    if (!began.has(clock)) began.set(clock, performance.now() - 1000 * clock.dataset.elapsed);
    clock.textContent = `${((performance.now() - began.get(clock)) / 1000).toFixed(0)} s`;
  }
}

setInterval(tick, 1000);

let sought = location.hash.slice(1);

document.addEventListener("htmx:after:swap", () => {
  const place = sought && document.querySelector("#report") && document.getElementById(sought);
  if (!place) return;
  sought = "";
  place.scrollIntoView();
});

const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

document.addEventListener("keydown", (event) => {
  const cell = event.target.closest(".matrix td, .matrix tbody th");
  const step = STEPS[event.key];
  if (!cell || !step || event.ctrlKey || event.metaKey || event.altKey) return;
  const rows = [...cell.closest("tbody").rows];
  let row = rows.indexOf(cell.parentElement);
  let column = cell.cellIndex;
  for (let tries = 0; tries < 64; tries += 1) {
    row += step[0];
    column += step[1];
    const next = rows[row]?.cells[column];
    if (!next) return;
    const target = next.querySelector("button, a");
    if (target) {
      event.preventDefault();
      target.focus();
      return;
    }
  }
});
