// Find tables and columns while a person types. Arrows choose, Enter opens, Escape closes, and / begins.
const MOST_FOUND = 30, BEFORE_WORD = 40, EXCERPT = 130;
const box = document.getElementById("search");
const found = document.getElementById("found");
const names = [
  ...lineage.tables.map((table) => ({ name: table.name, place: table.area, address: `table/${table.anchor}`, rank: 0 })),
  ...columns.map((column) => ({
    name: column.name, place: `column of ${lineage.tables[column.table].name}`, address: column.address, rank: 1,
  })),
].map((one) => ({ ...one, lower: `${one.name} ${one.rank ? one.place.slice(10) : ""}`.toLowerCase() }));
let chosen = -1;

// Descriptions are on the page; the first search reads them.
function aboutOf(one) {
  const shown = document.getElementById(one.address);
  one.about ??= (one.rank ? shown.closest("tr").lastElementChild : shown.querySelector(".about")).textContent.replace(/\s+/g, " ");
  return one.about;
}

const isNamed = (one, words) => words.every((word) => one.lower.includes(word));
const isDescribed = (one, words) => {
  const all = `${one.lower} ${aboutOf(one).toLowerCase()}`;
  return words.every((word) => all.includes(word));
};

// Whole names come first, then names that begin with the words, then others, then descriptions; tables before columns.
function weight(one, text, words) {
  const name = one.name.toLowerCase();
  const kinds = [
    name === text, name.startsWith(text), name.includes(text), isNamed(one, words), aboutOf(one).toLowerCase().includes(text),
    true,
  ];
  return 2 * kinds.indexOf(true) + one.rank;
}

function matches(text, words) {
  return names
    .filter((one) => isDescribed(one, words))
    .map((one) => ({ one, weight: weight(one, text, words) }))
    .sort((a, b) => a.weight - b.weight || a.one.name.length - b.one.name.length)
    .map(({ one }) => one);
}

// The part of a description that has the text, or the first word that is not in the name.
function excerptOf(one, text, words) {
  if (isNamed(one, words)) return "";
  const about = aboutOf(one).trim();
  const places = [text, words.find((word) => !one.lower.includes(word))].map((each) => about.toLowerCase().indexOf(each));
  const place = places.find((each) => each >= 0) - BEFORE_WORD;
  const begin = place > 0 ? about.indexOf(" ", place) + 1 : 0;
  const end = begin + EXCERPT;
  return `: ${begin ? "…" : ""}${about.slice(begin, end)}${end < about.length ? "…" : ""}`;
}

function choose(index) {
  const options = [...found.querySelectorAll("[role=option]")];
  chosen = options.length ? (index + options.length) % options.length : -1;
  options.forEach((option, at) => option.setAttribute("aria-selected", String(at === chosen)));
  options[chosen]?.scrollIntoView({ block: "nearest" });
  if (chosen >= 0) box.setAttribute("aria-activedescendant", options[chosen].id);
  else box.removeAttribute("aria-activedescendant");
}

function closeFound() {
  found.hidden = true;
  box.setAttribute("aria-expanded", "false");
  box.removeAttribute("aria-activedescendant");
}

function open(address) {
  closeFound();
  box.value = "";
  box.blur();
  location.hash = `#${address}`;
}

function look() {
  const text = box.value.trim().toLowerCase();
  if (!text) return closeFound();
  const words = text.split(/[\s.]+/).filter(Boolean);
  const all = matches(text, words);
  found.replaceChildren(
    ...all.slice(0, MOST_FOUND).map((one, index) => {
      const option = element("li", [one.name, element("small", one.place + excerptOf(one, text, words))], { role: "option", id: `found-${index}` });
      option.addEventListener("mousedown", (event) => {
        event.preventDefault();
        open(one.address);
      });
      option.dataset.address = one.address;
      return option;
    }),
  );
  if (all.length > MOST_FOUND) found.append(element("li", `${all.length - MOST_FOUND} more. Type more letters.`, { role: "presentation" }));
  if (!all.length) found.append(element("li", "No name and no description has these words.", { role: "presentation" }));
  found.hidden = false;
  box.setAttribute("aria-expanded", "true");
  choose(0);
}

box.addEventListener("input", look);
box.addEventListener("focus", look);
box.addEventListener("blur", closeFound);
box.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    choose(chosen + (event.key === "ArrowDown" ? 1 : -1));
  } else if (event.key === "Enter" && chosen >= 0 && !found.hidden) {
    open(found.querySelectorAll("[role=option]")[chosen].dataset.address);
  } else if (event.key === "Escape") {
    box.value = "";
    closeFound();
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.ctrlKey && !event.metaKey && document.activeElement !== box) {
    event.preventDefault();
    box.focus();
  }
});
