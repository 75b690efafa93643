// Lets a reader choose a component of a circuit: only its edges are then shown.
// Without this script, the picture shows all edges of the chosen size.
"use strict";

for (const circuit of document.querySelectorAll(".circuit")) {
  const nodes = [...circuit.querySelectorAll("[data-node]")];
  let chosen = null;
  // Buttons within an image are hidden from screen readers.
  circuit.querySelector("svg").setAttribute("role", "group");

  function choose(node) {
    chosen = chosen === node ? null : node;
    const name = chosen?.dataset.node;
    for (const path of circuit.querySelectorAll("[data-ends]")) {
      const own = chosen === null || path.dataset.ends.split(" ").includes(name);
      path.classList.toggle("other", !own);
    }
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
