// Find tables and columns while a person types. Arrows choose, Enter opens, Escape closes, and / begins.
const MOST_FOUND = 30;
const box = document.getElementById("search");
const found = document.getElementById("found");
const names = [
  ...lineage.tables.map((table) => ({ name: table.name, place: table.area, address: `table/${table.anchor}`, rank: 0 })),
  ...columns.map((column) => ({
    name: column.name, place: `column of ${lineage.tables[column.table].name}`, address: column.address, rank: 1,
  })),
].map((one) => ({ ...one, lower: `${one.name} ${one.rank ? one.place.slice(10) : ""}`.toLowerCase() }));
let chosen = -1;

// Whole names come first, then names that begin with the words, then others; tables before columns.
function weight(one, text) {
  const name = one.name.toLowerCase();
  return (name === text ? 0 : name.startsWith(text) ? 2 : name.includes(text) ? 4 : 6) + one.rank;
}

function matches(text) {
  const words = text.split(/[\s.]+/).filter(Boolean);
  return names
    .filter((one) => words.every((word) => one.lower.includes(word)))
    .sort((a, b) => weight(a, text) - weight(b, text) || a.name.length - b.name.length);
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
  const all = matches(text);
  found.replaceChildren(
    ...all.slice(0, MOST_FOUND).map((one, index) => {
      const option = element("li", [one.name, element("small", one.place)], { role: "option", id: `found-${index}` });
      option.addEventListener("mousedown", (event) => {
        event.preventDefault();
        open(one.address);
      });
      option.dataset.address = one.address;
      return option;
    }),
  );
  if (all.length > MOST_FOUND) found.append(element("li", `${all.length - MOST_FOUND} more. Type more letters.`, { role: "presentation" }));
  if (!all.length) found.append(element("li", "No table or column has this name.", { role: "presentation" }));
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
