// Draw the lines between the boxes of the first page, and mark the neighbours of a box.
const SVG = "http://www.w3.org/2000/svg";
const way = document.querySelector(".way");

function shape(tag, attributes, ...content) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...content);
  return made;
}

function curve(fromX, fromY, toX, toY) {
  const middle = (fromX + toX) / 2;
  return `M${fromX},${fromY} C${middle},${fromY} ${middle},${toY} ${toX},${toY}`;
}

function drawWay() {
  if (!way || !way.offsetParent) return; // not shown
  way.querySelector("svg")?.remove();
  const boxes = new Map([...way.querySelectorAll(".box")].map((box) => [box.dataset.area, box]));
  // Snapshots of schemas are raw tables too.
  boxes.get("schemas").dataset.feeds = "raw";
  const frame = way.getBoundingClientRect();
  const drawing = shape("svg", { "aria-hidden": "true" });
  for (const [name, box] of boxes) {
    const from = box.getBoundingClientRect();
    for (const fed of box.dataset.feeds.split(" ")) {
      const to = boxes.get(fed)?.getBoundingClientRect();
      // Areas of one column also read each other. These lines would hide the way.
      if (!to || to.left <= from.right) continue;
      const line = curve(
        from.right - frame.left, from.top + from.height / 2 - frame.top,
        to.left - frame.left, to.top + to.height / 2 - frame.top,
      );
      drawing.append(shape("path", { d: line, "data-from": name, "data-to": fed }));
    }
  }
  way.prepend(drawing);
}

function markNeighbours(name) {
  for (const line of way.querySelectorAll("path")) {
    line.classList.toggle("near", name !== null && [line.dataset.from, line.dataset.to].includes(name));
  }
  const feeds = (box) => box.dataset.feeds.split(" ");
  const chosen = [...way.querySelectorAll(".box")].find((box) => box.dataset.area === name);
  for (const box of way.querySelectorAll(".box")) {
    const isNear = chosen && (feeds(chosen).includes(box.dataset.area) || feeds(box).includes(name));
    box.classList.toggle("near", Boolean(isNear));
  }
}

if (way) {
  for (const box of way.querySelectorAll(".box")) {
    for (const event of ["mouseenter", "focus"]) box.addEventListener(event, () => markNeighbours(box.dataset.area));
    for (const event of ["mouseleave", "blur"]) box.addEventListener(event, () => markNeighbours(null));
  }
  window.addEventListener("resize", drawWay);
}
