// The map, or lines where nothing is on the axis upwards: one panel for each combination of values that is on neither axis.

const state = { metric: 0, stat: 0, x: DATA.x, y: DATA.y, shown: [], chosen: null, pinned: false };
/** Panels as drawn: what moving from cell to cell needs. */
let panels = [];

const valuesOn = (dim) => (dim === null ? [''] : DATA.dims[dim].values);

/** Panels in order, each with its cells by row and column. */
function layPanels() {
  const facets = varying.filter((dim) => dim !== state.x && dim !== state.y);
  const found = new Map();
  DATA.cells.forEach((cell, index) => {
    const key = facets.map((dim) => String(cell.at[dim]).padStart(6, '0')).join();
    if (!found.has(key)) {
      found.set(key, { title: facets.map((dim) => `${DATA.dims[dim].name} = ${valueName(cell, dim)}`), cells: new Map() });
    }
    const column = state.x === null ? 0 : cell.at[state.x];
    const row = state.y === null ? 0 : cell.at[state.y];
    found.get(key).cells.set(row * 100000 + column, index);
  });
  return [...found.keys()].sort().map((key) => found.get(key));
}

/** The size of cells: as wide as there is room for, within reason. */
function cellSize(columns, rows, labels) {
  const room = $('map').clientWidth - labels - 8;
  const together = Math.min(panels.length, Math.max(1, Math.floor(room / Math.max(columns * 64, 220))));
  // Full rows, if that does not leave half of the room empty.
  let side = together;
  while (side * 2 > together && panels.length % side) side -= 1;
  if (side * 2 <= together) side = together;
  const w = Math.max(3, Math.min(120, Math.floor((room - (side - 1) * (labels + 24)) / side / columns)));
  return [side, w, Math.max(rows > 20 ? 10 : 30, Math.min(56, Math.round(w * 0.6)))];
}

const measure = document.createElement('canvas').getContext('2d');
measure.font = '12px sans-serif';
const textWidth = (text) => measure.measureText(text).width;

/** The text, cut short where it is wider than that. */
function fit(text, room) {
  if (textWidth(text) <= room) return text;
  let cut = text.slice(0, 200);
  while (cut && textWidth(`${cut}…`) > room) cut = cut.slice(0, -1);
  return `${cut}…`;
}

/** Patterns for cells without a figure, another direction for each outcome. */
function patterns() {
  const paths = { 1: 'M-1,7 L7,-1', 2: 'M-1,-1 L7,7', 3: 'M0,3 L6,3', 4: 'M-1,7 L7,-1 M-1,-1 L7,7', 5: 'M-1,7 L7,-1 M0,3 L6,3' };
  return make('defs', {}, ...Object.entries(paths).map(([outcome, d]) => make(
    'pattern', { id: `hatch${outcome}`, width: 6, height: 6, patternUnits: 'userSpaceOnUse' },
    make('rect', { width: 6, height: 6, class: 'hatch-ground' }), make('path', { d, class: 'hatch-line' }),
  )));
}

function drawCell(group, index, x, y, [w, h], scale, unit) {
  const cell = DATA.cells[index];
  const value = valueOf(cell, state.metric, state.stat);
  const gap = w >= 8 && h >= 8 ? 1 : 0;
  const rect = make('rect', { x, y, width: w - gap, height: h - gap, 'data-i': index });
  if (!state.shown[index]) rect.setAttribute('class', 'dim');
  group.append(rect);
  let text;
  let ink = null;
  if (value !== null) {
    const colour = colourAt(scale.place(value));
    rect.setAttribute('fill', colour.fill);
    text = show(unit, value);
    ink = colour.ink;
  } else {
    const { fill, word } = without(cell);
    rect.setAttribute('fill', fill);
    text = word;
  }
  if (h < 20 || !state.shown[index]) return;
  // An edge on the left takes room from both sides, for the text is in the middle.
  const edge = ink && state.stat === 0 && cell.k.some(([metric, dim]) => metric === DATA.metrics[state.metric]?.name && dim === state.x);
  if (textWidth(text) > w - (edge ? 16 : 6) && value !== null) text = brief(unit, value);
  const wide = ink && spreadOf(cell, state.metric) > DATA.wide && w >= 20;
  // Letters in the lower left corner may reach below the text in the middle.
  const crowded = cell.l && (w - gap - textWidth(text)) / 2 < textWidth(cell.l) + 8 && h < 40;
  if (textWidth(text) <= w - 4) {
    // Above the mark, where there is no room beside it.
    const up = (wide && textWidth(text) > w - 20) || crowded ? 7 : 0;
    group.append(make('text', { x: x + (w - gap) / 2, y: y + h / 2 - up, fill: ink, class: ink ? 'figure' : 'figure word' }, text));
  }
  if (wide) {
    const [right, bottom] = [x + w - 6, y + h - 4];
    const d = `M${right},${bottom} v-8 m-2,0 h4 m-4,8 h4`;
    group.append(make('path', { d, stroke: ink, class: 'mark' }));
  }
  if (ink && cell.o !== 0 && w >= 14) {
    const right = x + w - gap;
    group.append(make('polygon', { points: `${right - 8},${y} ${right},${y} ${right},${y + 8}`, fill: ink, class: 'mark' }));
  }
  drawWhy(group, cell, [x, y, w - gap, h - gap], ink, !crowded || h >= 28);
}

