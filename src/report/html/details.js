// Everything about one cell.

const BUFFERS = ['client, receive', 'client, send', 'server, receive', 'server, send'];

function rowsOf(head, rows, kind = 'small numbers') {
  return make('table', { class: kind },
    make('thead', {}, make('tr', {}, ...head.map((text) => make('th', { scope: 'col' }, text)))),
    make('tbody', {}, ...rows.map((row) => make('tr', {}, ...row.map((text) => make('td', {}, text))))));
}

/** The figures of all metrics: median and range. */
function figuresOf(cell) {
  const rows = DATA.metrics.map((metric, index) => {
    const figures = cell.m[index];
    // Sizes of buffers have a table of their own.
    if (!figures || (metric.unit === 'bytes' && metric.worse === 0)) return null;
    const write = (value) => show(metric.unit, value);
    const range = figures[1] === figures[2] ? '–' : `${write(figures[1])} – ${write(figures[2])}`;
    return [metric.title, write(figures[0]), range, percent(spreadOf(cell, index))];
  });
  return rowsOf(['figure', 'median', 'range', 'spread'], rows.filter(Boolean));
}

function buffersOf(cell) {
  const rows = cell.b.map((place, index) => {
    const [asked, initial, final, peak, verdict, differs] = DATA.buffers[place];
    if (initial === null && final === null) return null;
    const about = differs ? '~' : '';
    return [BUFFERS[index], asked === null ? (verdict === 'not known' ? '?' : 'default') : bytes(asked), bytes(initial), about + bytes(final), bytes(peak), verdict ?? ''];
  });
  const found = rows.filter(Boolean);
  return found.length ? rowsOf(['buffer', 'asked', 'initial', 'final', 'peak', 'kernel'], found, 'small numbers remarks') : '';
}

function repeatsOf(cell) {
  const rows = cell.n.slice(0, 100).map(([outcome, completion, goodput, p50, p99, max], index) => [
    String(index), DATA.outcomes[outcome], show('ns', completion), show('bps', goodput), show('ns', p50), show('ns', p99), show('ns', max),
  ]);
  return rowsOf(['repeat', 'outcome', 'completion', 'goodput', 'chunk p50', 'p99', 'max'], rows);
}

/** One end of a stream over time. The width of the labels to its left is that of both ends. */
function drawEnd({ title, y, lines }, x, left, last) {
  const [w, h, top] = [720, 220, 44];
  const svg = make('svg', { viewBox: `0 0 ${left + w + 30} ${top + h + (last ? 34 : 8)}`, class: 'track', role: 'img', 'aria-label': title });
  const inner = make('g', { transform: `translate(${left},${top})` });
  svg.append(make('text', { x: left, y: 28, class: 'axis' }, title), inner);
  for (const [place, text] of y) {
    inner.append(make('line', { x1: 0, x2: w, y1: place, y2: place, class: 'rule' }));
    inner.append(make('text', { x: -10, y: place, 'text-anchor': 'end', class: 'label' }, text));
  }
  for (const [place, text] of x) {
    inner.append(make('line', { x1: place, x2: place, y1: 0, y2: h, class: 'rule' }));
    if (last) inner.append(make('text', { x: Math.min(place, w - 10), y: h + 22, 'text-anchor': 'middle', class: 'label' }, text));
  }
  if (!lines.length) inner.append(make('text', { x: w / 2, y: h / 2, class: 'figure axis' }, 'no samples of this end'));
  for (const [kind, , d] of lines.toSorted((a, b) => (b[0] === 1) - (a[0] === 1))) {
    const path = make('path', { d, class: kind === 1 ? 'curve thin' : 'curve' });
    path.style.stroke = `var(--line-${kind})`;
    inner.append(path);
  }
  return svg;
}

/** Buffers over time, where the cell was sampled. */
function samplesOf(cell) {
  if (!cell.s) {
    const id = cell.id.slice(0, 8);
    return DATA.by_hand ? make('p', { class: 'hint' }, `Buffers over time: sweep plot RUN --over-time --cell ${id}`) : '';
  }
  const { repeat, x, ends } = cell.s;
  const names = new Map(ends.flatMap(({ lines }) => lines.map(([kind, name]) => [kind, name])));
  const legend = [...names].sort(([a], [b]) => a - b).map(([kind, name]) => {
    const line = make('line', { x1: 0, x2: 20, y1: 6, y2: 6, class: 'curve' });
    line.style.stroke = `var(--line-${kind})`;
    return make('span', {}, make('svg', { width: 20, height: 12, 'aria-hidden': 'true' }, line), ` ${name}`);
  });
  const left = Math.max(...ends.flatMap(({ y }) => y.map(([, text]) => textWidth(text) * 1.9)), 0) + 20;
  return make('div', { class: 'over-time' }, make('h4', {}, `Buffers over time, repeat ${repeat}`),
    make('p', { class: 'samples' }, ...legend), drawEnd(ends[0], x, left, false), drawEnd(ends[1], x, left, true));
}

