// Leads from each number of a table to the pairs behind it. Without this script, tables are plain.
"use strict";

const known = JSON.parse(document.querySelector("#pairs-links")?.textContent ?? "null");

function named(table) {
  return [...table.tHead.rows[0].cells].map((cell) => cell.dataset.name);
}

// The side that a column is about, such as "rulebreaker_accuracy" or "rulebreaker accuracy, n = 8 pairs".
function sideOf(column) {
  const words = column.replaceAll("-", "_").split(/[ _]accuracy/)[0];
  return known.sides.find((side) => side.replaceAll("-", "_") === words) ?? "";
}

// Whether a row is about the pairs of this page, not a guess, a published result or another set.
function isOurs(values) {
  const models = values.get("model");
  if (models !== undefined && models !== "" && models !== "all" && !known.models.includes(models)) return false;
  if ((values.get("source") ?? "measured") === "published") return false;
  return Object.entries(known.factors).every(([name, own]) => {
    const value = values.get(name) ?? "";
    return value === "" || value === "all" || own.includes(value);
  });
}

// Of several numbers that a row could be about, the one with the most distinguishing values.
function mostNamed(numbers) {
  const size = (number) => Object.keys(number.of).length;
  return numbers.reduce((most, number) => (most === undefined || size(number) > size(most) ? number : most), undefined);
}

// The number of each pair whose mean a row gives: every value that distinguishes it stands in the row.
function numberOfRow(values, column) {
  // A table may show 1.000 where a name says 1.
  const same = (one, other) => one === other || (one && Number(one) === Number(other));
  const fits = (number) => Object.entries(number.of).every(([name, value]) => same(values.get(name), value) || (name === "model" && !values.has(name) && known.models.length === 1));
  // The column or a cell, such as that of the measure, may name the number.
  const named = new Set([column, ...values.values()].map((text) => text.replaceAll("_", " ")));
  const rest = (number) => Object.entries(number.of).every(([name, value]) => name !== "model" || values.get(name) === value);
  return known.numbers.find((number) => number.headline && column.startsWith(number.headline) && rest(number))
    ?? mostNamed(known.numbers.filter((number) => Object.keys(number.of).some((name) => name !== "model" && values.has(name)) && fits(number)))
    ?? known.numbers.find((number) => named.has(number.name) && fits(number));
}

// The value of a factor in a row: in the factor's column, or beside the factor's name.
function valueOf(values, name) {
  return values.get(name) ?? (values.get("factor") === name ? values.get("level") : undefined);
}

// The values of factors that all pairs behind a table's numbers have.
function aboutOf(article) {
  return { ...known.about, ...JSON.parse(article?.dataset.pairs ?? "{}") };
}

function linkOf(values, column, article) {
  const chosen = new URLSearchParams();
  const about = aboutOf(article);
  if (known.models.includes(values.get("model"))) chosen.set("model", values.get("model"));
  // Some tables have a column for each value of a factor.
  const ofColumn = Object.entries(known.factors).filter(([, own]) => own.includes(column));
  for (const [name, own] of Object.entries(known.factors)) {
    const said = valueOf(values, name);
    const value = own.includes(said) ? said : ofColumn.length === 1 && ofColumn[0][0] === name ? column : about[name];
    if (own.includes(value) && said !== "all") chosen.set(`f.${name}`, value);
  }
  const side = values.get("side") ?? (/accuracy/.test(column) ? sideOf(column) : "");
  const measured = known.sides.includes(side) ? side : known.sides.find((own) => own === values.get("measure")) ?? "";
  if (measured) chosen.set("side", measured);
  if (values.get("recognized") === "yes" || values.get("outcome") === "right") chosen.set("answers", "right");
  if (values.get("recognized") === "no" || values.get("outcome") === "wrong") chosen.set("answers", "wrong");
  const number = numberOfRow(values, column);
  if (number) chosen.set("sort", number.name);
  chosen.set("from", article?.id ?? "");
  return `${known.page}#${chosen}`;
}

function linkNumbers(table) {
  const columns = named(table);
  const article = table.closest("article");
  const keys = new Set(["layer", "head", "level", ...Object.keys(known.factors), ...known.numbers.flatMap((number) => Object.keys(number.of))]);
  const ofModels = columns.filter((name) => known.models.includes(name));
  if (!columns.includes("model") && !ofModels.length && !columns.some((name) => keys.has(name))) return;
  for (const row of table.tBodies[0].rows) {
    const values = new Map(columns.map((column, place) => [column, row.cells[place].textContent]));
    if (!isOurs(values)) continue;
    let before = "";
    columns.forEach((column, place) => {
      const cell = row.cells[place];
      // Some tables have a column for each model, and some name the place of a number beside it.
      const said = ofModels.includes(column) || (article?.id === "table-at_a_glance" && place > 0);
      const isNumber = cell.classList.contains("figures") || (said && /\d/.test(cell.textContent));
      if (!isNumber || keys.has(column) || cell.textContent.trim() === "") return;
      const link = document.createElement("a");
      link.className = "drill";
      link.href = linkOf(ofModels.includes(column) ? new Map([...values, ["model", column]]) : values, column, article);
      link.title = "Show the pairs";
      // The browser of a page in one file is on the page itself.
      if (known.page === "") link.addEventListener("click", () => document.querySelector("#pairs-browser").scrollIntoView());
      // Numbers of a row that lead to the same pairs are one stop of the Tab key.
      if (link.href === before) link.tabIndex = -1;
      before = link.href;
      link.append(...cell.childNodes);
      cell.append(link);
    });
  }
}

// The cells of a figure lead to the pairs sorted by their numbers. They are one stop of the Tab key;
// arrow keys lead from cell to cell.
function linkCells(article) {
  const { number, of, rows, columns, values } = JSON.parse(article.dataset.cells);
  const svg = article.querySelector("svg");
  const links = new Map();
  rows.values.forEach((row, down) => columns.values.forEach((column, across) => {
    const area = svg.querySelector(`[id$="-cell-${down}-${across}"]`);
    const own = new Map([...Object.entries(of), [rows.name, row], [columns.name, column]]);
    if (!area || values[down][across] === null || !numberOfRow(own, number)) return;
    const link = document.createElementNS("http://www.w3.org/2000/svg", "a");
    const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
    title.textContent = `${rows.name} ${row.replaceAll("_", " ")}, ${columns.name} ${column}: ${values[down][across]}; show the pairs`;
    link.setAttribute("class", "cell");
    link.setAttribute("href", linkOf(own, number, article));
    link.setAttribute("tabindex", links.size ? "-1" : "0");
    if (known.page === "") link.addEventListener("click", () => document.querySelector("#pairs-browser").scrollIntoView());
    area.replaceWith(link);
    link.append(title, area);
    links.set(`${down} ${across}`, link);
  }));
  if (!links.size) return;
  // Links within an image are hidden from screen readers.
  svg.setAttribute("role", "group");
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  svg.addEventListener("keydown", (event) => {
    const [place, link] = [...links].find(([, own]) => own === document.activeElement) ?? [];
    if (!link || !steps[event.key]) return;
    event.preventDefault();
    const next = links.get(place.split(" ").map((at, axis) => Number(at) + steps[event.key][axis]).join(" "));
    if (!next) return;
    link.setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
  });
}

if (known) {
  for (const table of document.querySelectorAll("article > .table-box table, article > details table")) if (!table.closest("#prompts")) linkNumbers(table);
  for (const article of document.querySelectorAll("[data-cells]")) linkCells(article);
}