/** Letters for what was found, and an edge where more does not help. */
function drawWhy(group, cell, [x, y, w, h], ink, lettered) {
  const fill = ink ?? 'var(--text)';
  if (cell.l && lettered && h >= 14 && textWidth(cell.l) + 6 <= w) {
    group.append(make('text', { x: x + 4, y: y + h - 8, fill, class: 'letters' }, cell.l));
  }
  // A cell without a figure is not a place that anything was found from.
  const knees = ink && state.stat === 0 ? cell.k.filter(([metric]) => metric === DATA.metrics[state.metric]?.name) : [];
  for (const [, dim] of knees) {
    const room = Math.min(4, Math.min(w, h) / 4);
    if (dim === state.x) {
      const middle = y + h / 2;
      group.append(make('path', { d: `M${x},${y}h2V${middle - room}l${room},${room}l${-room},${room}V${y + h}h-2z`, fill, class: 'knee' }));
    } else if (dim === state.y) {
      const [middle, bottom] = [x + w / 2, y + h];
      group.append(make('path', { d: `M${x},${bottom}v-2H${middle - room}l${room},${-room}l${room},${room}H${x + w}v2z`, fill, class: 'knee' }));
    }
  }
}

/** Labels beneath columns, as many as there is room for, and the name of their axis. */
function labelColumns(svg, names, left, top, w) {
  const widest = Math.max(...names.map((name) => Math.min(textWidth(name), 110)));
  const upright = widest + 6 > w && w >= 14;
  const every = upright || widest + 6 <= w ? 1 : Math.ceil((widest + 8) / w);
  names.forEach((name, index) => {
    const last = index === names.length - 1;
    if ((index % every || index + every > names.length - 1) && !last && (index || every >= names.length)) return;
    const x = left + index * w + w / 2;
    const place = upright
      ? { x, y: top + 6, transform: `rotate(-90 ${x} ${top + 6})`, 'text-anchor': 'end', class: 'label' }
      : { x, y: top + 14, 'text-anchor': 'middle', class: 'label' };
    svg.append(make('text', place, fit(name, 110)));
  });
  return upright ? widest + 12 : 20;
}

/** What a cell without a figure shows instead. */
function without(cell) {
  if (cell.o === 0 || cell.m.some(Boolean)) return { fill: 'var(--hatch-ground)', word: '–' };
  return { fill: `url(#hatch${cell.o})`, word: DATA.outcomes[cell.o] };
}

