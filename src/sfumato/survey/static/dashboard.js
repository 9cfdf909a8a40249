// The dashboard: asks for the estimate every few seconds and draws it. There are no single answers to draw.
const SVG = "http://www.w3.org/2000/svg";
const EVERY = 5000;
const HEIGHT = 270;
const EDGE = { left: 50, right: 18, top: 12, bottom: 58 };
const EVEN = 1.6; // cells whose widths differ by less are drawn along a ruler

const part = (id) => document.getElementById(id);
const percent = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
const short = (number) => (typeof number === "number" ? String(Number(number.toPrecision(4))) : number);
const STEPS = [1, 2, 2.5, 5, 10];

function make(name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// The names of the cells: values, or intervals between edges.
function names(figure) {
  if (figure.values) return figure.values.map(short);
  return figure.edges.slice(0, -1).map((edge, index) => `${short(edge)} to ${short(figure.edges[index + 1])}`);
}

function scale(figure) {
  const top = Math.max(...figure.upper, ...figure.probability, 1e-9) * 1.05;
  const inner = HEIGHT - EDGE.top - EDGE.bottom;
  return { top, y: (share) => EDGE.top + inner * (1 - share / top) };
}

// A round step that cuts a range into few parts.
function round(range, most) {
  const ten = 10 ** Math.floor(Math.log10(range / most));
  return ten * STEPS.find((each) => range / (ten * each) <= most);
}

function axis(svg, { top, y }, width) {
  const step = round(top, 5);
  const digits = step < 0.001 ? 2 : step < 0.01 ? 1 : 0;
  for (let share = 0; share <= top; share += step) {
    svg.append(make("line", { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: y(share), y2: y(share) }));
    const tick = { class: "tick", x: EDGE.left - 6, y: y(share) + 4, "text-anchor": "end" };
    svg.append(make("text", tick, `${(100 * share).toFixed(digits)} %`));
  }
}

// Where cells lie, from 0 to 1, and the numbers along them: null where cells are names or too uneven to measure along.
function layout(figure) {
  const count = figure.probability.length;
  const even = Array.from({ length: count + 1 }, (_, index) => index / count);
  if (figure.values) {
    const numbers = figure.values;
    if (typeof numbers[0] !== "number" || count < 2) return { cuts: even, ruler: null };
    const [low, high] = [numbers[0], numbers.at(-1)];
    const place = (number) => (((number - low) / (high - low)) * (count - 1) + 0.5) / count;
    return { cuts: even, ruler: { low, high, place } };
  }
  const [low, high] = [figure.edges[0], figure.edges.at(-1)];
  const widths = figure.edges.slice(1).map((edge, index) => edge - figure.edges[index]);
  const inner = count > 2 ? widths.slice(1, -1) : widths;
  if (Math.max(...widths) > EVEN * Math.min(...inner)) return { cuts: even, ruler: null };
  const place = (number) => (number - low) / (high - low);
  return { cuts: figure.edges.map(place), ruler: { low, high, place } };
}

function bars(svg, figure, { y }, { cuts }, across) {
  figure.probability.forEach((share, index) => {
    const x = EDGE.left + across * cuts[index];
    const wide = across * (cuts[index + 1] - cuts[index]);
    const gap = wide < 6 ? 0 : Math.min(6, wide * 0.15);
    const middle = x + wide / 2;
    svg.append(make("rect", { class: "bar", x: x + gap / 2, y: y(share), width: wide - gap, height: y(0) - y(share) }));
    if (figure.upper[index] === null) return; // no band can be given
    const [low, high] = [y(figure.lower[index]), y(figure.upper[index])];
    svg.append(make("line", { class: "band", x1: middle, x2: middle, y1: high, y2: low }));
  });
}

function write(svg, x, text, slanted) {
  const y = HEIGHT - EDGE.bottom + 20;
  const attributes = { class: "tick", x, y, "text-anchor": slanted ? "end" : "middle" };
  if (slanted) attributes.transform = `rotate(-35 ${x} ${y - 6})`;
  svg.append(make("text", attributes, text.length > 12 ? `${text.slice(0, 11)}…` : text));
}

function labels(svg, figure, { cuts, ruler }, across) {
  if (ruler) {
    const step = round(ruler.high - ruler.low, across / 70);
    for (let at = Math.ceil(ruler.low / step) * step; at <= ruler.high + step / 1e6; at += step)
      write(svg, EDGE.left + across * ruler.place(at), short(at), false);
    return;
  }
  const all = names(figure);
  const every = Math.ceil((all.length * 28) / across);
  const slanted = all.length * 90 > across;
  all.forEach((name, index) => {
    const middle = (cuts[index] + cuts[index + 1]) / 2;
    if (index % every === 0) write(svg, EDGE.left + across * middle, name, slanted);
  });
}

function draw(name, figure) {
  const svg = part(`figure-${name}`);
  const width = matchMedia("(max-width: 30rem)").matches ? 340 : 640;
  const across = width - EDGE.left - EDGE.right;
  svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  const title = `Estimated distribution with ${percent(figure.level)} bands; the numbers are in the table below.`;
  svg.replaceChildren(make("title", {}, title));
  const scaled = scale(figure);
  const cells = layout(figure);
  axis(svg, scaled, width);
  bars(svg, figure, scaled, cells, across);
  labels(svg, figure, cells, across);
}

function fill(name, figure) {
  const rows = names(figure).map((each, index) => {
    const row = document.createElement("tr");
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = each;
    row.append(head);
    for (const share of [figure.probability[index], figure.lower[index], figure.upper[index]]) {
      const cell = document.createElement("td");
      cell.textContent = share === null ? "no band" : percent(share);
      row.append(cell);
    }
    return row;
  });
  part(`rows-${name}`).replaceChildren(...rows);
}

function note(name, figure) {
  const notes = figure.notes.map((text) => {
    const item = document.createElement("li");
    item.textContent = `${text[0].toUpperCase()}${text.slice(1)}.`;
    return item;
  });
  part(`notes-${name}`).replaceChildren(...notes);
}

function show(state) {
  part("count").textContent = state.count === null ? "…" : state.count.toLocaleString("en");
  part("words").textContent = state.words;
  if (!state.figures) return;
  part("of").textContent = `The figures are of ${state.figures.count.toLocaleString("en")} answers.`;
  for (const [name, figure] of Object.entries(state.figures.questions)) {
    part(`refused-${name}`).textContent = figure.refused ?? "";
    part(`shown-${name}`).hidden = Boolean(figure.refused);
    if (figure.refused) continue;
    draw(name, figure);
    fill(name, figure);
    note(name, figure);
  }
}

async function look() {
  try {
    const response = await fetch("/dashboard/estimate");
    if (response.status === 401) return location.reload();
    const state = await response.json();
    if (response.ok) show(state);
    else part("words").textContent = `${state.error}.`;
  } catch {
    part("words").textContent = "The server could not be reached; the figures are old.";
  }
  setTimeout(look, EVERY);
}

part("leave").addEventListener("click", async () => {
  await fetch("/dashboard/logout", { method: "POST" });
  location.reload();
});
look();
