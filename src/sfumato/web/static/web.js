"use strict";
/* The page's own script: sends files and choices to this machine, and says how far the work is. */
(() => {
  const TOKEN = document.querySelector("meta[name=sfumato-page]").content;
  const page = document.body.dataset.page;
  const by = (id) => document.getElementById(id);
  const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
  const GONE = "'sfumato web' has ended. Start it again.";

  function sentence(text) {
    const found = text.charAt(0).toUpperCase() + text.slice(1);
    return /[.!?]$/.test(found) ? found : `${found}.`;
  }

  function problem(text) {
    by("problem").textContent = text ? sentence(text) : "";
  }

  async function answered(response) {
    let found = {};
    try { found = await response.json(); } catch { /* not of this server */ }
    if (!response.ok) throw Object.assign(new Error(found.error || "The request was refused"), { proposed: found.proposed || {} });
    return found;
  }

  async function reach(path, options) {
    let response;
    try { response = await fetch(path, options); } catch { throw new Error(GONE); }
    return answered(response);
  }

  const post = (path, body) => reach(path, {
    method: "POST", headers: { "x-sfumato-page": TOKEN, "content-type": "application/json" }, body: JSON.stringify(body || {}),
  });
  const job = () => reach("/api/job");

  /* Follows a job until it is over; says where it is now and then, not at every step. */
  async function follow(show) {
    for (let wait = 150; ; wait = Math.min(800, wait * 1.2)) {
      const found = await job();
      show(found);
      if (found.state !== "running") return found;
      await pause(wait);
    }
  }

  let spoken = 0;
  function speak(node, text, now) {
    if (now || Date.now() - spoken > 4000) {
      spoken = Date.now();
      if (node.textContent !== text) node.textContent = text;
    }
  }

  async function working(title, next) {
    const box = by("working");
    const others = [...document.querySelectorAll("main button:not(#cancel):not(:disabled)")];
    for (const each of others) each.disabled = true;
    box.hidden = false;
    by("working-title").textContent = title;
    by("cancel").onclick = () => post("/api/stop").catch((error) => problem(error.message));
    box.scrollIntoView({ block: "nearest" });
    spoken = 0;
    let stage = "";
    try {
      const found = await follow((each) => {
        if (each.stage) by("bar").value = each.fraction;
        speak(by("stage"), each.stage ? sentence(each.stage) : "Reading.", each.stage !== stage);
        stage = each.stage;
      });
      if (found.state === "done") { location.assign(next); return; }
      problem(found.state === "cancelled" ? "Cancelled; nothing was made" : found.error);
      if (found.kind === "look") unread(found.proposed);
    } catch (error) { problem(error.message); }
    for (const each of others) each.disabled = false;
    box.hidden = true;
  }

  async function begin(path, body, title, next) {
    problem("");
    try { await post(path, body); } catch (error) { problem(error.message); return; }
    await working(title, next);
  }

  const choices = () => JSON.parse(by("data").dataset.choices);

  /* How the file is read and which marks mean a missing cell, as the fields say. */
  function reading(before) {
    const text = (id) => by(id)?.value.trim() || null;
    const sheet = by("sheet");
    const same = sheet?.tagName === "SELECT" && before.reading.sheet === null && sheet.selectedOptions[0].defaultSelected;
    const row = text("header-row");
    return {
      reading: {
        encoding: text("encoding"),
        delimiter: by("delimiter")?.value || null,
        decimal: by("decimal")?.value || null,
        sheet: same ? null : text("sheet"),
        header_row: row === null ? null : Number(row),
      },
      missing: (text("missing") || "").split(",").map((each) => each.trim()).filter((each) => each),
    };
  }

  /* A file could not be read: shows the fields, filled with what may read it. */
  function unread(proposed) {
    const box = by("reading");
    if (!box) return;
    box.open = true;
    box.before(by("problem")); // next to the fields that correct it
    by("reread").hidden = false;
    for (const [name, value] of Object.entries(proposed || {})) {
      const field = by(name.replace("_", "-"));
      if (field) field.value = value;
    }
    box.scrollIntoView({ block: "nearest" });
  }

  function reread(next) {
    by("reread").addEventListener("click", async () => {
      const before = choices();
      problem("");
      try { await post("/api/look", { ...before, columns: [], rules: null, ...reading(before) }); location.assign(next); }
      catch (error) { problem(error.message); unread(error.proposed); }
    });
  }

  function start() {
    const drop = by("drop"), input = by("file");
    function send(file) {
      if (!file) return;
      problem("");
      if (file.size > Number(drop.dataset.limit)) { input.value = ""; problem(drop.dataset.tooLarge); return; }
      by("working").hidden = false;
      by("working-title").textContent = `Reading ${file.name}`;
      const request = new XMLHttpRequest();
      const query = { name: file.name, choices: JSON.stringify(reading(choices())) };
      request.open("POST", `/api/file?${new URLSearchParams(query)}`);
      request.setRequestHeader("x-sfumato-page", TOKEN);
      request.setRequestHeader("content-type", "application/octet-stream");
      request.upload.onprogress = (event) => { if (event.lengthComputable) by("bar").value = event.loaded / event.total; };
      by("cancel").onclick = () => request.abort();
      const failed = (text) => { by("working").hidden = true; input.value = ""; problem(text); };
      request.onabort = () => failed("Cancelled");
      request.onerror = () => failed("The upload failed: the file is too large, or 'sfumato web' has ended");
      request.onload = () => {
        let found = {};
        try { found = JSON.parse(request.responseText); } catch { /* not of this server */ }
        by("open")?.remove(); // it is no longer the file that is read
        if (request.status === 200) working(`Inspecting ${file.name}`, "/columns").then(() => { input.value = ""; });
        else failed(found.error || "The request was refused");
      };
      request.send(file);
    }
    reread("/columns");
    input.addEventListener("change", () => send(input.files[0]));
    for (const name of ["dragenter", "dragover"]) document.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
    for (const name of ["dragleave", "drop"]) document.addEventListener(name, (event) => { event.preventDefault(); drop.classList.remove("over"); });
    document.addEventListener("drop", (event) => send(event.dataTransfer.files[0]));
    by("forget")?.addEventListener("click", () => post("/api/forget").then(() => location.reload(), (error) => problem(error.message)));
  }

  function columns() {
    const rows = [...document.querySelectorAll("tr[data-column]")];
    let rulesTouched = choices().rules !== null;
    const text = (id) => by(id)?.value.trim() || null;
    const number = (id) => (by(id).value === "" ? null : Number(by(id).value));

    function chosen() {
      const before = choices();
      const kept = [...document.querySelectorAll(".rule")].filter((each) => each.checked).map((each) => each.value);
      return {
        ...before,
        columns: rows.map((row) => ({
          name: row.dataset.column,
          role: row.querySelector(".role").value,
          kind: row.querySelector(".kind-of").value,
          hierarchy: row.querySelector(".hierarchy").value.trim(),
          coarsened: row.querySelector(".hierarchy").value.trim() ? Number(row.querySelector(".coarsened").value) || 0 : 0,
          known: row.querySelector(".known").checked,
          known_level: row.querySelector(".known-level").hidden ? 0 : Number(row.querySelector(".known-level").value) || 0,
        })),
        rules: rulesTouched ? kept : null,
        rare: text("rare"),
        k: number("k"),
        level: text("level"),
      };
    }

    function list(found, kept) {
      by("no-rules").hidden = found.length > 0;
      by("rules").replaceChildren(...found.map((rule) => {
        const item = document.createElement("li"), label = document.createElement("label");
        const box = Object.assign(document.createElement("input"), { type: "checkbox", className: "rule", value: rule, checked: kept.includes(rule) });
        const code = document.createElement("code");
        code.textContent = rule;
        label.append(box, " ", code);
        item.append(label);
        return item;
      }));
    }

    function show(look, sent) {
      by("data").dataset.choices = JSON.stringify(sent);
      rows.forEach((row, place) => {
        const found = look.columns[place];
        row.querySelector(".fate").textContent = found.fate;
        row.querySelector(".why").textContent = found.why;
        row.querySelector(".domain").textContent = found.domain;
        row.querySelector(".role").value = found.role;
        row.querySelector(".known-level").hidden = !found.leveled || !row.querySelector(".known").checked;
        row.querySelector(".coarsened").hidden = !row.querySelector(".hierarchy").value.trim();
        row.querySelector("datalist").replaceChildren(...found.offered.map((each) => Object.assign(document.createElement("option"), { value: each })));
      });
      const boxes = [...document.querySelectorAll(".rule")].map((each) => each.value);
      const same = boxes.length === look.found.length && boxes.every((each, place) => each === look.found[place]);
      if (!same) list(rulesTouched ? [...new Set([...boxes, ...look.found])] : look.found, look.rules);
      speak(by("said"), [`Updated: ${look.columns.length} columns, ${look.rules.length} rules.`, ...look.notes.map(sentence)].join(" "), true);
    }

    let busy = false, again = false, failed = "";
    async function look() {
      if (busy) { again = true; return; }
      busy = true;
      do {
        again = false;
        problem("");
        failed = "";
        const sent = chosen();
        speak(by("said"), "Updating.", true);
        try { show(await post("/api/look", sent), sent); }
        catch (error) { if (!again) { failed = error.message; problem(failed); speak(by("said"), "Not possible; see the message.", true); } }
      } while (again);
      busy = false;
    }

    document.addEventListener("change", (event) => {
      if (event.target.closest("details") || event.target.id === "rule") return;
      if (event.target.classList.contains("rule")) rulesTouched = true;
      event.target.closest(".fields, table, ul").after(by("problem")); // next to the control that caused it
      look();
    });
    by("add-rule").addEventListener("click", async () => {
      const rule = by("rule").value.trim();
      if (!rule) return;
      const boxes = [...document.querySelectorAll(".rule")];
      rulesTouched = true;
      list([...boxes.map((each) => each.value), rule], [...boxes.filter((each) => each.checked).map((each) => each.value), rule]);
      by("rule").value = "";
      by("add-rule").closest("p").after(by("problem"));
      await look();
      if (!failed) return;
      by("rule").value = rule; // to be corrected
      document.querySelectorAll("#rules li").item(boxes.length).remove();
      by("no-rules").hidden = boxes.length > 0;
      const text = failed;
      await look();
      problem(text);
    });
    by("rule").addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); by("add-rule").click(); } });
    reread("/columns");
    for (const link of document.querySelectorAll("a[href='/policy']")) link.addEventListener("click", async (event) => {
      if (!busy && !failed) return;
      event.preventDefault();
      while (busy) await pause(100);
      if (failed) problem(failed);
      else location.assign("/policy");
    });
  }

  function policy() {
    function chosen() {
      const number = (id) => (by(id).value === "" ? null : Number(by(id).value));
      return {
        ...choices(),
        policy: document.querySelector("input[name=policy]:checked").value,
        holdout: number("holdout") ?? 0.3,
        time_limit: number("time_limit"),
        seed: number("seed"),
      };
    }
    async function kept(then) {
      problem("");
      try { await post("/api/choices", chosen()); await then(); } catch (error) { problem(error.message); }
    }
    by("search").addEventListener("click", () => kept(async () => { await post("/api/search"); location.assign("/search"); }));
    by("skip").addEventListener("click", () => kept(() => begin("/api/release", {}, "Making and measuring the release", "/result")));
  }

  function search() {
    const rows = new Map();
    const svg = by("frontier"), body = by("points");
    let latest = [], picked = null, words = "", count = -1;
    const key = (each) => `${each.method} ${each.size}`;
    const digits = (value) => (Math.abs(value) >= 0.005 ? value.toFixed(2) : "0.00");
    const OUTCOMES = { meets: "meets", "does-not-meet": "does not meet", inconclusive: "inconclusive" };

    function pick(each) {
      picked = each;
      for (const [name, row] of rows) {
        row.classList.toggle("picked-row", name === key(each));
        row.querySelector("input").checked = name === key(each);
      }
      draw();
    }

    /* Risks are compared on one sample: the picked setting's, or the largest one. */
    function draw() {
      const people = picked ? picked.people : Math.max(...latest.map((each) => each.people));
      const shown = latest.filter((each) => each.people === people);
      const others = latest.length - shown.length;
      by("sample").textContent = `Settings on a sample of ${people.toLocaleString("en")} people.` + (others ? ` ${others} more on samples of other sizes: see the table.` : "");
      window.frontier.draw(svg, shown, picked, words);
    }

    function row(each) {
      const made = document.createElement("tr"), head = document.createElement("th"), label = document.createElement("label");
      head.scope = "row";
      const radio = Object.assign(document.createElement("input"), { type: "radio", name: "point" });
      radio.addEventListener("change", () => pick(latest.find((other) => key(other) === key(each))));
      label.append(radio, each.words);
      head.append(label);
      made.append(head);
      for (const name of ["People", "Utility", "Original", "Risk", "Policy"]) {
        const cell = document.createElement("td");
        cell.dataset.label = name;
        made.append(cell);
      }
      return made;
    }

    function update(points) {
      if (points.length === count) return;
      count = points.length;
      const largest = new Map();
      for (const each of points) if (!largest.has(key(each)) || each.people >= largest.get(key(each)).people) largest.set(key(each), each);
      latest = [...largest.values()];
      for (const each of latest) {
        if (!rows.has(key(each))) { rows.set(key(each), row(each)); body.append(rows.get(key(each))); }
        const cells = rows.get(key(each)).querySelectorAll("td");
        const texts = [each.people.toLocaleString("en"), each.utility.toFixed(3), each.original.toFixed(3), digits(each.risk), OUTCOMES[each.outcome]];
        texts.forEach((text, place) => { cells[place].textContent = text; });
      }
      if (latest.length) draw();
    }

    function done(tuning) {
      words = tuning.metric;
      by("searching").hidden = true;
      const box = by("found");
      box.hidden = false;
      box.classList.toggle("meets", tuning.meets);
      by("verdict-title").textContent = tuning.headline;
      by("found-reason").textContent = tuning.reason ? `Nearest: ${tuning.chosen.words}; ${tuning.reason}.` : "";
      by("found-more").replaceChildren(...[...tuning.alternatives, ...tuning.changes, ...tuning.notes, ...tuning.warnings.map(sentence)].map((text) => Object.assign(document.createElement("li"), { textContent: text })));
      const chosen = tuning.chosen && latest.find((each) => key(each) === key(tuning.chosen));
      if (chosen) pick(chosen);
      by("make").disabled = !picked;
      box.focus();
    }

    by("stop").addEventListener("click", () => post("/api/stop").catch((error) => problem(error.message)));
    by("make").addEventListener("click", () => begin("/api/release", { method: picked.method, size: picked.size }, `Making and measuring ${picked.words}`, "/result"));
    by("usual").addEventListener("click", async () => {
      try {
        if ((await job()).state === "running") { await post("/api/stop"); await follow(() => {}); }
      } catch (error) { problem(error.message); return; }
      begin("/api/release", {}, "Making and measuring the release", "/result");
    });

    (async () => {
      try {
        const now = await job();
        if (now.kind !== "tune" || now.state !== "running") {
          const tuning = JSON.parse(by("data").dataset.tuning);
          update(JSON.parse(by("data").dataset.points));
          by("searching").hidden = true;
          if (tuning) done(tuning);
          else if (now.kind === "tune" && now.error) problem(now.error);
          return;
        }
        const found = await follow((each) => {
          update(each.points);
          by("search-bar").value = each.fraction;
          speak(by("said"), latest.length ? `${latest.length} ${latest.length === 1 ? "setting" : "settings"} tried, ${Math.round(100 * each.fraction)} % of the time.` : "Trying the first settings.", false);
        });
        by("searching").hidden = true;
        if (found.state === "done") done(found.tuning);
        else problem(found.state === "cancelled" ? "Stopped before a setting was measured" : found.error);
      } catch (error) { problem(error.message); }
    })();
  }

  function result() {
    by("save")?.addEventListener("click", async () => {
      try { by("saved").textContent = `Saved in ${(await post("/api/save")).saved}.`; } catch (error) { problem(error.message); }
    });
    const despite = by("despite");
    despite?.addEventListener("click", () => begin("/api/release", {
      method: despite.dataset.method || null, size: despite.dataset.size ? Number(despite.dataset.size) : null, despite: true,
    }, "Making and measuring the release", "/result"));
  }

  ({ start, columns, policy, search, result })[page]?.();
})();
