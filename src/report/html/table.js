// All cells as a table that sorts, and as CSV.

const STEP = 200;
const table = { column: null, down: false, rows: STEP };

/** Columns: what varies, every metric's median, its spread, and the outcome. */
const COLUMNS = [
  ...varying.map((dim) => ({ name: DATA.dims[dim].name, key: (cell) => cell.at[dim], text: (cell) => valueName(cell, dim) })),
  { name: 'outcome', key: (cell) => cell.o, text: (cell) => cell.w },
  { name: 'reason', key: (cell) => cell.r.length, text: (cell) => cell.r.map(([reason]) => DATA.reasons[reason]).join('; '), wide: true },
  ...DATA.metrics.flatMap((metric, index) => [{
    name: metric.name,
    title: metric.title,
    number: true,
    key: (cell) => (cell.m[index] ? cell.m[index][0] : null),
    text: (cell) => (cell.m[index] ? (metric.unit === 'bytes' && metric.worse === 0 ? bytes : (v) => show(metric.unit, v))(cell.m[index][0]) : '–'),
    csv: (cell) => (cell.m[index] ? String(cell.m[index][0]) : ''),
    csvName: ['count', 'number'].includes(metric.unit) ? metric.name : `${metric.name}_${metric.unit}`,
  }, ...(index < 2 ? [{
    name: 'spread',
    title: `${metric.title}: range of the repeats over their median`,
    number: true,
    key: (cell) => spreadOf(cell, index),
    text: (cell) => percent(spreadOf(cell, index)),
    csv: (cell) => String(spreadOf(cell, index) ?? ''),
    csvName: `${metric.name}_spread`,
  }] : [])]),
  { name: 'cell', key: (cell) => cell.id, text: (cell) => cell.id.slice(0, 60) },
].filter((column) => column.name !== 'reason' || DATA.reasons.length);

/** Indexes of the cells to be shown, in order. What is missing comes last, whichever way it is sorted. */
function sorted() {
  const indexes = DATA.cells.map((_, index) => index).filter((index) => state.shown[index]);
  const column = COLUMNS[table.column];
  if (!column) return indexes;
  const sign = table.down ? -1 : 1;
  const keys = DATA.cells.map(column.key);
  return indexes.sort((a, b) => {
    const [left, right] = [keys[a], keys[b]];
    if (left === null || right === null) return (left === null) - (right === null);
    return (left < right ? -1 : left > right ? 1 : 0) * sign || a - b;
  });
}

function drawHead() {
  const cells = COLUMNS.map((column, index) => {
    const order = table.column !== index ? 'none' : table.down ? 'descending' : 'ascending';
    const arrow = order === 'none' ? '' : table.down ? ' ↓' : ' ↑';
    const button = make('button', { type: 'button', title: column.title, 'data-column': index }, column.name + arrow);
    return make('th', { scope: 'col', 'aria-sort': order, class: column.number ? 'number' : null }, button);
  });
  $('table').tHead.replaceChildren(make('tr', {}, ...cells));
}

function drawTable() {
  const indexes = sorted();
  const rows = indexes.slice(0, table.rows).map((index) => {
    const cell = DATA.cells[index];
    return make('tr', { 'data-i': index }, ...COLUMNS.map((column) => {
      const text = column.text(cell);
      const kind = column.number ? 'number' : column.wide ? 'wide' : null;
      return make('td', { class: kind, dir: 'auto' }, text.length > 300 ? `${text.slice(0, 300)}…` : text);
    }));
  });
  drawHead();
  $('table').tBodies[0].replaceChildren(...rows);
  const left = indexes.length - rows.length;
  $('more').hidden = left <= 0;
  $('more').textContent = `Show ${Math.min(left, 1000)} more of ${left}`;
  $('matching').textContent = `${indexes.length} of ${DATA.cells.length} cells`;
}

/** A field of RFC 4180; one that a spreadsheet would take for a formula is quoted as text. */
function field(text) {
  const safe = /^[=+@\t\r]|^-(?![\d.])/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function asCsv() {
  const lines = [COLUMNS.map((column) => column.csvName ?? column.name)];
  for (const index of sorted()) {
    lines.push(COLUMNS.map((column) => (column.csv ?? column.text)(DATA.cells[index])));
  }
  return lines.map((line) => line.map(field).join(',')).join('\r\n') + '\r\n';
}

/** Pages opened from disk may not be allowed to use the clipboard directly. */
async function copyCsv() {
  const text = asCsv();
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make('textarea', { readonly: '' });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  $('copy').textContent = 'Copied';
  setTimeout(() => { $('copy').textContent = 'Copy as CSV'; }, 1500);
}
