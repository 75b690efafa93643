// The browser of pairs: a list that is filtered and sorted, and one pair. Everything chosen stands
// in the address, so that a pair, or a list, can be cited. Data arrive in pieces (pieces.py), each
// when it is first needed; all of it becomes text of elements, never markup.
"use strict";

const A_PAGE = 20;
const MOST_SORTED = 10000;
const CODES = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 !#$%'()*+,-./:;=?@[]^_`{|}~";
const CODE = new Map([...CODES].map((letter, place) => [letter, place]));
const RIGHT = 1, WRONG = 2, SILENT = 4;
const LONGEST = 40, CONTINUED = 45, MOST_PIECES = 2;

const waiting = new Map();
const arrived = new Map();

// Each piece is a script that calls this function.
window.interpPairs = (name, data) => {
  arrived.set(name, Promise.resolve(data));
  waiting.get(name)?.resolve(data);
};

function piece(name) {
  if (arrived.has(name)) return arrived.get(name);
  const inline = document.querySelector(`script[data-piece="${CSS.escape(name)}"]`);
  if (inline) {
    arrived.set(name, Promise.resolve(JSON.parse(inline.textContent)));
    return arrived.get(name);
  }
  const promise = new Promise((resolve, reject) => {
    waiting.set(name, { resolve });
    const script = document.createElement("script");
    script.src = `pairs/${name}.js`;
    script.addEventListener("error", () => reject(new Error(`pairs/${name}.js cannot be read; write the report again`)));
    document.head.append(script);
  });
  arrived.set(name, promise);
  return promise;
}

