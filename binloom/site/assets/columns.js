// The page of a column: the columns that it is made of, and those that are made of it, drawn and as lists.
const lineage = JSON.parse(document.getElementById("lineage").textContent);
const ROW = 20, PADDING = 8, GAP_X = 70, GAP_Y = 16, MOST_ROWS = 8, CHARACTER = 7.3, MOST_CHARACTERS = 34;

const columns = []; // of all tables, by number
const columnAt = new Map(); // number by address
lineage.tables.forEach((table, tableNumber) => {
  table.first = columns.length;
  table.columns.forEach((name, index) => {
    const address = `column/${table.anchor}/${table.anchors[index]}`;
    columnAt.set(address, columns.length);
    columns.push({ name, address, table: tableNumber, sources: [], targets: [] });
  });
});
for (const [fromTable, fromColumn, toTable, toColumn, isExact] of lineage.edges) {
  const from = lineage.tables[fromTable].first + fromColumn;
  const to = lineage.tables[toTable].first + toColumn;
  columns[from].targets.push({ column: to, isExact });
  columns[to].sources.push({ column: from, isExact });
}

// All columns that can be reached in one direction, without the first.
function reached(start, direction) {
  const found = new Set([start]);
  for (const one of found) for (const next of columns[one][direction]) found.add(next.column);
  found.delete(start);
  return found;
}

// The number of steps from a table to the table of the chosen column, by the longest way, so that lines never go back.
function distances(members, start, direction) {
  const home = columns[start].table;
  const towards = new Map(); // table -> tables that are a step nearer
  for (const one of [start, ...members]) {
    for (const { column } of columns[one][direction]) {
      const [near, far] = [columns[one].table, columns[column].table];
      if (near === far || far === home) continue;
      if (!towards.has(far)) towards.set(far, new Set());
      towards.get(far).add(near);
    }
  }
  const steps = new Map([[home, 0]]);
  const open = new Set();
  const count = (table) => {
    if (steps.has(table)) return steps.get(table);
    if (open.has(table)) return 0; // a circle of tables: dbt does not allow one
    open.add(table);
    const most = Math.max(0, ...[...(towards.get(table) || [])].map(count));
    open.delete(table);
    steps.set(table, most + 1);
    return most + 1;
  };
  for (const table of towards.keys()) count(table);
  return steps;
}

// Members by table. Tables are in the order of their numbers, or of a rank.
function grouped(members, rank = () => 0) {
  const byTable = new Map();
  const order = (a, b) => rank(columns[a].table) - rank(columns[b].table) || a - b;
  for (const one of [...members].sort(order)) {
    const table = columns[one].table;
    if (!byTable.has(table)) byTable.set(table, []);
    byTable.get(table).push(one);
  }
  return byTable;
}

function shortened(name) {
  return name.length <= MOST_CHARACTERS ? name : `${name.slice(0, MOST_CHARACTERS - 1)}…`;
}

// Boxes of tables in layers: the sources on the left, the chosen column, then what is made of it.
function boxesOf(start, sources, targets) {
  const boxes = new Map();
  const add = (members, steps, sign) => {
    for (const [table, rows] of grouped(members)) {
      if (table === columns[start].table) continue;
      boxes.set(table, { table, rows, layer: sign * steps.get(table) });
    }
  };
  add(sources, distances(sources, start, "sources"), -1);
  add(targets, distances(targets, start, "targets"), 1);
  boxes.set(columns[start].table, { table: columns[start].table, rows: [start], layer: 0 });
  for (const box of boxes.values()) {
    box.shown = box.rows.length > MOST_ROWS ? box.rows.slice(0, MOST_ROWS - 1) : box.rows;
    box.height = (1 + box.shown.length + (box.shown === box.rows ? 0 : 1)) * ROW + PADDING;
    const names = [lineage.tables[box.table].name, ...box.shown.map((one) => columns[one].name)];
    box.width = Math.max(...names.map((name) => shortened(name).length)) * CHARACTER + 2 * PADDING;
  }
  return boxes;
}

