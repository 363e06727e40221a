// Tooltips of a chart's marks: at the pointer, on a tap, and by arrow keys. Without this script,
// the title of each mark is a slow tooltip for a mouse only.
"use strict";

(() => {
  const MARKS = '[role="img"], text:has(title)';
  const GAP = 10;
  const EDGE = 6;
  let tip = null;
  let coming = 0;

  // Move the title to the label of the mark, so that the browser shows no second tooltip.
  function wordsOf(mark) {
    const title = mark.querySelector(":scope > title");
    if (title) {
      mark.setAttribute("aria-label", title.textContent);
      title.remove();
    }
    return mark.getAttribute("aria-label") ?? "";
  }

  function hide() {
    if (tip) tip.hidden = true;
  }

  // Also cancel a tooltip that is about to be shown.
  function dismiss() {
    cancelAnimationFrame(coming);
    hide();
  }

  function show(mark, x, y) {
    const words = wordsOf(mark);
    if (!words) return;
    if (!tip) {
      tip = document.createElement("div");
      tip.className = "tip";
      tip.setAttribute("aria-hidden", "true");
      document.body.append(tip);
    }
    tip.textContent = words;
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const left = Math.min(Math.max(EDGE, x - width / 2), innerWidth - width - EDGE);
    tip.style.left = `${left}px`;
    tip.style.top = `${y - height - GAP < EDGE ? y + GAP * 2 : y - height - GAP}px`;
  }

  function middle(mark) {
    const box = mark.getBoundingClientRect();
    return { x: box.x + box.width / 2, y: box.y + box.height / 2, top: box.y };
  }

  const markOf = (event) => event.target.closest?.(".chart svg")
    && event.target.closest(MARKS);

  document.addEventListener("pointerover", (event) => {
    const mark = markOf(event);
    if (mark) show(mark, event.clientX, event.clientY);
    else hide();
  });
  document.addEventListener("click", (event) => {
    const mark = markOf(event);
    if (mark) show(mark, event.clientX, event.clientY);
  });
  document.addEventListener("scroll", hide, { capture: true, passive: true });
  document.addEventListener("focusout", dismiss);

  const DIRECTIONS = {
    ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1],
  };

  // The nearest mark in that direction, with a penalty for sideways distance.
  function neighbour(marks, from, [across, down]) {
    const here = middle(from);
    let best = null;
    let least = Infinity;
    for (const mark of marks) {
      const there = middle(mark);
      const ahead = (there.x - here.x) * across + (there.y - here.y) * down;
      const aside = Math.abs((there.x - here.x) * down) + Math.abs((there.y - here.y) * across);
      if (mark !== from && ahead > 1 && ahead + 3 * aside < least) {
        best = mark;
        least = ahead + 3 * aside;
      }
    }
    return best;
  }

  function next(marks, from, key) {
    if (!marks.includes(from)) return marks[0];
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[key];
    return neighbour(marks, from, DIRECTIONS[key]) ?? marks[marks.indexOf(from) + step];
  }

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") dismiss();
    const box = event.target.closest?.(".chart-box");
    if (!box || !DIRECTIONS[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    const marks = [...box.querySelectorAll('[role="img"]')].filter((each) => each.checkVisibility());
    const mark = marks.length && next(marks, document.activeElement, event.key);
    if (!mark) return;
    event.preventDefault();
    wordsOf(mark);
    mark.setAttribute("tabindex", "-1");
    mark.focus({ preventScroll: true });
    mark.scrollIntoView({ block: "nearest", inline: "nearest" });
    // Scrolling hides the tooltip, and its event arrives in the next frame.
    coming = requestAnimationFrame(() => {
      coming = requestAnimationFrame(() => {
        const { x, top } = middle(mark);
        show(mark, x, top);
      });
    });
  });
})();