function element(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

function readable(name) {
  return name.replaceAll("_", " ");
}

function codeAt(codes, width, index) {
  let value = 0;
  for (let place = 0; place < width; place += 1) value += CODE.get(codes[index * width + place]) * CODES.length ** place;
  return value;
}

// The number that a code stands for, exactly as it was rounded; null if it has none.
function numberOf(code) {
  if (code === 0) return null;
  const size = Math.floor((code - 1) / 2);
  const value = Number(`${size % 1000}e${Math.floor(size / 1000) - 16}`);
  return (code - 1) % 2 ? -value : value;
}

function numberText(value) {
  if (value === null || value === undefined) return "";
  const size = Math.abs(value);
  const text = size !== 0 && (size < 0.001 || size >= 1e6) ? value.toExponential(2) : value.toLocaleString("en", { maximumSignificantDigits: 3 });
  return text.replaceAll("-", "−");
}

// The words of a text, as they are indexed (words.py).
function wordsOf(text) {
  return (text.toLowerCase().match(/[\u2e80-\u9fff\uac00-\ud7af]|(?:(?![\u2e80-\u9fff\uac00-\ud7af])[\p{L}\p{N}])+/gu) ?? []).map((word) => [...word].slice(0, LONGEST).join(""));
}

// Marks the numbers that a code stands for: a bit set, or differences between them.
function markNumbers(marks, code) {
  if (code[0] === "b") {
    for (let place = 1; place < code.length; place += 1) {
      for (let bits = CODE.get(code[place]), number = (place - 1) * 6; bits; bits >>= 1, number += 1) if (bits & 1) marks[number] = 1;
    }
    return;
  }
  for (let place = 1, number = -1, step = 0; place < code.length; place += 1) {
    const digit = CODE.get(code[place]);
    step = step * CONTINUED + (digit % CONTINUED);
    if (digit >= CONTINUED) continue;
    number += step + 1;
    marks[number] = 1;
    step = 0;
  }
}

// A pair's outcome on each side: not asked, right, wrong, not judged, or none of the options.
function outcomesOf(codes, width, pair, sides) {
  return sides.map((_, side) => Math.floor(CODE.get(codes[pair * width + Math.floor(side / 2)]) / 8 ** (side % 2)) % 8);
}

// A control with several values, such as the two that a test compares, holds them with this between.
const OR = "\u001f";

function addressOf(state, changes) {
  const next = new URLSearchParams(state);
  for (const [key, value] of Object.entries(changes)) {
    next.delete(key);
    for (const one of String(value ?? "").split(OR)) if (one) next.append(key, one);
  }
  return `#${next}`;
}

// Shows what the address says; a list gets an entry for several of its values.
function fill(control, values) {
  control.querySelector?.("[data-several]")?.remove();
  if (values.length > 1 && control.options) {
    const several = new Option(values.join(" or "), values.join(OR));
    several.dataset.several = "";
    control.add(several);
  }
  control.value = values.join(control.options ? OR : " ");
}

async function browse(root) {
  const index = await piece("index");
  // The number of the first pair of each piece.
  const starts = {};
  for (const kind of ["rows", "details"]) {
    let pairs = 0;
    starts[kind] = index[kind].map((size) => { pairs += size; return pairs - size; });
  }
  const state = () => new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
  const factors = index.columns.filter((column) => column.kind === "factor");
  const numbers = index.columns.filter((column) => column.kind === "number");
  const outcomes = new Map(index.columns.filter((column) => column.kind === "outcome").map((column) => [column.of.model, column]));

  const form = element("form", "filter");
  const count = element("output");
  count.tabIndex = -1;
  const list = element("ol", "pair-list");
  const pages = element("p", "pair-pages");
  const shown = element("section", "pair-shown");
  const aside = element("section", "pair-chooser", form, count, list, pages);
  aside.setAttribute("aria-label", "List of pairs");
  shown.setAttribute("aria-label", "Pair");
  root.replaceChildren(aside, shown);
  // On a narrow screen, a pair that is cited or chosen comes before the list.
  const narrow = window.matchMedia("(max-width: 59.99rem)");
  let cited = "";
  function arrange() {
    const id = narrow.matches ? state().get("pair") ?? "" : "";
    if (id === cited) return;
    cited = id;
    // The list stays in its place, and what has the focus with it.
    if (id) root.prepend(shown);
    else root.append(shown);
    if (id) shown.scrollIntoView();
  }
  narrow.addEventListener("change", arrange);
  const controls = new Map();

  function control(name, label, made) {
    made.name = name;
    made.setAttribute("aria-label", label);
    controls.set(name, made);
    form.append(element("label", "", label, made));
    return made;
  }

  function select(name, label, options) {
    const made = element("select");
    for (const [value, text] of options) made.append(new Option(text, value));
    return control(name, label, made);
  }

  if (index.models.length) {
    select("model", "model", [["", "any model"], ...index.models.map((name) => [name, name])]);
    select("answers", "answers", [["", "all"], ["right", "right"], ["wrong", "wrong"], ["one", "one side right"], ["none", "no option"]]);
  }
  if (index.sides.length > 1) select("side", "side", [["", "all sides"], ...index.sides.map((name) => [name, readable(name)])]);
  for (const column of factors) {
    const label = column.name === index.cluster ? `${readable(column.name)} (cluster)` : readable(column.name);
    if (column.values) select(`f.${column.name}`, label, [["", "all"], ...column.values.map((value) => [value, value])]);
    else control(`f.${column.name}`, label, element("input")).type = "search";
  }
  if (numbers.length) {
    const sorts = select("sort", "sort by", [["", "the order of the draw"]]);
    for (const title of new Set(numbers.map((column) => column.group))) {
      const columns = numbers.filter((column) => column.group === title);
      const options = columns.map((column) => new Option(columns.length > 1 ? Object.values(column.of).join(", ") || title : column.name, column.name));
      if (columns.length > 1) {
        const group = element("optgroup", "", ...options);
        group.label = title;
        sorts.append(group);
      } else sorts.append(...options);
    }
    select("order", "order", [["", "largest size first"], ["high", "highest first"], ["low", "lowest first"]]);
  }
  control("text", "id or words", element("input")).type = "search";
  const clear = element("button", "", "Clear");
  clear.type = "reset";
  form.append(clear);

  // A list or pair that is asked for, but not yet drawn, is not ready.
  function go(address) {
    if (address === (location.hash || "#")) return;
    delete root.dataset.ready;
    location.hash = address;
  }

  function chosen() {
    const now = state();
    const changes = { page: "" };
    for (const [name, made] of controls) changes[name] = made.value;
    go(addressOf(now, changes));
  }
  form.addEventListener("change", chosen);
  form.addEventListener("submit", (event) => { event.preventDefault(); chosen(); });
  form.addEventListener("reset", () => { delete root.dataset.ready; setTimeout(() => { root.dataset.ready = "true"; chosen(); }); });

  // Which pairs fit, in order: the numbers of the pairs, with the number that they are sorted by.
  async function fitting(now) {
    let fits = Array.from({ length: index.pairs }, (_, place) => place);
    const side = index.sides.indexOf(now.get("side") ?? "");
    for (const column of factors) {
      const wanted = now.getAll(`f.${column.name}`);
      if (!wanted.length) continue;
      const data = await piece(column.piece);
      const values = column.values ?? data.values;
      const codes = new Set(values.flatMap((value, place) => (column.values ? wanted.includes(value) : wanted.some((one) => value.toLowerCase().includes(one.toLowerCase()))) ? [place + 1] : []));
      const each = column.sided ? index.sides.length : 1;
      const places = column.sided && side >= 0 ? [side] : [...Array(each).keys()];
      fits = fits.filter((pair) => places.some((place) => codes.has(codeAt(data.codes, column.width, pair * each + place))));
    }
    const answers = now.get("answers");
    if (answers) {
      const asked = outcomes.has(now.get("model")) ? [now.get("model")] : index.models;
      const columns = await Promise.all(asked.map(async (name) => [outcomes.get(name), await piece(outcomes.get(name).piece)]));
      const judged = (column, data, pair) => {
        const all = outcomesOf(data.codes, column.width, pair, index.sides);
        const own = side >= 0 ? [all[side]] : all.filter((outcome) => outcome);
        const every = own.length > 0 && own.every((outcome) => outcome === RIGHT);
        if (answers === "none") return own.includes(SILENT);
        if (answers === "one") return own.includes(RIGHT) && !every;
        return answers === "wrong" ? own.includes(WRONG) || own.includes(SILENT) : every;
      };
      fits = fits.filter((pair) => columns.some(([column, data]) => judged(column, data, pair)));
    }
    for (const having of await Promise.all(wordsOf(now.get("text") ?? "").map(pairsWith))) fits = fits.filter((pair) => having[pair]);
    const sort = numbers.find((column) => column.name === now.get("sort"));
    if (!sort) return { fits, value: () => null };
    const data = await piece(sort.piece);
    const value = (pair) => numberOf(codeAt(data.codes, 3, pair));
    const order = now.get("order");
    const key = (pair) => { const own = value(pair); return order === "low" ? -own : order === "high" ? own : Math.abs(own); };
    fits = fits.filter((pair) => value(pair) !== null);
    fits.sort((a, b) => key(b) - key(a) || a - b);
    return { fits, value };
  }

  // For each pair, whether it has a word that begins so, or, if many pieces hold such words, this word.
  async function pairsWith(beginning) {
    const found = new Uint8Array(index.pairs);
    const own = holding(index.words, beginning), many = own.length > MOST_PIECES;
    for (const entries of await Promise.all((many ? own.slice(0, 1) : own).map((place) => piece(`s${place}`)))) {
      for (const [word, code] of entries) if (many ? word === beginning : word.startsWith(beginning)) markNumbers(found, code);
    }
    return found;
  }

  // The pieces that may hold words with a beginning: each ends before the first word of the next.
  function holding(firsts, beginning) {
    return firsts.map((_, place) => place).filter((place) => (firsts[place] <= beginning || firsts[place].startsWith(beginning)) && !(firsts[place + 1] <= beginning));
  }

  // The piece of a kind that holds a pair, and where the pair stands in it.
  async function at(kind, letter, pair) {
    let place = starts[kind].length - 1;
    while (starts[kind][place] > pair) place -= 1;
    return (await piece(`${letter}${place}`))[pair - starts[kind][place]];
  }

  // The number of the pair with this id; an address may also name its place, which is tried first.
  async function placeOf(id, hint) {
    if (hint >= 0 && hint < index.pairs && (await at("rows", "r", hint))[0] === id) return hint;
    for (let place = 0; place < index.rows.length; place += 1) {
      const found = (await piece(`r${place}`)).findIndex(([own]) => own === id);
      if (found >= 0) return starts.rows[place] + found;
    }
    return -1;
  }

  // What is drawn again keeps the focus: what had it is found again by its role.
  function keepingFocus(draw) {
    const role = root.contains(document.activeElement) ? document.activeElement.dataset.role : undefined;
    draw();
    if (role && !root.contains(document.activeElement)) {
      (root.querySelector(`[data-role="${CSS.escape(role)}"]`) ?? list.querySelector("[aria-current]"))?.focus();
    }
  }

  function link(role, text, changes) {
    const made = element("a", "", ...text);
    made.href = addressOf(state(), changes);
    made.dataset.role = role;
    return made;
  }

  let turn = 0;
  async function apply() {
    turn += 1;
    const mine = turn;
    const now = state();
    for (const [name, made] of controls) fill(made, now.getAll(name));
    const { fits, value } = await fitting(now);
    const last = Math.max(0, Math.ceil(fits.length / A_PAGE) - 1);
    const asked = Math.min(last, Math.max(0, Number(now.get("page") ?? 1) - 1 || 0));
    const page = fits.slice(asked * A_PAGE, (asked + 1) * A_PAGE);
    const rows = await Promise.all(page.map((pair) => at("rows", "r", pair)));
    const outcome = outcomes.get(now.get("model"));
    const marks = outcome ? (await piece(outcome.piece)).codes : "";
    // The first pair is shown unless a large list is sorted: no click shall read over 200 kB.
    const shows = index.pairs <= MOST_SORTED || !now.get("sort");
    const id = now.get("pair") ?? (shows ? rows[0]?.[0] : undefined);
    const pair = id === undefined ? -1 : await placeOf(id, Number(now.get("at") ?? page[0] ?? -1));
    const detail = pair < 0 ? null : await at("details", "d", pair);
    const place = pair < 0 ? -1 : fits.indexOf(pair);
    const beside = await Promise.all([-1, 1].map((step) => (place >= 0 && place + step in fits ? at("rows", "r", fits[place + step]) : null)));
    if (mine !== turn) return;
    const to = (own, row, list) => ({ pair: row[0], at: own, page: list + 1 });
    count.textContent = `${fits.length.toLocaleString("en")} of ${index.pairs.toLocaleString("en")} pairs`;
    keepingFocus(() => {
      list.start = asked * A_PAGE + 1;
      list.replaceChildren(...page.map((own, number) => {
        const [name, excerpt] = rows[number];
        const said = [element("b", "", name), " ", excerpt];
        if (marks) said.push(element("span", "pair-marks", outcomesOf(marks, outcome.width, own, index.sides).map((own) => ["", "✓", "✗", "·", "✗"][own]).join("")));
        if (value(own) !== null) said.push(element("span", "pair-number", numberText(value(own))));
        const made = link(own === pair ? "current" : `row ${number}`, said, to(own, rows[number], asked));
        if (own === pair) made.setAttribute("aria-current", "true");
        return element("li", "", made);
      }));
      pages.replaceChildren(
        ...(asked > 0 ? [link("pages back", [`← previous ${A_PAGE}`], { page: asked })] : []), " ",
        ...(asked < last ? [link("pages on", [`next ${A_PAGE} →`], { page: asked + 2 })] : []),
      );
      const toList = element("a", "pair-to-list", "The list");
      toList.href = "#";
      toList.addEventListener("click", (event) => { event.preventDefault(); event.stopPropagation(); aside.scrollIntoView(); count.focus({ preventScroll: true }); });
      const steps = element("p", "pair-steps", ...[["← previous", -1], ["next →", 1]].map(([text, step], side) => {
        const row = beside[side], number = place + step;
        return row ? link(text, [text], to(fits[number], row, Math.floor(number / A_PAGE))) : element("span", "", text);
      }), toList);
      if (detail) showPair(shown, detail, { steps, now, change: (changes) => go(addressOf(state(), changes)), cite: `#${new URLSearchParams({ pair: detail.id, at: pair })}` });
      else shown.replaceChildren(element("p", "note", id === undefined ? (page.length ? "Choose a pair of the list." : "No pair fits.") : `There is no pair ${id}.`));
    });
    arrange();
  }

  // In a frame of a notebook, a link to a part of the page would lead to the notebook.
  root.addEventListener("click", (event) => {
    const made = event.target.closest("a[href^='#']");
    if (!made || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(made.getAttribute("href"));
  });

  const failed = (error) => shown.replaceChildren(element("p", "problems", error.message));
  async function draw() {
    await apply().catch(failed);
    root.dataset.ready = "true";
  }
  window.addEventListener("hashchange", draw);
  await draw();
}