/** A figure for each value of the axis across, with the range of its repeats, and a line between neighbours. */
function drawLines(panel, [w, h], labels, scale, unit) {
  const group = make('g');
  const at = (value) => h - scale.place(value) * h;
  const marks = [];
  for (const { value, text } of scale.ticks.map(([value, text]) => ({ value, text }))) {
    group.append(make('line', { x1: labels, x2: labels + valuesOn(state.x).length * w, y1: at(value), y2: at(value), class: 'rule' }));
    marks.push(make('text', { x: labels - 6, y: at(value), 'text-anchor': 'end', class: 'label' }, text));
  }
  let run = [];
  const runs = [run];
  valuesOn(state.x).forEach((_, column) => {
    const index = panel.cells.get(column);
    if (index === undefined) return;
    const cell = DATA.cells[index];
    const value = valueOf(cell, state.metric, state.stat);
    const x = labels + column * w;
    const area = make('rect', { x, y: 0, width: w, height: h, 'data-i': index, fill: 'transparent' });
    if (value === null) {
      const { fill, word } = without(cell);
      area.setAttribute('fill', fill);
      if (!state.shown[index]) area.setAttribute('class', 'dim');
      group.append(area);
      if (textWidth(word) <= w - 4) marks.push(make('text', { x: x + w / 2, y: h / 2, class: 'figure word' }, word));
      run = [];
      runs.push(run);
      return;
    }
    group.append(area);
    const [, low, high] = state.stat === 3 ? [null, value, value] : cell.m[state.metric];
    run.push({ index, value, low, high, x: x + w / 2 });
  });
  for (const points of runs.filter(({ length }) => length > 1)) {
    const upper = points.map(({ x, high }) => `${x},${at(high)}`);
    const lower = points.map(({ x, low }) => `${x},${at(low)}`).reverse();
    group.append(make('polygon', { points: [...upper, ...lower].join(' '), class: 'band' }));
    group.append(make('path', { d: `M${points.map(({ x, value }) => `${x},${at(value)}`).join('L')}`, class: 'curve' }));
  }
  const withNeighbours = (points) => points.map((point, i) => [point, [points[i - 1], points[i + 1]].filter(Boolean)]);
  for (const [{ index, value, low, high, x }, neighbours] of runs.flatMap(withNeighbours)) {
    const dim = state.shown[index] ? '' : ' dim';
    const [top, bottom] = [at(high), at(low)];
    if (bottom - top >= 3) {
      group.append(make('path', { d: `M${x},${top}V${bottom}M${x - 4},${top}h8M${x - 4},${bottom}h8`, class: `range${dim}` }));
    }
    group.append(make('circle', { cx: x, cy: at(value), r: w >= 10 ? 4 : 2, class: `dot${dim}` }));
    const text = textWidth(show(unit, value)) > w - 6 ? brief(unit, value) : show(unit, value);
    if (!dim && textWidth(text) <= w - 4) {
      // Above; beneath at the foot of a valley, and where there is no room above.
      const valley = neighbours.length > 0 && neighbours.every((other) => at(other.value) < at(value));
      const y = (valley && bottom + 20 < h) || top < 18 ? bottom + 13 : top - 11;
      marks.push(make('text', { x, y, class: 'figure value' }, text));
    }
  }
  group.append(...marks);
  return group;
}

/** The cells of a panel, coloured. */
function drawCells(panel, [w, h], labels, scale, unit) {
  const group = make('g');
  const rows = valuesOn(state.y);
  for (const [key, index] of panel.cells) {
    const [row, column] = [Math.floor(key / 100000), key % 100000];
    drawCell(group, index, labels + column * w, (rows.length - 1 - row) * h, [w, h], scale, unit);
  }
  const every = Math.max(1, Math.ceil(14 / h));
  rows.forEach((name, row) => {
    const last = row === rows.length - 1;
    if ((row % every || row + every > rows.length - 1) && !last && row) return;
    const place = { x: labels - 6, y: (rows.length - row) * h - h / 2, 'text-anchor': 'end', class: 'label' };
    group.append(make('text', place, fit(name, labels - 10)));
  });
  return group;
}

/** Whether lines are drawn: one axis across, and nothing upwards. */
const isLine = () => state.y === null && valuesOn(state.x).length > 1;

function drawPanel(panel, size, labels, scale, unit) {
  const [w, h] = size;
  const [columns, rows] = [valuesOn(state.x), valuesOn(state.y)];
  const bottom = rows.length * h;
  const svg = make('svg', { class: 'panel', 'aria-hidden': 'true' });
  svg.append((isLine() && scale ? drawLines : drawCells)(panel, size, labels, scale, unit));
  const under = labelColumns(svg, columns, labels, bottom, w);
  const axis = state.x === null ? '' : DATA.dims[state.x];
  const title = axis ? `${axis.name}${axis.about ? `: ${axis.about}` : ''}` : '';
  const wide = labels + columns.length * w + Math.max(0, 20 - w / 2);
  const room = Math.max(wide - labels, 160);
  const shown = textWidth(title) <= room ? title : fit(axis.name, room);
  svg.append(make('text', { x: labels, y: bottom + under + 14, class: 'axis' }, shown));
  panel.cursor = make('rect', { class: 'cursor', visibility: 'hidden', width: w, height: h });
  panel.at = (row, column) => [labels + column * w, (rows.length - 1 - row) * h];
  svg.append(panel.cursor);
  const tall = bottom + under + 22;
  const full = Math.max(wide, labels + textWidth(shown));
  svg.setAttribute('viewBox', `0 0 ${full} ${tall}`);
  svg.setAttribute('width', full);
  svg.setAttribute('height', tall);
  const caption = make('figcaption', {}, ...panel.title.map((line) => make('div', {}, line)));
  return make('figure', {}, caption, svg);
}

