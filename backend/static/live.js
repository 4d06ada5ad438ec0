// Follows the parts of a page: what the server sends of them takes the place of what is there.
"use strict";

const PATIENCE = 5000;

function place(id, html) {
  const part = document.getElementById(id);
  if (!part) return;
  const open = new Set([...part.querySelectorAll("details[open]")].map((each) => each.id));
  const focused = part.contains(document.activeElement) ? document.activeElement.id || document.activeElement.getAttribute("href") : null;
  const scrolled = [...part.querySelectorAll(".wide")].map((each) => each.scrollLeft);
  part.innerHTML = html;
  for (const each of part.querySelectorAll("details")) each.open = open.has(each.id);
  [...part.querySelectorAll(".wide")].forEach((each, index) => { each.scrollLeft = scrolled[index] || 0; });
  if (focused) {
    const again = [...part.querySelectorAll("a, button, summary, input, select")].find((each) => each.id === focused || each.getAttribute("href") === focused);
    if (again) again.focus({ preventScroll: true });
  }
}

function follow(address) {
  const source = new EventSource(address);
  source.onmessage = (event) => {
    document.documentElement.dataset.live = "yes";
    for (const [id, html] of Object.entries(JSON.parse(event.data))) place(id, html);
  };
  source.onerror = () => {
    document.documentElement.dataset.live = "no";
    if (source.readyState === EventSource.CLOSED) setTimeout(() => follow(address), PATIENCE);
  };
  addEventListener("pagehide", () => source.close(), { once: true });
}

// On a phone not all tabs fit: the one that is open is shown.
const tabs = document.querySelector(".tabs");
const here = tabs && tabs.querySelector("[aria-current]");
if (here) tabs.scrollLeft = here.offsetLeft - tabs.offsetLeft - (tabs.clientWidth - here.clientWidth) / 2;

for (const part of document.querySelectorAll("[data-follow]")) follow(part.dataset.follow);

// A picture that cannot be had leaves its name.
addEventListener("error", (event) => {
  if (event.target instanceof HTMLImageElement) event.target.classList.add("missing");
}, true);
