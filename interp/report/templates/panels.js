// Draws a pair: its prompts side by side, the answers of all models, and panels of measurements.
"use strict";

const MOST_COMPARED = 4e6;
const MOST_WRITTEN = 400;
const LONG_PROMPT = 1200;

// The words of two texts, each marked if the other text lacks it (longest common subsequence).
function differences(one, other) {
  const split = (text) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];
  const [a, b] = [split(one), split(other)];
  let first = 0;
  while (first < Math.min(a.length, b.length) && a[first] === b[first]) first += 1;
  let last = 0;
  while (last < Math.min(a.length, b.length) - first && a[a.length - 1 - last] === b[b.length - 1 - last]) last += 1;
  const [n, m] = [a.length - first - last, b.length - first - last];
  const own = new Array(n).fill(true);
  if (n * m <= MOST_COMPARED) {
    const lengths = Array.from({ length: n + 1 }, () => new Uint32Array(m + 1));
    for (let i = n - 1; i >= 0; i -= 1) {
      for (let j = m - 1; j >= 0; j -= 1) lengths[i][j] = a[first + i] === b[first + j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
    for (let i = 0, j = 0; i < n && j < m;) {
      if (a[first + i] === b[first + j]) { own[i] = false; i += 1; j += 1; }
      else if (lengths[i + 1][j] >= lengths[i][j + 1]) i += 1;
      else j += 1;
    }
  }
  const ranges = [];
  let place = 0;
  a.forEach((word, number) => {
    const differs = number >= first && number < a.length - last && own[number - first];
    if (differs && word.trim()) ranges.push([place, place + word.length]);
    place += word.length;
  });
  return ranges;
}

// Segments count characters as Python does; a string of a page counts units of UTF-16.
function unitsAt(text) {
  const units = [0];
  for (const character of text) units.push(units[units.length - 1] + character.length);
  return (place) => units[Math.min(place, units.length - 1)];
}

function promptText(prompt, other) {
  const units = unitsAt(prompt.text);
  const segments = prompt.segments.map(([name, start, end]) => [name, units(start), units(end)]);
  const marks = other === undefined ? [] : differences(prompt.text, other);
  const cuts = new Set([0, prompt.text.length, ...segments.flatMap(([, start, end]) => [start, end]), ...marks.flat()]);
  const places = [...cuts].sort((a, b) => a - b);
  const text = element("p", "pair-text");
  if (prompt.text.length > LONG_PROMPT) {
    // The keyboard scrolls a box that can have the focus.
    text.classList.add("scrolls");
    text.tabIndex = 0;
    text.setAttribute("role", "region");
    text.setAttribute("aria-label", `${readable(prompt.side)}, the prompt`);
  }
  for (let number = 0; number + 1 < places.length; number += 1) {
    const [start, end] = [places[number], places[number + 1]];
    for (const [name, begin] of segments) if (begin === start) text.append(element("span", "segment-name", readable(name)));
    const said = prompt.text.slice(start, end);
    text.append(marks.some(([begin, stop]) => begin <= start && end <= stop) ? element("mark", "", said) : said);
  }
  return text;
}

function answerLine([model, , answer, correct, error]) {
  const mark = error ? `✗ ${error}` : correct === null ? "not judged" : correct ? "✓" : "✗";
  return element("li", "", `${model}: `, element("b", "", answer || "no answer"), ` ${mark}`);
}

function promptCard(prompt, detail, other) {
  const card = element("article", "pair-prompt", element("h3", "", readable(prompt.side)), promptText(prompt, other));
  if (prompt.messages) card.append(element("details", "", element("summary", "", "Messages around it"), element("p", "pair-text", prompt.messages)));
  card.append(element("p", "", "Correct: ", element("b", "", prompt.gold)));
  const answers = detail.answers.filter(([, id]) => id === prompt.id);
  if (answers.length) card.append(element("ul", "pair-answers", ...answers.map(answerLine)));
  return card;
}

function largestOf(values) {
  return values.flat().reduce((most, value) => Math.max(most, Math.abs(value ?? 0)), 0) || 1;
}

// The color of a number: blue where positive, orange where negative, more opaque where larger.
function shade(value, largest) {
  const strength = value === null || value === undefined ? 0 : 0.75 * Math.min(1, Math.abs(value) / largest);
  return `rgb(${value < 0 ? "230 120 0" : "0 114 178"} / ${strength.toFixed(3)})`;
}

function scale(largest, signed) {
  const end = (sign) => { const swatch = element("i", "swatch"); swatch.style.background = shade(sign * largest, largest); return swatch; };
  return element("p", "pair-scale", ...(signed ? [end(-1), `${numberText(-largest)} `] : []), end(1), numberText(largest));
}

// Arrow keys lead from piece to piece, so that a text is one stop of the Tab key.
function shadedText(text, largest) {
  const readout = element("output", "pair-readout");
  const box = element("p", "pair-text");
  let label = "";
  const pieces = text.pieces.map((piece, number) => {
    const own = text.labels[number] ?? "";
    if (own && own !== label) box.append(element("span", "segment-name", readable(own)));
    label = own;
    const made = element("span", "piece", piece);
    made.style.background = shade(text.values[number], largest);
    box.append(made);
    return made;
  });
  let at = -1;
  const point = (number) => {
    pieces[at]?.classList.remove("pointed");
    at = number;
    pieces[at]?.classList.add("pointed");
    readout.value = at in pieces ? `${text.pieces[at].trim() || "␣"}: ${numberText(text.values[at]) || "no number"}${text.labels[at] ? `, ${readable(text.labels[at])}` : ""}` : "";
  };
  box.tabIndex = 0;
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", `${readable(text.name)}: arrow keys read the numbers`);
  box.addEventListener("mouseover", (event) => { if (pieces.includes(event.target)) point(pieces.indexOf(event.target)); });
  box.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    point(Math.min(pieces.length - 1, Math.max(0, at + step)));
  });
  return element("article", "", element("h4", "", readable(text.name)), box, readout);
}

