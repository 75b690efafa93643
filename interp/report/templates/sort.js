// Makes every table sortable by its headings. Without this script, the tables are complete, but
// keep their original order.
"use strict";

function key(row, column, figures) {
  const cell = row.cells[column];
  const text = figures ? cell.dataset.key : cell.textContent;
  if (text === "") return null;
  return figures ? Number(text) : text;
}

function compare(a, b) {
  return typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true });
}

// Missing values stay at the end in either direction; equal rows keep their order.
function sortRows(body, column, figures, direction) {
  const rows = [...body.rows].map((row) => [key(row, column, figures), row]);
  rows.sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return direction * compare(a, b);
  });
  body.append(...rows.map(([, row]) => row));
}

function sortBy(heading) {
  const ascending = heading.getAttribute("aria-sort") !== "ascending";
  for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  const body = heading.closest("table").tBodies[0];
  const figures = heading.classList.contains("figures");
  sortRows(body, heading.cellIndex, figures, ascending ? 1 : -1);
}

for (const heading of document.querySelectorAll("th[scope=col]")) {
  // A table with fewer than two rows needs no sorting.
  if (heading.closest("table").tBodies[0].rows.length < 2) continue;
  const button = document.createElement("button");
  button.type = "button";
  button.append(...heading.childNodes);
  button.addEventListener("click", () => sortBy(heading));
  heading.append(button);
}
