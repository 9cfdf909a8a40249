"use strict";
/* Utility against risk of settings on one sample, redrawn after each measurement; a screen reader reads the table below. */
window.frontier = (() => {
  const NS = "http://www.w3.org/2000/svg";
  const BOX = { left: 46, top: 52, bottom: 300 };
  const METHODS = ["chain", "condense", "classwise", "condense-paper"];
  const MOST = 6;

  function make(name, attributes, text) {
    const node = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    return node;
  }

  function mark(method, x, y, name) {
    const shapes = [
      () => make("circle", { cx: x, cy: y, r: 6 }),
      () => make("rect", { x: x - 5.5, y: y - 5.5, width: 11, height: 11 }),
      () => make("path", { d: `M${x} ${y - 7}L${x + 7} ${y + 6}L${x - 7} ${y + 6}Z` }),
      () => make("path", { d: `M${x} ${y - 7}L${x + 7} ${y}L${x} ${y + 7}L${x - 7} ${y}Z` }),
    ];
    const place = Math.max(0, METHODS.indexOf(method));
    const node = shapes[place]();
    node.setAttribute("class", `mark m${place} ${name}`);
    return node;
  }

  function ticks(low, high, count) {
    const rough = (high - low) / count || 1;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((digit) => digit * power).find((each) => each >= rough) || 10 * power;
    const found = [];
    for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) found.push(Number(at.toPrecision(12)));
    return found;
  }

  function draw(svg, points, picked, words) {
    const broad = svg.clientWidth < 480 ? 380 : 640; // letters stay readable on a phone
    BOX.right = broad - 20;
    svg.setAttribute("viewBox", `0 0 ${broad} 345`);
    const utilities = points.map((each) => each.utility).concat(points.map((each) => each.original));
    let low = Math.min(...utilities), high = Math.max(...utilities);
    const margin = Math.max(0.02, 0.12 * (high - low));
    low -= margin; high += margin;
    const wide = Math.max(2, ...points.map((each) => Math.min(MOST, Math.max(0, each.risk)))) * 1.05;
    const x = (risk) => BOX.left + (Math.min(MOST, Math.max(0, risk)) / wide) * (BOX.right - BOX.left);
    const y = (utility) => BOX.bottom - ((utility - low) / (high - low || 1)) * (BOX.bottom - BOX.top);
    const across = [...ticks(0, wide, 6)], up = ticks(low, high, 5);
    const nodes = [
      make("path", { d: `M${BOX.left} ${BOX.top}V${BOX.bottom}H${BOX.right}`, class: "axis", fill: "none" }),
      make("path", { d: `M${x(1)} ${BOX.top - 6}V${BOX.bottom}`, class: "limit", fill: "none" }),
      make("text", { x: x(1) + 6, y: BOX.top + 2 }, "limit"),
      make("text", { x: (BOX.left + BOX.right) / 2, y: 338, "text-anchor": "middle" }, "risk: strongest attack, multiple of its limit"),
      make("text", { x: 8, y: 36 }, words || "utility"),
    ];
    for (const at of across) {
      nodes.push(make("path", { d: `M${x(at)} ${BOX.bottom}v5`, class: "axis", fill: "none" }));
      nodes.push(make("text", { x: x(at), y: BOX.bottom + 18, "text-anchor": "middle" }, String(at)));
    }
    for (const at of up) {
      nodes.push(make("path", { d: `M${BOX.left} ${y(at)}h-5`, class: "axis", fill: "none" }));
      nodes.push(make("text", { x: BOX.left - 8, y: y(at) + 4, "text-anchor": "end" }, String(at)));
    }
    for (const each of points) nodes.push(mark(each.method, x(each.risk), y(each.utility), "point"));
    for (const each of points) {
      const beyond = each.risk > MOST; // it lies outside: an arrow and its figure show it
      const label = beyond ? `${each.size}, risk ${each.risk.toFixed(1)} \u2192` : String(each.size);
      nodes.push(make("text", { x: x(each.risk) + (beyond ? -9 : 8), y: y(each.utility) - 6, class: "size", "text-anchor": beyond ? "end" : "start" }, label));
      if (picked && each.method === picked.method && each.size === picked.size)
        nodes.push(make("circle", { cx: x(each.risk), cy: y(each.utility), r: 11, class: "picked" }));
    }
    METHODS.filter((method) => points.some((each) => each.method === method)).forEach((method, place) => {
      nodes.push(mark(method, 16 + 95 * place, 10, ""));
      nodes.push(make("text", { x: 26 + 95 * place, y: 14 }, method));
    });
    svg.replaceChildren(...nodes);
  }

  return { draw };
})();
