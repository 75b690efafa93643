// Leads from each number of a table to the pairs behind it. Without this script, tables are plain.
"use strict";

const LEVELS = ["level", "value", "first", "second"];

const known = JSON.parse(document.querySelector("#pairs-links")?.textContent ?? "null");

function named(table) {
  return [...table.tHead.rows[0].cells].map((cell) => cell.dataset.name);
}

// The side that a column is about, such as "rulebreaker_accuracy" or "rulebreaker accuracy, n = 8 pairs".
function sideOf(column) {
  const words = column.replaceAll("-", "_").split(/[ _]accuracy/)[0];
  return known.sides.find((side) => side.replaceAll("-", "_") === words) ?? "";
}

// Why a row's numbers have no pairs on this page: published results, and other sets. Guesses and fits
// over several models are about all pairs.
function whyNone(values) {
  if (values.get("source") === "published" || values.get("model") === "published") return "published";
  const other = known.columns.some((name) => {
    const value = values.get(name) ?? "";
    return value !== "" && value !== "all" && !known.factors[name].includes(value);
  });
  return other ? "about prompts that are not on this page" : "";
}

// Of several numbers that a row could be about, the one with the most distinguishing values; of equal
// ones, that of the column.
function mostNamed(numbers, column) {
  const size = (number) => Object.keys(number.of).length + (number.name === column ? 0.5 : 0);
  return numbers.reduce((most, number) => (most === undefined || size(number) > size(most) ? number : most), undefined);
}

// The number of each pair whose mean a row gives: every value that distinguishes it stands in the row.
function numberOfRow(values, column) {
  // A table may show 1.000 where a name says 1, and a figure premise 1 for premise1.
  const plain = (text) => text?.replaceAll(/[ _]/g, "");
  const same = (one, other) => plain(one) === plain(other) || (one && Number(one) === Number(other));
  const fits = (number) => Object.entries(number.of).every(([name, value]) => same(values.get(name), value) || (name === "model" && !values.has(name) && known.models.length === 1));
  // The column or a cell, such as that of the measure, may name the number.
  const named = new Set([column, ...values.values()].map((text) => text.replaceAll("_", " ")));
  const rest = (number) => Object.entries(number.of).every(([name, value]) => name !== "model" || values.get(name) === value);
  return known.numbers.find((number) => number.headline && column.startsWith(number.headline) && rest(number))
    ?? mostNamed(known.numbers.filter((number) => Object.keys(number.of).some((name) => name !== "model" && values.has(name)) && fits(number)), column)
    ?? known.numbers.find((number) => named.has(number.name) && fits(number));
}

// The values of a factor in a row: in the factor's column, or beside the factor's name, as a level or
// as the levels that a test compares.
function valuesOf(values, name) {
  if (known.columns.includes(name) && values.has(name)) return [values.get(name)];
  return values.get("factor") === name ? LEVELS.flatMap((column) => values.get(column) ?? []) : [];
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
  const ofColumn = known.columns.filter((name) => known.factors[name].includes(column));
  for (const [name, own] of Object.entries(known.factors)) {
    const said = valuesOf(values, name);
    const found = said.filter((value) => own.includes(value));
    if (!found.length) found.push(ofColumn.length === 1 && ofColumn[0] === name ? column : about[name]);
    if (!said.includes("all")) for (const value of found) if (value && own.includes(value)) chosen.append(`f.${name}`, value);
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
  const names = new Set(["layer", "head", "level", ...known.columns, ...known.numbers.flatMap((number) => Object.keys(number.of))]);
  const ofModels = columns.filter((name) => known.models.includes(name));
  const none = new Map();
  for (const row of table.tBodies[0].rows) {
    const values = new Map(columns.map((column, place) => [column, row.cells[place].textContent]));
    const why = article?.dataset.noPairs || whyNone(values);
    let before = "";
    columns.forEach((column, place) => {
      const cell = row.cells[place];
      // Some tables have a column for each model, and some name the place of a number beside it.
      const said = ofModels.includes(column) || (article?.id === "table-at_a_glance" && place > 0);
      const isNumber = cell.classList.contains("figures") || (said && /\d/.test(cell.textContent));
      if (!isNumber || names.has(column) || cell.textContent.trim() === "") return;
      if (why) {
        none.set(why, (none.get(why) ?? 0) + 1);
        return;
      }
      const link = document.createElement("a");
      link.className = "drill";
      link.href = linkOf(ofModels.includes(column) ? new Map([...values, ["model", column]]) : values, column, article);
      link.title = "Show the pairs";
      leadsDown(link);
      // Numbers of a row that lead to the same pairs are one stop of the Tab key.
      if (link.href === before) link.tabIndex = -1;
      before = link.href;
      link.append(...cell.childNodes);
      cell.append(link);
    });
  }
  const said = [...none].map(([why, count]) => `${count.toLocaleString("en")} ${count === 1 ? "number has" : "numbers have"} no pairs: ${why} · `);
  if (said.length) article?.querySelector(".files")?.prepend(...said);
}

// The browser of a page in one file is on the page itself.
function leadsDown(link) {
  if (known.page === "") link.addEventListener("click", () => document.querySelector("#pairs-browser").scrollIntoView());
}

// The cells, bars and points of a figure lead to their pairs. They are one stop of the Tab key; arrow
// keys lead from one to the next.
function linkMarks(article) {
  const marks = JSON.parse(article.dataset.marks);
  const svg = article.querySelector("svg");
  const links = new Map();
  for (const mark of marks) {
    const area = svg.querySelector(`[id$="-${mark.id}"]`);
    const own = new Map(Object.entries(mark.of));
    if (!area || mark.value === null || whyNone(own)) continue;
    const link = document.createElementNS("http://www.w3.org/2000/svg", "a");
    const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
    title.textContent = `${mark.said}: ${mark.value}; show the pairs`;
    link.setAttribute("class", "cell");
    link.setAttribute("href", linkOf(own, mark.number, article));
    link.setAttribute("tabindex", links.size ? "-1" : "0");
    leadsDown(link);
    area.replaceWith(link);
    link.append(title, area);
    links.set(mark.at.join(" "), link);
  }
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
  for (const table of document.querySelectorAll("article > .table-box table, article > details table")) linkNumbers(table);
  for (const article of document.querySelectorAll("[data-marks]")) linkMarks(article);
}
