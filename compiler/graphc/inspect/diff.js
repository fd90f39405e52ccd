// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"use strict";
// What changed between two texts, line by line.
// Source: E. W. Myers, "An O(ND) difference algorithm and its variations", 1986.

// The most lines added and removed that are looked for; beyond, what is between equal ends counts as rewritten.
const MOST_CHANGES = 1500;

// Values are numbered anew after each pass: their names do not count.
function comparable(line) {
  return line.replace(/%[\w$.-]+(#\d+)?/g, "%").replace(/\^bb\d+/g, "^bb").trim();
}

// Rows {sign, line, old}: " " and "+" have the number of a line of `after`, "-" of one of `before`.
function difference(before, after) {
  const a = before.map(comparable), b = after.map(comparable);
  let start = 0, endA = a.length, endB = b.length;
  while (start < endA && start < endB && a[start] === b[start]) start++;
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) { endA--; endB--; }
  const rows = [];
  for (let i = 0; i < start; i++) rows.push({sign: " ", line: i});
  for (const row of middle(a.slice(start, endA), b.slice(start, endB))) {
    rows.push({sign: row.sign, line: row.line + start});
  }
  for (let i = endB; i < b.length; i++) rows.push({sign: " ", line: i});
  return rows;
}

function middle(a, b) {
  const n = a.length, m = b.length;
  const replaced = () => [...a.map((_, i) => ({sign: "-", line: i})), ...b.map((_, i) => ({sign: "+", line: i}))];
  if (!n || !m) return replaced();
  const most = Math.min(n + m, MOST_CHANGES), offset = most + 1;
  let reach = new Int32Array(2 * most + 3);
  const history = [];
  for (let d = 0; d <= most; d++) {
    history.push(reach.slice());
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && reach[offset + k - 1] < reach[offset + k + 1]);
      let x = down ? reach[offset + k + 1] : reach[offset + k - 1] + 1, y = x - k;
      while (x < n && y < m && a[x] === b[y]) { x++; y++; }
      reach[offset + k] = x;
      if (x >= n && y >= m) return walkBack(history, d, n, m, offset);
    }
  }
  return replaced();
}

function walkBack(history, d, n, m, offset) {
  const rows = [];
  let x = n, y = m;
  for (; d > 0; d--) {
    const reach = history[d], k = x - y;
    const down = k === -d || (k !== d && reach[offset + k - 1] < reach[offset + k + 1]);
    const from = down ? k + 1 : k - 1, oldX = reach[offset + from], oldY = oldX - from;
    while (x > oldX && y > oldY) {
      x--; y--; rows.push({sign: " ", line: y});
    }
    rows.push(down ? {sign: "+", line: oldY} : {sign: "-", line: oldX});
    x = oldX; y = oldY;
  }
  while (x > 0 && y > 0) { x--; y--; rows.push({sign: " ", line: y}); }
  return rows.reverse();
}
