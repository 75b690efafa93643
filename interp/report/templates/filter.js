// Filters the prompts of the page, and links each accuracy to the prompts behind it.
// Without this script, the table of prompts is complete.
"use strict";

const prompts = document.querySelector("#prompts");

function names(table) {
  return [...table.tHead.rows[0].cells].map((cell) => cell.dataset.name);
}

function labeled(text, control) {
  const label = document.createElement("label");
  label.append(text, control);
  return label;
}

function select(values, all) {
  const made = document.createElement("select");
  made.append(new Option(all, ""), ...values.map((value) => new Option(value, value)));
  return made;
}

function promptFilter(article) {
  const table = article.querySelector("table");
  const body = table.tBodies[0];
  const place = new Map(names(table).map((name, index) => [name, index]));
  const models = JSON.parse(article.dataset.models);
  const controls = new Map();
  const bar = document.createElement("form");
  bar.className = "filter";
  for (const name of JSON.parse(article.dataset.filters)) {
    const found = new Set([...body.rows].map((row) => row.cells[place.get(name)].textContent));
    const values = [...found].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    controls.set(name, select(values, "all"));
  }
  const model = select(models, "any model");
  const outcome = select(["correct", "wrong"], "all");
  const search = document.createElement("input");
  search.type = "search";
  const count = document.createElement("output");
  for (const [name, control] of controls) bar.append(labeled(name.replaceAll("_", " "), control));
  const clear = document.createElement("button");
  clear.type = "reset";
  clear.textContent = "Clear";
  bar.append(labeled("model", model), labeled("answers", outcome), labeled("text", search), clear, count);
  table.parentElement.before(bar);

  function fits(row) {
    for (const [name, control] of controls) {
      if (control.value && row.cells[place.get(name)].textContent !== control.value) return false;
    }
    if (!row.cells[0].textContent.toLowerCase().includes(search.value.toLowerCase())) return false;
    if (!outcome.value) return true;
    const mark = outcome.value === "correct" ? "✓" : "✗";
    const asked = model.value ? [model.value] : models;
    return asked.some((name) => row.cells[place.get(name)].textContent.endsWith(mark));
  }

  function apply() {
    let shown = 0;
    for (const row of body.rows) {
      row.hidden = !fits(row);
      shown += row.hidden ? 0 : 1;
    }
    for (const name of models) {
      const chosen = !model.value || name === model.value;
      for (const row of table.rows) row.cells[place.get(name)].hidden = !chosen;
    }
    count.textContent = `${shown.toLocaleString("en")} of ${body.rows.length.toLocaleString("en")} prompts`;
  }

  function choose(values) {
    for (const [name, control] of controls) control.value = values.get(name) ?? "";
    model.value = values.get("model") ?? "";
    outcome.value = search.value = "";
    apply();
    article.scrollIntoView();
    search.focus({ preventScroll: true });
  }

  bar.addEventListener("input", apply);
  bar.addEventListener("submit", (event) => event.preventDefault());
  // The form's fields are empty only after this event.
  bar.addEventListener("reset", () => setTimeout(apply));
  apply();
  return { choose, allows: (name, value) => [...(name === "model" ? model : controls.get(name)).options].some((option) => option.value === value), known: [...controls.keys(), "model"] };
}

// The factors, the model and the side of the prompts behind a table cell.
function meant(row, columns, name, filter) {
  const values = new Map(columns.map((column, index) => [column, row.cells[index].textContent]));
  const side = name === "accuracy" ? values.get("measure") : name.replace(/_accuracy$/, "");
  if (!values.has("side")) values.set("side", side);
  return new Map([...values].filter(([key, value]) => filter.known.includes(key) && value && filter.allows(key, value)));
}

// Whether a table row is about prompts on the page, not a guess, a published result or another set.
function isAnswered(row, columns, filter) {
  return columns.includes("model") && columns.every((name, index) => {
    const value = row.cells[index].textContent;
    return !filter.known.includes(name) || ["", "all"].includes(value) || filter.allows(name, value);
  });
}

if (prompts) {
  const filter = promptFilter(prompts);
  for (const table of document.querySelectorAll("main table")) {
    if (prompts.contains(table)) continue;
    const columns = names(table);
    columns.forEach((name, index) => {
      if (!/(^|_)accuracy$/.test(name)) return;
      for (const row of table.tBodies[0].rows) {
        const cell = row.cells[index];
        if (cell.textContent === "" || !isAnswered(row, columns, filter)) continue;
        const button = document.createElement("button");
        button.type = "button";
        button.className = "drill";
        button.title = "Show the prompts";
        button.append(...cell.childNodes);
        button.addEventListener("click", () => filter.choose(meant(row, columns, name, filter)));
        cell.append(button);
      }
    });
  }
}