function place(boxes, edges) {
  const layers = new Map();
  for (const box of boxes.values()) {
    if (!layers.has(box.layer)) layers.set(box.layer, []);
    layers.get(box.layer).push(box);
  }
  const order = [...layers.keys()].sort((a, b) => a - b);
  const heightOf = (layer) => layer.reduce((sum, box) => sum + box.height + GAP_Y, -GAP_Y);
  const height = Math.max(...[...layers.values()].map(heightOf));
  let x = GAP_Y;
  for (const number of order) {
    for (const box of layers.get(number)) box.x = x;
    x += Math.max(...layers.get(number).map((box) => box.width)) + GAP_X;
  }
  // From the chosen column outwards, each layer is in the order of its neighbours.
  for (const number of [...order].sort((a, b) => Math.abs(a) - Math.abs(b))) {
    const layer = layers.get(number);
    for (const box of layer) {
      const near = edges
        .filter(([from, to]) => from === box.table || to === box.table)
        .map(([from, to]) => boxes.get(from === box.table ? to : from))
        .filter((other) => other.y !== undefined && other.layer !== number);
      box.wish = near.length ? near.reduce((sum, other) => sum + other.y + other.height / 2, 0) / near.length : 0;
    }
    layer.sort((a, b) => a.wish - b.wish);
    let y = GAP_Y + (height - heightOf(layer)) / 2;
    for (const box of layer) {
      box.y = y;
      y += box.height + GAP_Y;
    }
  }
  return { width: x - GAP_X + GAP_Y, height: height + 2 * GAP_Y };
}

function rowLine(box, index, label, className) {
  const y = box.y + PADDING / 2 + index * ROW;
  return [
    shape("rect", { x: box.x + 1, y, width: box.width - 2, height: ROW, rx: 3 }),
    shape("text", { x: box.x + PADDING, y: y + ROW * 0.7, class: className }, label),
  ];
}

function linkTo(address, className, title, ...content) {
  const made = shape("a", { href: `#${address}`, class: className }, ...content);
  made.prepend(shape("title", {}, title));
  return made;
}

function drawn(start, sources, targets) {
  const boxes = boxesOf(start, sources, targets);
  const lines = new Map(); // one line for each pair of drawn rows
  const rowOf = (one) => {
    const box = boxes.get(columns[one].table);
    const index = box.shown.indexOf(one);
    return { box, index: index < 0 ? box.shown.length + 1 : index + 1 };
  };
  const members = new Set([start, ...sources, ...targets]);
  const addLines = (side) => {
    for (const one of side) {
      for (const { column, isExact } of columns[one].sources) {
        if (!side.has(column) || columns[column].table === columns[one].table) continue;
        const [from, to] = [rowOf(column), rowOf(one)];
        const key = `${from.box.table}/${from.index}/${to.box.table}/${to.index}`;
        const line = lines.get(key) || { from, to, isExact: false, ends: new Set() };
        line.isExact ||= Boolean(isExact);
        line.ends.add(column).add(one);
        lines.set(key, line);
      }
    }
  };
  addLines(new Set([start, ...sources]));
  addLines(new Set([start, ...targets]));
  const size = place(boxes, [...lines.values()].map((line) => [line.from.box.table, line.to.box.table]));
  const svg = shape("svg", { viewBox: `0 0 ${size.width} ${size.height}`, width: size.width, role: "group", "aria-label": "Way of the column" });
  const paths = [];
  for (const { from, to, isExact, ends } of lines.values()) {
    const middle = (row) => row.box.y + PADDING / 2 + (row.index + 0.5) * ROW;
    const path = shape("path", {
      d: curve(from.box.x + from.box.width, middle(from), to.box.x, middle(to)), class: isExact ? "" : "inexact",
    });
    paths.push({ path, ends });
    svg.append(path);
  }
  const mark = (one, isNear) => {
    for (const { path, ends } of paths) if (ends.has(one)) path.classList.toggle("near", isNear);
  };
  for (const box of boxes.values()) {
    const table = lineage.tables[box.table];
    svg.append(shape("rect", { x: box.x, y: box.y, width: box.width, height: box.height, rx: 6, class: "frame" }));
    svg.append(linkTo(`table/${table.anchor}`, "row table-name", table.name, ...rowLine(box, 0, shortened(table.name), "")));
    box.shown.forEach((one, index) => {
      const name = columns[one].name;
      const className = one === start ? "row chosen" : "row";
      const row = linkTo(columns[one].address, className, name, ...rowLine(box, index + 1, shortened(name), ""));
      for (const event of ["mouseenter", "focus"]) row.addEventListener(event, () => mark(one, true));
      for (const event of ["mouseleave", "blur"]) row.addEventListener(event, () => mark(one, false));
      svg.append(row);
    });
    if (box.shown !== box.rows) {
      const rest = `${box.rows.length - box.shown.length} more`;
      svg.append(...rowLine(box, box.shown.length + 1, rest, "rest").slice(1));
    }
  }
  return svg;
}

