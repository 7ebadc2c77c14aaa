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

// Where a line can pass the boxes of a stage: its sides, and the heights between, above and below its boxes.
function passage(stage, frame) {
  const areas = [...stage.querySelectorAll(".box")].map((box) => box.getBoundingClientRect());
  const heights = areas.slice(1).map((area, index) => (areas[index].bottom + area.top) / 2 - frame.top);
  return {
    left: areas[0].left - frame.left,
    right: areas[0].right - frame.left,
    heights: [areas[0].top - frame.top - 8, ...heights, areas.at(-1).bottom - frame.top + 8],
  };
}

// A line from a box to another. It passes the stages in between where it comes nearest to the straight way.
function lineThrough(from, to, passages) {
  let path = "", x = from.x, y = from.y;
  for (const { left, right, heights } of passages) {
    const wish = from.y + ((to.y - from.y) * (left - from.x)) / (to.x - from.x);
    const height = heights.reduce((best, one) => (Math.abs(one - wish) < Math.abs(best - wish) ? one : best));
    path += `${curve(x, y, left, height)} L${right},${height} `;
    [x, y] = [right, height];
  }
  return path + curve(x, y, to.x, to.y);
}

function drawWay() {
  if (!way || !way.offsetParent) return; // not shown
  way.querySelector("svg")?.remove();
  const boxes = new Map([...way.querySelectorAll(".box")].map((box) => [box.dataset.area, box]));
  const frame = way.getBoundingClientRect();
  const stages = [...way.querySelectorAll("li")].filter((stage) => stage.querySelector(".box"));
  const stageOf = (box) => stages.indexOf(box.closest("li"));
  const passages = stages.map((stage) => passage(stage, frame));
  const drawing = shape("svg", { "aria-hidden": "true" });
  for (const [name, box] of boxes) {
    for (const fed of box.dataset.feeds.split(" ")) {
      const target = boxes.get(fed);
      // Areas of one stage also read each other. These lines would hide the way.
      if (!target || stageOf(target) <= stageOf(box)) continue;
      const [from, to] = [box.getBoundingClientRect(), target.getBoundingClientRect()];
      const line = lineThrough(
        { x: from.right - frame.left, y: from.top + from.height / 2 - frame.top },
        { x: to.left - frame.left, y: to.top + to.height / 2 - frame.top },
        passages.slice(stageOf(box) + 1, stageOf(target)),
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
