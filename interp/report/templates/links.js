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
  const rest = (number) => Object.entries(number.of).every(([name, value]) => name !== "model" || values.get(name) === value);
  return known.numbers.find((number) => number.headline && column.startsWith(number.headline) && rest(number))
    ?? mostNamed(known.numbers.filter((number) => Object.keys(number.of).some((name) => name !== "model" && values.has(name)) && fits(number)))
    ?? known.numbers.find((number) => number.name === column && fits(number));
}

function linkOf(values, column, article) {
  const chosen = new URLSearchParams();
  if (known.models.includes(values.get("model"))) chosen.set("model", values.get("model"));
  for (const [name, own] of Object.entries(known.factors)) if (own.includes(values.get(name))) chosen.set(`f.${name}`, values.get(name));
  const side = values.get("side") ?? (/accuracy/.test(column) ? sideOf(column) : "");
  const measured = known.sides.includes(side) ? side : known.sides.find((own) => own === values.get("measure")) ?? "";
  if (measured) chosen.set("side", measured);
  if (values.get("recognized") === "yes") chosen.set("answers", "right");
  if (values.get("recognized") === "no") chosen.set("answers", "wrong");
  const number = numberOfRow(values, column);
  if (number) chosen.set("sort", number.name);
  chosen.set("from", article);
  return `${known.page}#${chosen}`;
}

function linkNumbers(table) {
  const columns = named(table);
  const article = table.closest("article")?.id ?? "";
  const keys = new Set(["layer", "head", ...Object.keys(known.factors), ...known.numbers.flatMap((number) => Object.keys(number.of))]);
  const ofModels = columns.filter((name) => known.models.includes(name));
  if (!columns.includes("model") && !ofModels.length && !columns.some((name) => keys.has(name))) return;
  for (const row of table.tBodies[0].rows) {
    const values = new Map(columns.map((column, place) => [column, row.cells[place].textContent]));
    if (!isOurs(values)) continue;
    let before = "";
    columns.forEach((column, place) => {
      const cell = row.cells[place];
      // Some tables have a column for each model, and some name the place of a number beside it.
      const said = ofModels.includes(column) || (article === "table-at_a_glance" && place > 0);
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

if (known) for (const table of document.querySelectorAll("article > .table-box table, article > details table")) if (!table.closest("#prompts")) linkNumbers(table);