// The cell of a column's description, as the page of its table has it.
function descriptionOf(one) {
  const cell = document.getElementById(columns[one].address)?.closest("tr")?.lastElementChild;
  return cell ? [...cell.cloneNode(true).childNodes] : [];
}

function listOf(members, isDescribed, rank) {
  const list = element("dl", [], { class: "chain" });
  for (const [number, rows] of grouped(members, rank)) {
    const table = lineage.tables[number];
    list.append(element("dt", [element("a", table.name, { href: `#table/${table.anchor}` }), ` (${table.area})`]));
    const links = rows.map((one) => element("a", columns[one].name, { href: `#${columns[one].address}`, class: "mono" }));
    if (isDescribed) rows.forEach((one, at) => list.append(element("dd", [links[at], " – ", ...descriptionOf(one)])));
    else list.append(element("dd", links.flatMap((link, at) => (at ? [", ", link] : [link]))));
  }
  return list;
}

function partOf(title, members, none, isDescribed = false, rank = undefined) {
  return [element("h2", title), members.size ? listOf(members, isDescribed, rank) : element("p", none)];
}

function drawColumn(address) {
  const start = columnAt.get(address);
  if (start === undefined) return false;
  const page = document.getElementById("column");
  const table = lineage.tables[columns[start].table];
  const sources = reached(start, "sources");
  const targets = reached(start, "targets");
  const firsts = new Set([...sources].filter((one) => lineage.tables[columns[one].table].kind !== "model"));
  const isFirst = table.kind !== "model";
  page.dataset.title = `${table.name}.${columns[start].name}`;
  const isInexact = [start, ...sources].some((one) => columns[one].sources.some(({ isExact }) => !isExact))
    || [...targets].some((one) => columns[one].sources.some(({ isExact }) => !isExact));
  page.replaceChildren(
    element("p", [element("a", table.name, { href: `#table/${table.anchor}` }), ` / ${table.area}`], { class: "path" }),
    element("h1", columns[start].name),
    element("p", descriptionOf(start)),
  );
  if (sources.size + targets.size) {
    page.append(
      element("p", "The sources of the column are on the left, the columns that are made of it on the right.", { class: "quiet" }),
      element("div", drawn(start, sources, targets), { class: "drawing", tabindex: "0", role: "region", "aria-label": "Drawing" }),
    );
    addZoom(page.querySelector(".drawing"));
  }
  if (isInexact) {
    page.append(element("p", "A dashed line: the SQL could be followed to the table only, not to its columns.", { class: "quiet" }));
  }
  if (!isFirst) {
    page.append(...partOf("In the log", firsts, "No column of a raw table is a source: the SQL counts rows, or writes a constant.", true));
  }
  const [back, on] = [distances(sources, start, "sources"), distances(targets, start, "targets")];
  const between = new Set([...sources].filter((one) => !firsts.has(one)));
  if (sources.size) page.append(...partOf("On the way", between, "No other model is between the log and this column.", false, (table) => -back.get(table)));
  page.append(
    ...partOf("Made of it", targets, "No other column is made of this one.", false, (table) => on.get(table)),
    element("p", "The conditions of joins and filters decide which rows a table has. They are not sources of its columns.", { class: "quiet" }),
  );
  return true;
}