/** Why the cell is as it is. */
function findingsOf(cell) {
  if (!cell.f.length) return '';
  const items = cell.f.flatMap((place) => {
    const [name, sentence, advice, source] = DATA.findings[place];
    return [make('dt', {}, name), make('dd', { dir: 'auto' }, `${sentence}.`, make('span', { class: 'hint' }, ` Try: ${advice}. From: ${source}.`))];
  });
  return make('div', { class: 'why' }, make('h4', {}, 'Why'), make('dl', {}, ...items));
}

/** The programs that ran in it. */
function programsOf(cell) {
  if (!cell.p) return '';
  const items = cell.p.flatMap((place) => {
    const [end, command, ending] = DATA.programs[place];
    return [make('dt', {}, end), make('dd', { dir: 'auto' }, make('code', {}, command), `, ${ending}`)];
  });
  return make('div', { class: 'why' }, make('h4', {}, 'Programs'), make('dl', {}, ...items));
}

/** Fills the panel beside the map. */
function drawDetails(index) {
  const cell = DATA.cells[index];
  const values = DATA.dims.map((dim, at) => make('div', {}, make('dt', {}, dim.name), make('dd', { dir: 'auto' }, valueName(cell, at))));
  const parts = [
    make('h3', {}, 'Cell ', make('code', {}, cell.id.slice(0, 60))),
    make('p', { class: cell.o === 0 ? 'outcome' : 'outcome bad' }, cell.w, state.pinned ? ' · kept: Escape lets it go' : ''),
    ...cell.r.map(([reason, count]) => make('p', { class: 'reason', dir: 'auto' }, count > 1 ? `${count} × ` : '', DATA.reasons[reason])),
    make('dl', { class: 'facts' }, ...values),
    findingsOf(cell),
    cell.m.some(Boolean) ? figuresOf(cell) : '',
    buffersOf(cell),
    programsOf(cell),
    samplesOf(cell),
    repeatsOf(cell),
  ];
  $('details').replaceChildren(...parts);
}

function choose(index, pinned) {
  if (index === null || index === undefined) return;
  state.chosen = index;
  state.pinned = pinned;
  drawDetails(index);
  placeCursor();
}

/** Buffers that are not twice what was asked. One that both ends have in common stands once. */
function givenOf(cell) {
  const texts = cell.b.map((place) => {
    const [, initial, , , verdict] = DATA.buffers[place];
    const plain = !verdict || initial === null || ['default', 'doubled', 'not known'].includes(verdict);
    return plain ? '' : `buffer gets ${bytes(initial)}: ${verdict}`;
  });
  return ['receive', 'send'].flatMap((name, at) => {
    const [client, server] = [texts[at], texts[at + 2]];
    if (client === server) return client ? [`${name} ${client}`] : [];
    return [client && `client's ${name} ${client}`, server && `server's ${name} ${server}`].filter(Boolean);
  });
}

/** The small note beside the pointer. */
function drawTip(index, event) {
  const tip = $('tip');
  if (index === null) {
    tip.hidden = true;
    return;
  }
  const cell = DATA.cells[index];
  const metric = DATA.metrics[state.metric];
  const value = metric ? valueOf(cell, state.metric, state.stat) : null;
  const figure = value === null ? cell.w : show(state.stat === 3 ? 'share' : metric.unit, value);
  const lines = varying.map((dim) => make('div', {}, `${DATA.dims[dim].name}: ${fit(valueName(cell, dim), 240)}`));
  lines.push(...givenOf(cell).map((text) => make('div', {}, text)));
  const reason = cell.r.length ? make('div', { class: 'reason' }, fit(DATA.reasons[cell.r[0][0]], 320)) : '';
  tip.replaceChildren(make('strong', {}, figure), cell.o && value !== null ? ` (${cell.w})` : '', ...lines, reason);
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const x = Math.min(event.clientX + 16, window.innerWidth - width - 8);
  const y = event.clientY + 20 + height > window.innerHeight ? event.clientY - height - 12 : event.clientY + 20;
  tip.style.left = `${Math.max(4, x)}px`;
  tip.style.top = `${Math.max(4, y)}px`;
}
