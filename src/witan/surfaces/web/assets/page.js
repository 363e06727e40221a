// Elapsed seconds, arrow keys in the matrix of ballots, keys for voting, scrolling to a section that
// loads after its page, reconnecting a live page, and reloading the page of a resumed session.
"use strict";

const startTimes = new WeakMap();

const live = document.getElementById("live");

function tick() {
  if (live?.hasAttribute("data-lost")) return;
  for (const clock of document.querySelectorAll("[data-elapsed]")) {
    if (!startTimes.has(clock)) startTimes.set(clock, performance.now() - 1000 * clock.dataset.elapsed);
    clock.textContent = `${((performance.now() - startTimes.get(clock)) / 1000).toFixed(0)} s`;
  }
}

setInterval(tick, 1000);

// The server sends a message at least every 5 seconds while a session is running.
const SILENT_MS = 12_000;
const LATE_MS = 1500;
const RETRY_MS = 3000;
// Retry later if the server has too many live pages.
const BUSY = 429;
const BUSY_MS = 8000;
const BUSY_MOST_MS = 30_000;
const PASSING = [408, BUSY];

let connection = null;
let lastMessageAt = 0;
let late = 0;

function showLost(lost, why = "lost") {
  clearTimeout(late);
  const notice = document.getElementById("connection");
  live.toggleAttribute("data-lost", lost);
  notice.hidden = !lost;
  notice.textContent = lost ? notice.dataset[why] : "";
}

function onError(status) {
  // Reload on a permanent refusal: the page explains it, such as by asking to sign in.
  if (status >= 400 && status < 500 && !PASSING.includes(status)) location.reload();
  else showLost(true, status === BUSY ? "busy" : "lost");
}

let usualDelays = null;

// Set the delay before reconnecting; the extension does not pass on the Retry-After header.
function pace({ config }, busy) {
  usualDelays ??= [config.reconnectDelay, config.reconnectMaxDelay];
  [config.reconnectDelay, config.reconnectMaxDelay] = busy ? [BUSY_MS, BUSY_MOST_MS] : usualDelays;
}

// Reconnect without reloading the page, which would add load to a busy server.
function waitForRoom(seconds) {
  showLost(true, "busy");
  const spread = 1 + Math.random() / 4;
  setTimeout(() => {
    htmx.ajax("GET", live.getAttribute("hx-sse:connect"), { source: live, timeout: 5000 });
  }, 1000 * spread * (seconds || BUSY_MS / 1000));
}

// The extension does not retry a first connection that fails.
function waitForServer() {
  if (connection) return;
  showLost(true);
  setTimeout(reloadOnceThere, RETRY_MS);
}

function reloadOnceThere() {
  const request = fetch(location.href, { method: "HEAD", signal: AbortSignal.timeout(RETRY_MS) });
  request.catch(() => null).then((response) => {
    if (!response || response.status >= 500 || PASSING.includes(response.status)) waitForServer();
    // Reload on a refusal too: the page explains it.
    else location.reload();
  });
}

function listen() {
  live.addEventListener("htmx:sse:before:connection", ({ detail }) => {
    clearTimeout(late);
    const lost = live.hasAttribute("data-lost");
    if (detail.connection.attempt > 0 && !lost) late = setTimeout(showLost, LATE_MS, true);
  });
  live.addEventListener("htmx:sse:after:connection", ({ detail }) => {
    connection = detail.connection;
    lastMessageAt = performance.now();
    pace(connection, false);
    showLost(false);
  });
  live.addEventListener("htmx:sse:after:message", () => {
    lastMessageAt = performance.now();
  });
  live.addEventListener("htmx:sse:error", ({ detail }) => {
    if (detail.connection) pace(detail.connection, detail.status === BUSY);
    onError(detail.status);
  });
  live.addEventListener("htmx:sse:close", () => {
    clearInterval(watching);
    showLost(false);
  });
  live.addEventListener("htmx:error", waitForServer);
  live.addEventListener("htmx:response:error", ({ detail }) => {
    const { status, raw } = detail.ctx.response;
    const seconds = Number(raw.headers.get("Retry-After"));
    if (status === BUSY || (status === 503 && seconds > 0)) waitForRoom(seconds);
    else if (PASSING.includes(status) || status >= 500) waitForServer();
    else onError(status);
  });
  document.addEventListener("visibilitychange", () => {
    lastMessageAt = performance.now();
  });
  const watching = setInterval(() => {
    if (!connection || document.hidden || performance.now() - lastMessageAt < SILENT_MS) return;
    lastMessageAt = performance.now();
    showLost(true);
    connection.reader?.cancel();
  }, 1000);
}

if (live) listen();

// Reload the page of an interrupted session once it is resumed elsewhere.
const OUT_OF_DATE = 205;
let isAsking = false;

function askState() {
  const at = document.querySelector("[data-state]")?.dataset.state;
  if (!at || isAsking || document.hidden) return;  isAsking = true;
  fetch(at, { signal: AbortSignal.timeout(RETRY_MS) })
    .then(({ status }) => {
      if (status === OUT_OF_DATE) location.reload();
    })
    .catch(() => null)
    .finally(() => {      isAsking = false;
    });
}

setInterval(askState, RETRY_MS);
document.addEventListener("visibilitychange", askState);

let pendingTarget = location.hash.slice(1);

document.addEventListener("htmx:after:swap", () => {
  const target = pendingTarget && document.querySelector("#report") && document.getElementById(pendingTarget);
  if (!target) return;
  pendingTarget = "";
  target.scrollIntoView();
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

// Enter activates the focused element; arrow keys scroll code and tables.
const OWN_KEYS = { Enter: "a, button, summary, input, select", other: "pre, table, input, select" };

document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  const button = [...document.querySelectorAll("[data-key]")].find((one) => one.dataset.key === key);
  if (!button || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
  if (target.closest(OWN_KEYS[key] ?? OWN_KEYS.other)) return;
  event.preventDefault();
  button.click();
});
