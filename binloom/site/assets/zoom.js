// A drawing fits its frame. Buttons make it larger; it then scrolls in its frame.
const ZOOM_STEP = 1.5;

// How many pixels a unit of the drawing takes.
function scaleOf(svg) {
  const { width, height } = svg.viewBox.baseVal;
  return Math.min(svg.clientWidth / width, svg.clientHeight / height);
}

// The point of the drawing that stays in the middle: of a drawing that fits, the chosen box.
function middleOf(drawing, svg, scale) {
  if (!svg.style.width) {
    const { x, y, width, height } = svg.querySelector(".chosen rect").getBBox();
    return [x + width / 2, y + height / 2];
  }
  return [(drawing.scrollLeft + drawing.clientWidth / 2) / scale, (drawing.scrollTop + drawing.clientHeight / 2) / scale];
}

function zoom(drawing, factor) {
  const svg = drawing.querySelector("svg");
  const scale = scaleOf(svg) * factor;
  const [x, y] = middleOf(drawing, svg, scale / factor);
  svg.style.width = `${svg.viewBox.baseVal.width * scale}px`;
  svg.style.maxWidth = svg.style.maxHeight = "none";
  drawing.scrollLeft = x * scale - drawing.clientWidth / 2;
  drawing.scrollTop = y * scale - drawing.clientHeight / 2;
}

function addZoom(drawing) {
  const button = (label, act) => {
    const made = element("button", label, { type: "button" });
    made.addEventListener("click", act);
    return made;
  };
  drawing.before(element("p", [
    button("Larger", () => zoom(drawing, ZOOM_STEP)),
    button("Smaller", () => zoom(drawing, 1 / ZOOM_STEP)),
    button("Whole", () => drawing.querySelector("svg").removeAttribute("style")),
  ], { class: "zoom", role: "group", "aria-label": "Size of the drawing" }));
}

for (const drawing of document.querySelectorAll(".drawing")) addZoom(drawing);
