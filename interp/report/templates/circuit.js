// Lets a reader choose a component of a circuit: only its edges are then shown.
// Without this script, the picture shows all edges of the chosen size.
"use strict";

// The pairs of an edge, if this page has pairs.
function pairsOfEdge(circuit, path) {
  const { writer, reader } = path.dataset;
  return linkOf(new Map(Object.entries({ ...JSON.parse(circuit.dataset.of), writer, reader })), "effect", circuit.closest("article"));
}

function linkEdge(circuit, path) {
  const link = document.createElementNS("http://www.w3.org/2000/svg", "a");
  link.setAttribute("href", pairsOfEdge(circuit, path));
  // The keyboard reaches edges through the list of a chosen component.
  link.setAttribute("tabindex", "-1");
  leadsDown(link);
  path.replaceWith(link);
  link.append(path);
  path.querySelector("title").append("; show the pairs");
}

// The edges of the chosen component, each with its number, which leads to its pairs.
function edgeList(circuit, paths) {
  return paths.map((path) => {
    const link = document.createElement("a");
    link.href = pairsOfEdge(circuit, path);
    link.append(path.querySelector("title").textContent.split("; ")[0]);
    leadsDown(link);
    return link;
  });
}

for (const circuit of document.querySelectorAll(".circuit")) {
  const nodes = [...circuit.querySelectorAll("[data-node]")];
  const list = document.createElement("p");
  list.className = "edges";
  list.setAttribute("aria-live", "polite");
  circuit.querySelector(".box").after(list);
  if (known) for (const path of circuit.querySelectorAll("[data-writer]")) linkEdge(circuit, path);
  let chosen = null;
  // Buttons within an image are hidden from screen readers.
  circuit.querySelector("svg").setAttribute("role", "group");

  function listEdges() {
    const own = [...circuit.querySelectorAll("[data-ends]:not(.other)")].filter((path) => getComputedStyle(path).display !== "none");
    list.replaceChildren(...(known && chosen ? edgeList(circuit, own) : []));
  }
  circuit.addEventListener("change", listEdges);

  function choose(node) {
    chosen = chosen === node ? null : node;
    const name = chosen?.dataset.node;
    for (const path of circuit.querySelectorAll("[data-ends]")) {
      const own = chosen === null || path.dataset.ends.split(" ").includes(name);
      path.classList.toggle("other", !own);
    }
    listEdges();
    for (const other of nodes) other.setAttribute("aria-pressed", String(other === chosen));
  }

  for (const node of nodes) {
    node.setAttribute("tabindex", "0");
    node.setAttribute("role", "button");
    node.setAttribute("aria-pressed", "false");
    node.setAttribute("aria-label", `Only the edges of ${node.dataset.node}`);
    node.addEventListener("click", () => choose(node));
    node.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose(node);
    });
  }
}
