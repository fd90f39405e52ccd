// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"use strict";
const ROW = 18, MARGIN = 40;
const KINDS = [
  ["source", "Source", "s"], ["graph", "Graph", "g"], ["ir", "IR", "i"], ["kernels", "Kernels", "k"],
  ["memory", "Memory", "m"], ["llvm", "LLVM IR", "l"], ["asm", "Assembly", "a"],
];
const byId = id => document.getElementById(id);
const make = (tag, className, text) => {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
};

// -- colours of syntax -------------------------------------------------------------------------------------
// The first group of a language's expression that matches gives the class; what matches none is plain.
const CLASSES = ["comment", "quoted", "keyword", "type", "value", "constant", "op"];
const languages = texts => new RegExp(texts.map(text => `(${text})`).join("|"), "g");
const QUOTED = String.raw`"(?:[^"\\]|\\.)*"`, NUMBER = String.raw`(?<![\w.%@$])-?(?:0x[\da-fA-F]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)(?![\w.])`;
const NEVER = "(?!)";
const LANGUAGES = {
  source: languages([
    "#.*$", String.raw`[rbfuRBFU]{0,2}(?:${QUOTED}|'(?:[^'\\]|\\.)*')`,
    String.raw`\b(?:and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|not|or|pass|raise|return|try|while|with|yield|None|True|False)\b`,
    NEVER, String.raw`@[\w.]+`, NUMBER, String.raw`[A-Za-z_]\w*(?=\()`,
  ]),
  ir: languages([
    "//.*$", String.raw`${QUOTED}(?!\()`,
    String.raw`\b(?:module|return|yield|iter_args|to|step|else|ins|outs|into|from|true|false|dense|unit|loc|private|attributes|iterator_types|indexing_maps|affine_map)\b`,
    String.raw`\b(?:tensor|memref|vector|complex|tuple)<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>|\b(?:index|none|bf16|[su]?i\d+|f\d+)\b|![\w.]+`,
    String.raw`[%@^#][\w$.-]+(?:#\d+)?`, NUMBER, String.raw`"[a-z_]\w*\.[\w.]+"(?=\()|\b[a-z_]\w*\.[a-z_][\w.]*`,
  ]),
  graph: languages([NEVER, NEVER, NEVER, String.raw`\w*Type\(.*$`, String.raw`^n\d+`, NUMBER, String.raw`(?<=^n\d+ +)\S+`]),
  llvm: languages([
    ";.*$", `c?${QUOTED}`,
    String.raw`\b(?:define|declare|attributes|target|source_filename|private|internal|external|unnamed_addr|constant|global|to|label|noalias|nocapture|nonnull|readonly|writeonly|align|nuw|nsw|exact|inbounds|fast|contract|tail|musttail|nounwind|true|false|null|undef|poison|zeroinitializer|x)\b`,
    String.raw`\b(?:void|ptr|half|bfloat|float|double|metadata|i\d+)\b`,
    String.raw`[%@!][\w$.-]+|^[\w$.-]+:|#\d+`, NUMBER, String.raw`(?<=^ +(?:[%@][\w$.-]+ = )?(?:tail |musttail )?)[a-z]\w*`,
  ]),
  asm: languages([
    "[#;].*$|//.*$", QUOTED, String.raw`(?<=^\s*)\.[a-z_]\w*`, String.raw`@\w+`,
    String.raw`%\w+|^[\w$.]+:|(?<![\w.])\.L\w+`, String.raw`\$?${NUMBER}`, String.raw`(?<=^\s+)[a-z]\w*`,
  ]),
};

// The text of a line in parts, each with its class.
function coloured(kind, line) {
  const element = make("span", "text"), language = LANGUAGES[kind];
  if (!language) { element.textContent = line; return element; }
  let end = 0;
  for (const match of line.matchAll(language)) {
    if (match.index > end) element.append(line.slice(end, match.index));
    element.append(make("span", CLASSES[match.slice(1).findIndex(group => group !== undefined)], match[0]));
    end = match.index + match[0].length;
  }
  element.append(line.slice(end));
  return element;
}