/** A figure beneath the bar of colours. */
function tickAt(place, text) {
  const mark = make('span', {}, text);
  mark.style.left = `${place * 100}%`;
  return mark;
}

/** What colours mean, with ticks. */
function drawLegend(scale, unit) {
  const metric = DATA.metrics[state.metric];
  const stat = ['median', 'smallest', 'largest', 'spread'][state.stat];
  const legend = $('legend');
  if (!metric || !scale) {
    legend.replaceChildren(make('p', {}, 'No cell has such a figure.'));
    return;
  }
  const steps = scale.log ? 'logarithmic scale' : 'linear scale';
  if (isLine()) {
    const band = state.stat === 3 ? '' : '; band and bars reach from the smallest to the largest repeat';
    const better = state.stat === 3 || metric.worse > 0 ? ' (lower is better)' : metric.worse < 0 ? ' (higher is better)' : '';
    legend.replaceChildren(make('p', {}, `${metric.title}, ${stat}${better}, ${steps}${band}.`), explain());
    return;
  }
  const more = unit === 'ns' ? 'slower' : unit === 'bps' ? 'faster' : 'more';
  const words = state.stat === 3 ? 'darker is less certain'
    : metric.worse > 0 ? `darker is ${more}, which is worse`
      : metric.worse < 0 ? `darker is ${more}, which is better` : 'darker is larger';
  const bar = make('div', { class: 'bar' });
  bar.style.background = `linear-gradient(to right, ${DATA.stops.join(', ')})`;
  const marks = make('div', { class: 'ticks' });
  // Both ends are told, by the round figure that is there or else by what it is.
  const whole = Math.min(380, legend.clientWidth - 72);
  const at = (value) => scale.place(value) * whole;
  const end = (value) => scale.ticks.find(([tick]) => Math.abs(at(tick) - at(value)) < 2)?.[1] ?? show(unit, value);
  const [low, high] = [end(scale.low), end(scale.high)];
  let [free, last] = [textWidth(low) / 2 + 8, whole - textWidth(high) / 2 - 8];
  marks.append(tickAt(0, low));
  for (const [value, text] of scale.ticks) {
    const half = textWidth(text) / 2;
    if (at(value) - half < free || at(value) + half > last) continue;
    marks.append(tickAt(scale.place(value), text));
    free = at(value) + half + 8;
  }
  marks.append(tickAt(1, high));
  legend.replaceChildren(
    make('p', {}, `${metric.title}, ${stat}: ${words} (${steps})`), make('div', { class: 'scale' }, bar, marks), explain(),
  );
}

/** A small cell with a mark in it, and what that means. */
function sample(words, ...marks) {
  const svg = make('svg', { width: 22, height: 15, class: 'sample', 'aria-hidden': 'true' }, ...marks);
  return make('span', {}, svg, ` ${words}`);
}

