// Show the page that the address names. A page has the id of its address; `column/...` is drawn from the lineage.
const pages = [...document.querySelectorAll("section.page")];
const startTitle = document.title;
document.documentElement.classList.add("js");
for (const page of pages) page.hidden = false;

function element(tag, content, attributes = {}) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...[content].flat());
  return made;
}

function named(address) {
  try {
    return document.getElementById(address) || document.getElementById(decodeURIComponent(address));
  } catch {
    return null; // a % without a code
  }
}

function show(isFirst) {
  const address = location.hash.slice(1) || "start";
  const isColumn = address.startsWith("column/") && drawColumn(address);
  const target = isColumn ? document.getElementById("column") : named(address) || document.getElementById("unknown");
  const page = target.closest("section.page") || document.getElementById("start");
  for (const one of pages) one.classList.toggle("shown", one === page);
  document.title = page.id === "start" ? startTitle : `${page.dataset.title} – ${startTitle}`;
  if (target === page) window.scrollTo(0, 0);
  else target.scrollIntoView();
  // A reader of the screen begins at the new page, not at the link that was followed.
  if (!isFirst) page.focus({ preventScroll: true });
  drawWay();
}

window.addEventListener("hashchange", () => show(false));
document.addEventListener("DOMContentLoaded", () => show(true));