async function unpack(id) {
  const bytes = Uint8Array.from(atob(byId(id).textContent), char => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

// -- data ---------------------------------------------------------------------------------------------------
let index, panes = [], active = 0, hovered = new Set(), pinned = new Set(), showsChanges = true, search = "";
const contents = new Map();

// The content of a view; that of a pass which changed nothing is that of the pass before.
function textView(number) {
  while (number > 0 && !index.views[number].changed) number--;
  return number;
}
function content(number) {
  number = textView(number);
  if (!contents.has(number)) {
    contents.set(number, unpack(`view${number}`).then(found => {
      if (found.text !== undefined) found.lines = found.text.split("\n");
      return found;
    }));
  }
  return contents.get(number);
}

async function rowsOf(view) {
  const found = await content(view.id);
  const plain = found.lines.map((text, i) => ({text, nodes: found.nodes[i], number: i + view.first, sign: " "}));
  const before = view.kind === "ir" && view.changed ? textView(view.id - 1) : view.id;
  if (before === view.id || index.views[before].kind !== "ir" || view.title.endsWith("emitted")) return plain;
  const old = await content(before);
  if (!found.rows) {
    found.rows = difference(old.lines, found.lines).map(({sign, line}) => sign === "-"
      ? {text: old.lines[line], nodes: old.nodes[line], number: "", sign}
      : {...plain[line], sign});
  }
  return showsChanges ? found.rows : plain;
}

// In how many loops each line of LLVM IR or assembly is: between a label and a later jump to it.
function loopDepths(kind, rows) {
  const depths = new Array(rows.length).fill(0), labels = new Map();
  const jump = {llvm: /label %([\w.$-]+)/g, asm: /^\s+j\w+\s+(\S+)/g}[kind];
  if (!jump) return depths;
  rows.forEach((row, i) => {
    if (/^define|^[^.\s\d][\w.$]*:/.test(row.text)) labels.clear(); // names are those of a function
    const label = /^([\w.$-]+):/.exec(row.text);
    if (label) labels.set(label[1], i);
    for (const [, target] of row.text.matchAll(jump)) {
      for (let j = labels.get(target) ?? i; j < i; j++) depths[j]++;
    }
  });
  return depths;
}

// -- a pane -------------------------------------------------------------------------------------------------
class Pane {
  constructor(number) {
    this.number = number; this.rows = []; this.zoom = 0; this.current = -1; this.chosen = {};
    this.element = make("section", "pane");
    this.tabs = make("div", "tabs");
    this.tabs.setAttribute("role", "tablist");
    for (const [kind, title, key] of KINDS) {
      if (!index.views.some(view => view.kind === kind)) continue;
      const tab = make("button", "", title);
      tab.setAttribute("role", "tab"); tab.dataset.kind = kind; tab.title = `${title} (${key})`;
      tab.onclick = () => { activate(number); this.showKind(kind); };
      this.tabs.append(tab);
    }
    this.which = make("div", "which");
    this.note = make("div", "note");
    this.content = make("div", "content");
    this.content.tabIndex = 0;
    this.content.onscroll = () => this.draw();
    this.element.onpointerdown = () => activate(number);
    this.element.append(this.tabs, this.which, this.note, this.content);
    new ResizeObserver(() => this.draw()).observe(this.content);
  }

  showKind(kind) {
    const known = this.chosen[kind] ?? (index.views.find(view => view.kind === kind) || {}).id;
    if (known !== undefined) return this.show(index.views[known]);
  }

  async show(view) {
    this.view = view; this.chosen[view.kind] = view.id; this.current = -1;
    for (const tab of this.tabs.children) tab.setAttribute("aria-selected", tab.dataset.kind === view.kind);
    this.drawWhich();
    const seconds = view.seconds ? ` · ${(view.seconds * 1e3).toFixed(1)} ms` : "";
    const same = view.changed ? "" : " · changed nothing";
    this.note.textContent = [view.stage && `${view.stage} stage`, view.note].filter(Boolean).join(": ") + seconds + same;
    const found = await content(view.id);
    const rows = found.lines ? await rowsOf(view) : [];
    if (this.view !== view) return;
    this.rows = rows; this.host = null;
    this.content.replaceChildren();
    if (found.picture) this.drawPicture(found.picture); else this.prepareLines();
    this.content.scrollTop = 0;
    this.draw();
    if (pinned.size) this.reveal(pinned);
    report();
  }

  drawWhich() {
    const same = index.views.filter(view => view.kind === this.view.kind);
    this.which.replaceChildren();
    this.which.style.display = same.length < 2 && !this.view.picture ? "none" : "";
    if (same.length > 1) this.which.append(...this.chooser(same));
    if (!this.view.picture) return;
    const smaller = make("button", "", "−"), larger = make("button", "", "+");
    smaller.title = "smaller (-)"; larger.title = "larger (+)";
    smaller.onclick = () => this.setZoom(this.zoom / 1.25); larger.onclick = () => this.setZoom(this.zoom * 1.25);
    this.which.append(smaller, larger);
  }

  // What chooses among views of one kind.
  chooser(same) {
    const select = make("select");
    select.setAttribute("aria-label", "which");
    let group = select, stage = "";
    for (const view of same) {
      if (view.stage !== stage) {
        group = make("optgroup"); group.label = `${view.stage} stage`; stage = view.stage; select.append(group);
      }
      const option = make("option", "", (view.changed ? "" : "· ") + view.title);
      option.value = view.id; option.selected = view === this.view;
      group.append(option);
    }
    select.onchange = () => this.show(index.views[+select.value]);
    const back = make("button", "", "‹"), on = make("button", "", "›");
    back.title = "before (←)"; on.title = "after (→)";
    back.onclick = () => this.step(-1); on.onclick = () => this.step(1);
    return [back, select, on];
  }

  step(direction, all = false) {
    const same = index.views.filter(view => view.kind === this.view.kind && (all || view.changed || view === this.view));
    const next = same[same.indexOf(this.view) + direction];
    if (next) return this.show(next);
  }

  prepareLines() {
    const longest = this.rows.reduce((most, row) => Math.max(most, row.text.length), 0);
    this.sizer = make("div", "sizer");
    this.sizer.style.height = `${this.rows.length * ROW}px`;
    this.sizer.style.width = `calc(${longest + 8}ch + 1em)`;
    this.lines = make("div", "lines");
    this.lines.style.width = "100%";
    this.sizer.append(this.lines);
    this.content.append(this.sizer);
  }

  // Only the lines that can be seen exist.
  draw() {
    if (!this.view) return;
    if (this.host) { this.markPicture(); return; }
    if (!this.lines) return;
    const first = Math.max(Math.floor(this.content.scrollTop / ROW) - MARGIN, 0);
    const last = Math.min(first + Math.ceil(this.content.clientHeight / ROW) + 2 * MARGIN, this.rows.length);
    const drawn = [];
    for (let i = first; i < last; i++) drawn.push(this.drawRow(this.rows[i], i));
    this.lines.style.transform = `translateY(${first * ROW}px)`;
    this.lines.replaceChildren(...drawn);
  }

  drawRow(row, i) {
    const element = make("div", "row");
    const classes = element.classList;
    if (row.sign === "+") classes.add("add");
    if (row.sign === "-") classes.add("remove");
    if (row.nodes.length) classes.add("linked");
    if (search && row.text.toLowerCase().includes(search)) classes.add("find");
    if (row.nodes.some(node => hovered.has(node))) classes.add("hover");
    if (row.nodes.some(node => pinned.has(node))) classes.add("pin");
    if (i === this.current) classes.add("current");
    element.append(make("span", "number", row.number), make("span", "sign", row.sign), coloured(this.view.kind, row.text));
    if (row.nodes.length) {
      element.title = row.nodes.map(describe).join("\n");
      element.onpointerenter = () => hover(row.nodes);
      element.onpointerleave = () => hover([]);
      element.onclick = () => { this.current = i; pin(row.nodes, this); };
    }
    return element;
  }

  // A shadow tree keeps the styles of a picture from the page; colours come from the page's, dark or light.
  drawPicture(picture) {
    this.lines = null;
    const host = make("div", "picture"), tree = host.attachShadow({mode: "open"});
    tree.innerHTML = picture +
      `<style>text{fill:var(--text)}.axis{fill:var(--soft)}.page{fill:var(--page)}.memory{fill:var(--bar);stroke:var(--line)}
      .grid{stroke:var(--line)}.box,.buffer,.edge{stroke:var(--soft)}marker path{fill:var(--soft)}.group{stroke:var(--frame)}
      .label,.alive-text{fill:var(--frame)}.alive{stroke:var(--frame)}.constant{fill:var(--bar)}.group,.c4{fill:var(--box-group)}
      .op,.c0,.c7{fill:var(--box-op)}.input,.c1,.c6{fill:var(--box-input)}.shared,.c2{fill:var(--box-shared)}
      .output,.c3{fill:var(--box-output)}.c5{fill:var(--box-more)}[data-n]{cursor:pointer}
      .hover rect{stroke:var(--accent);stroke-width:3}.pin rect{stroke:var(--value);stroke-width:4}</style>`;
    this.host = host; this.svg = tree.querySelector("svg");
    this.width = this.svg.width.baseVal.value; this.height = this.svg.height.baseVal.value;
    this.content.append(host);
    for (const element of tree.querySelectorAll("[data-n]")) {
      const nodes = element.dataset.n.split(" ").map(Number);
      element.onpointerenter = () => hover(nodes);
      element.onpointerleave = () => hover([]);
      element.onclick = () => pin(nodes, this);
    }
    this.setZoom(Math.min(1, Math.max((this.content.clientWidth - 20) / this.width, 0.8)));
  }

  setZoom(zoom) {
    this.zoom = Math.min(Math.max(zoom, 0.1), 4);
    this.svg.setAttribute("width", this.width * this.zoom);
    this.svg.setAttribute("height", this.height * this.zoom);
  }

  markPicture() {
    for (const element of this.host.shadowRoot.querySelectorAll("[data-n]")) {
      const nodes = element.dataset.n.split(" ").map(Number);
      element.classList.toggle("hover", nodes.some(node => hovered.has(node)));
      element.classList.toggle("pin", nodes.some(node => pinned.has(node)));
    }
  }

  // Scrolls to where most lines of some nodes stand together, unless one is in sight.
  reveal(nodes, most = false) {
    if (this.host) {
      const marked = [...this.host.shadowRoot.querySelectorAll("[data-n]")]
        .find(element => element.dataset.n.split(" ").some(node => nodes.has(+node)));
      if (marked) marked.scrollIntoView({block: "center", inline: "center"});
      return;
    }
    const height = this.content.clientHeight / ROW, top = this.content.scrollTop / ROW, bottom = top + height - 1;
    const places = this.rows.flatMap((row, i) => row.nodes.some(node => nodes.has(node)) ? [i] : []);
    if (!places.length || (!most && places.some(place => place >= top && place <= bottom))) return;
    const depths = loopDepths(this.view.kind, this.rows), weights = places.map(place => 1 + 9 * depths[place]);
    let best = 0, weight = 0, sum = 0;
    for (let start = 0, end = 0; start < places.length; sum -= weights[start++]) {
      while (end < places.length && places[end] < places[start] + height * 2 / 3) sum += weights[end++];
      if (sum > weight) { best = places[start]; weight = sum; }
    }
    this.scrollTo(best);
  }

  scrollTo(place) {
    this.content.scrollTop = Math.max(place * ROW - this.content.clientHeight / 3, 0);
    this.draw();
  }

  move(direction) {
    for (let i = this.current + direction; i >= 0 && i < this.rows.length; i += direction) {
      if (!this.rows[i].nodes.length) continue;
      this.current = i;
      const top = this.content.scrollTop, bottom = top + this.content.clientHeight;
      if (i * ROW < top || (i + 1) * ROW > bottom) this.scrollTo(i);
      pin(this.rows[i].nodes, this);
      return;
    }
  }
}

// -- nodes --------------------------------------------------------------------------------------------------
function describe(node) {
  const [op, type, file, line] = index.nodes[node];
  return `n${node} ${op}: ${type}${file ? ` at ${file.split("/").pop()}:${line}` : ""}`;
}

const drawAll = () => { for (const pane of panes) pane.draw(); };

function hover(nodes) {
  hovered = new Set(nodes);
  drawMarks();
  if (nodes.length || pinned.size) about(nodes.length ? nodes : [...pinned]); else about([]);
}

// Only marks change: rows stay, or the one that is being clicked would be another.
function drawMarks() {
  for (const pane of panes) {
    if (pane.host || !pane.lines) { pane.draw(); continue; }
    const first = Math.max(Math.floor(pane.content.scrollTop / ROW) - MARGIN, 0);
    [...pane.lines.children].forEach((element, i) => {
      const row = pane.rows[first + i];
      if (row) element.classList.toggle("hover", row.nodes.some(node => hovered.has(node)));
    });
  }
}

function pin(nodes, from) {
  const same = nodes.length === pinned.size && nodes.every(node => pinned.has(node));
  pinned = new Set(same && !keyed ? [] : nodes);
  drawAll();
  if (pinned.size) for (const pane of panes) if (pane !== from) pane.reveal(pinned);
  about([...pinned]);
}
let keyed = false;

// The line at the bottom: what is highlighted, and a way to it in each kind of view.
function about(nodes) {
  const bar = byId("about");
  bar.replaceChildren();
  if (!nodes.length) {
    bar.append(make("span", "soft", "Rest on a line or a box to see where it came from and went to; click to pin. Keys: ?"));
    return;
  }
  for (const node of nodes.slice(0, 3)) bar.append(make("code", "", describe(node)));
  if (nodes.length > 3) bar.append(make("span", "soft", `and ${nodes.length - 3} more`));
  bar.append(make("span", "space"));
  if (!pinned.size) return;
  for (const [kind, title] of KINDS) {
    if (!index.views.some(view => view.kind === kind)) continue;
    const button = make("button", "", title);
    button.onclick = () => panes[active].showKind(kind);
    bar.append(button);
  }
}

function activate(number) {
  active = number;
  panes.forEach((pane, i) => pane.element.classList.toggle("active", i === number));
}

// -- expensive loops ----------------------------------------------------------------------------------------
let loop = 0;
function goToLoop(number) {
  if (!index.loops.length) return;
  loop = number % index.loops.length;
  byId("loops").value = loop;
  pinned = new Set(index.loops[loop][1]);
  drawAll();
  for (const pane of panes) pane.reveal(pinned, true);
  about([...pinned]);
}

function listLoops() {
  const select = byId("loops");
  select.hidden = !index.loops.length;
  index.loops.forEach(([name, nodes, share], i) => {
    const [, , file, line] = index.nodes[nodes.find(node => index.nodes[node][2])] ?? [];
    const percent = `${share < 0.01 ? "below 1" : Math.round(share * 100)} %${index.measured ? "" : " (estimate)"}`;
    select.append(new Option(`${percent}: ${name}${file ? `, ${file.split("/").pop()}:${line}` : ""}`, i));
  });
  select.onchange = () => goToLoop(+select.value);
}

// -- search -------------------------------------------------------------------------------------------------
const visible = () => panes.filter(pane => pane.element.offsetParent !== null);
const matches = pane => pane.rows.flatMap((row, i) => search && row.text.toLowerCase().includes(search) ? [i] : []);

function report() {
  const count = search ? visible().reduce((sum, pane) => sum + matches(pane).length, 0) : 0;
  byId("found").textContent = search ? `${count} line${count === 1 ? "" : "s"}` : "";
}

function searchFor(text) {
  search = text.trim().toLowerCase();
  drawAll(); report();
  for (const pane of visible()) {
    const found = matches(pane);
    pane.match = found.length ? 0 : -1;
    if (found.length) pane.scrollTo(found[0]);
  }
}

function nextMatch(direction) {
  const pane = matches(panes[active]).length ? panes[active] : visible().find(each => matches(each).length);
  if (!pane) return;
  const found = matches(pane);
  pane.match = (pane.match + direction + found.length) % found.length;
  pane.current = found[pane.match];
  pane.scrollTo(pane.current);
}

// -- light and dark -----------------------------------------------------------------------------------------
const system = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
const markTheme = () => document.body.classList.toggle("dark", isDark());
function switchTheme() {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  markTheme();
}

// -- keys ---------------------------------------------------------------------------------------------------
function onKey(event) {
  const box = byId("search"), pane = panes[active];
  if (event.target === box) {
    if (event.key === "Enter") nextMatch(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") { box.value = ""; searchFor(""); box.blur(); }
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "SELECT") return;
  const kind = KINDS.find(([, , key]) => key === event.key);
  keyed = true;
  const actions = {
    "/": () => box.focus(), "?": () => byId("help").showModal(), t: switchTheme, h: () => goToLoop(loop + 1),
    Escape: () => pin([]), d: () => { showsChanges = !showsChanges; for (const each of panes) each.show(each.view); },
    ArrowLeft: () => pane.step(-1, event.shiftKey), ArrowRight: () => pane.step(1, event.shiftKey),
    ArrowUp: () => pane.move(-1), ArrowDown: () => pane.move(1),
    "+": () => pane.host && pane.setZoom(pane.zoom * 1.25), "-": () => pane.host && pane.setZoom(pane.zoom / 1.25),
  };
  if (kind) pane.showKind(kind[0]);
  else if ("123".includes(event.key) && panes[+event.key - 1]) activate(+event.key - 1);
  else if (actions[event.key]) actions[event.key]();
  else { keyed = false; return; }
  keyed = false;
  event.preventDefault();
}

// -- start --------------------------------------------------------------------------------------------------
async function start() {
  index = await unpack("index");
  byId("name").append(index.name, " ", make("small", "", `${index.mode}, ${index.nodes.length} operations`));
  panes = [0, 1, 2].map(number => new Pane(number));
  byId("panes").append(...panes.map(pane => pane.element));
  const kinds = KINDS.map(([kind]) => kind).filter(kind => index.views.some(view => view.kind === kind));
  const wanted = [["source", "graph"], ["ir", "graph"], ["asm", "llvm", "ir", "graph"]];
  activate(0); about([]); markTheme();
  system.onchange = markTheme;
  byId("search").oninput = event => searchFor(event.target.value);
  byId("theme").onclick = switchTheme;
  byId("help-button").onclick = () => byId("help").showModal();
  document.onkeydown = onKey;
  await Promise.all(panes.map((pane, i) => pane.showKind(wanted[i].find(kind => kinds.includes(kind)) ?? kinds[0])));
  listLoops();
  goToLoop(0);
  document.body.dataset.ready = "1";
}
start().catch(error => { byId("about").textContent = `This browser cannot show the page: ${error}`; });