/** What hatches and marks mean, as far as there are any. */
function explain() {
  const frame = () => make('rect', { x: 0.5, y: 0.5, width: 21, height: 14, class: 'frame' });
  const missing = new Set(DATA.cells.filter((cell) => cell.o !== 0 && !cell.m.some(Boolean)).map((cell) => cell.o));
  const samples = [...missing].sort().map((outcome) => sample(
    DATA.outcomes[outcome], make('rect', { width: 22, height: 15, fill: `url(#hatch${outcome})` }),
  ));
  if (!isLine() && DATA.cells.some((cell) => spreadOf(cell, state.metric) > DATA.wide)) {
    const beam = make('path', { d: 'M14,3 v9 m-2,0 h4 m-4,-9 h4', class: 'mark line' });
    samples.push(sample(`repeats range over more than ${DATA.wide * 100} % of their median`, frame(), beam));
  }
  if (!isLine() && DATA.cells.some((cell) => cell.o !== 0 && cell.m.some(Boolean))) {
    samples.push(sample('not all repeats were measured', frame(), make('polygon', { points: '14,0 22,0 22,8', class: 'mark solid' })));
  }
  const letters = DATA.letters.filter(([letter]) => DATA.cells.some((cell) => cell.l.includes(letter)));
  for (const [letter, words] of letters) {
    samples.push(sample(words, frame(), make('text', { x: 11, y: 8, class: 'letters middle' }, letter)));
  }
  const metric = DATA.metrics[state.metric]?.name;
  const bends = ([of, dim]) => of === metric && state.stat === 0 && (dim === state.x || dim === state.y);
  const measured = (cell) => valueOf(cell, state.metric, state.stat) !== null;
  if (DATA.cells.some((cell) => measured(cell) && cell.k.some(bends))) {
    const edge = make('path', { d: 'M0,0h2v4l4,4l-4,4v3h-2z', class: 'knee solid' });
    samples.push(sample('from here on more does not help: within 5 % of the best, or within the repeats’ range', frame(), edge));
  }
  return make('p', { class: 'samples' }, ...samples);
}

function drawMap() {
  const unit = state.stat === 3 ? 'share' : DATA.metrics[state.metric]?.unit ?? 'count';
  const scale = DATA.metrics.length ? scaleOf(DATA.metrics[state.metric], state.stat, isLine()) : null;
  panels = layPanels();
  const rows = valuesOn(state.y);
  const beside = isLine() && scale ? scale.ticks.map(([, text]) => text) : rows;
  const labels = Math.min(120, Math.max(...beside.map(textWidth))) + 12;
  const [side, ...size] = cellSize(valuesOn(state.x).length, rows.length, labels);
  if (isLine() && scale) size[1] = 220;
  const figures = panels.map((panel) => drawPanel(panel, size, labels, scale, unit));
  const hatches = make('svg', { width: 0, height: 0, class: 'defs', 'aria-hidden': 'true' }, patterns());
  const up = state.y === null ? null : DATA.dims[state.y];
  const upwards = up ? make('p', { class: 'up' }, `↑ ${up.name}${up.about ? `: ${up.about}` : ''}`) : '';
  const together = make('div', { class: 'panels' }, ...figures);
  together.style.gridTemplateColumns = `repeat(${side}, max-content)`;
  $('map').replaceChildren(hatches, upwards, together);
  drawLegend(scale, unit);
  placeCursor();
}

/** Shows the frame around the chosen cell. */
function placeCursor() {
  for (const panel of panels) {
    panel.cursor.setAttribute('visibility', 'hidden');
    for (const [key, index] of panel.cells) {
      if (index !== state.chosen) continue;
      const [x, y] = panel.at(Math.floor(key / 100000), key % 100000);
      panel.cursor.setAttribute('x', x);
      panel.cursor.setAttribute('y', y);
      panel.cursor.setAttribute('visibility', 'visible');
    }
  }
}

/** The nearest cell in a direction: within the panel, else in the panel before or after it. */
function neighbour(across, upwards) {
  const here = panels.findIndex((panel) => [...panel.cells.values()].includes(state.chosen));
  if (here < 0) return panels[0]?.cells.values().next().value ?? null;
  const at = [...panels[here].cells].find(([, index]) => index === state.chosen)[0];
  const [rows, columns] = [valuesOn(state.y).length, valuesOn(state.x).length];
  let [row, column, panel] = [Math.floor(at / 100000), at % 100000, here];
  for (let step = 0; step < rows + columns + panels.length; step += 1) {
    row += upwards;
    column += across;
    if (column < 0) [column, panel] = [columns - 1, panel - 1];
    else if (column >= columns) [column, panel] = [0, panel + 1];
    else if (row < 0) [row, panel] = [rows - 1, panel + 1];
    else if (row >= rows) [row, panel] = [0, panel - 1];
    if (!panels[panel]) return state.chosen;
    const found = panels[panel].cells.get(row * 100000 + column);
    if (found !== undefined) return found;
  }
  return state.chosen;
}