function shadedPanel(panel) {
  const values = panel.texts.map((text) => text.values);
  const largest = largestOf(values);
  const signed = values.flat().some((value) => value < 0);
  const any = values.flat().some((value) => value !== null);
  return [element("div", "pair-sides", ...panel.texts.map((text) => shadedText(text, largest))), ...(any ? [scale(largest, signed)] : [])];
}

function barsPanel(panel) {
  const values = panel.groups.flatMap((group) => group.values);
  const largest = largestOf(values);
  const zero = values.some((value) => value < 0) ? 50 : 0;
  return [element("div", "pair-sides", ...panel.groups.map((group) => {
    const rows = group.labels.map((label, number) => {
      const value = group.values[number];
      const bar = element("i", "bar");
      const size = (100 - zero) * Math.abs(value ?? 0) / largest;
      bar.style.width = `${size}%`;
      bar.style.marginLeft = `${value < 0 ? zero - size : zero}%`;
      bar.style.background = shade(value < 0 ? -largest : largest, largest);
      const track = element("td", "track", bar);
      track.style.backgroundPosition = `${zero}%`;
      return element("tr", "", element("th", "", readable(label)), track, element("td", "figures", numberText(value)));
    });
    return element("article", "", element("h4", "", readable(group.name)), element("table", "bars", element("tbody", "", ...rows)));
  }))];
}

function gridPanel(panel) {
  const largest = largestOf(panel.values);
  const written = panel.words.length > 0 || panel.rows.length * panel.columns.length <= MOST_WRITTEN;
  const decimals = Math.min(6, Math.max(0, 2 - Math.floor(Math.log10(largest))));
  const short = (value) => (value === null || value === undefined ? "" : (Number(value.toFixed(decimals)) || 0).toFixed(decimals).replace("-", "−"));
  const head = element("tr", "", element("th", "", ""), ...panel.columns.map((name) => element("th", "", element("span", "", readable(name)))));
  const rows = panel.rows.map((name, down) => element("tr", "", element("th", "", readable(name)), ...panel.columns.map((column, across) => {
    const value = panel.values[down][across];
    const word = panel.words[down]?.[across] ?? "";
    const cell = element("td", "", word || (written ? short(value) : ""));
    cell.style.background = shade(value, largest);
    cell.title = `${readable(name)}, ${readable(column)}: ${word} ${numberText(value) || "no number"}`;
    return cell;
  })));
  const table = element("table", panel.columns.length > 14 ? "grid narrow" : "grid", element("thead", "", head), element("tbody", "", ...rows));
  return [scrolling(table, panel.title), scale(largest, panel.values.flat().some((value) => value < 0))];
}

function tablePanel(panel) {
  const head = element("tr", "", ...panel.columns.map((name) => element("th", "", readable(name))));
  const cell = (value) => (typeof value === "string" ? element("td", "", value) : element("td", "figures", numberText(value)));
  const rows = panel.rows.map((row) => element("tr", "", ...row.map(cell)));
  return [scrolling(element("table", "", element("thead", "", head), element("tbody", "", ...rows)), panel.title)];
}

function scrolling(table, label) {
  const box = element("div", "table-box", table);
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", label);
  return box;
}

const PANELS = { shaded: shadedPanel, bars: barsPanel, grid: gridPanel, table: tablePanel };

// All panels with one title; a reader chooses between their labels, and the choice stands in the address.
function card(title, panels, context) {
  const label = (panel) => Object.values(panel.of).join(", ");
  const wanted = context.now.get(`v.${title}`);
  const shown = panels.find((panel) => label(panel) === wanted) ?? panels[0];
  const made = element("section", "pair-panel", element("h3", "", title));
  if (panels.length > 1) {
    const select = element("select", "");
    for (const panel of panels) select.append(new Option(label(panel), label(panel), false, panel === shown));
    select.dataset.role = `v.${title}`;
    select.setAttribute("aria-label", title);
    select.addEventListener("change", () => context.change({ [`v.${title}`]: select.value }));
    made.append(element("p", "filter", select));
  } else if (label(shown)) made.append(element("p", "note", label(shown)));
  if (shown.note) made.append(element("p", "note", shown.note));
  made.append(...PANELS[shown.kind](shown));
  return made;
}

function showPair(place, detail, context) {
  const [first, ...others] = detail.prompts;
  const cite = element("a", "", "Address of this pair");
  cite.href = context.cite;
  const facts = Object.entries(first.factors).map(([name, value]) => {
    const values = new Set(detail.prompts.map((prompt) => prompt.factors[name] ?? ""));
    return `${readable(name)}: ${values.size > 1 ? [...values].map((own) => own || "none").join(" / ") : value}`;
  });
  const titles = new Map();
  for (const panel of detail.panels) titles.set(panel.title, [...(titles.get(panel.title) ?? []), panel]);
  place.replaceChildren(
    context.steps,
    element("h2", "", detail.id),
    element("p", "note", facts.join(" · ")),
    element("p", "", cite),
    element("div", "pair-sides", ...detail.prompts.map((prompt) => promptCard(prompt, detail, prompt === first ? others[0]?.text : first.text))),
    ...[...titles].map(([title, panels]) => card(title, panels, context)),
  );
}
