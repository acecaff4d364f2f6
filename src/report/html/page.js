// What happens when something is pressed, typed or pointed at.

function option(value, text) {
  return make('option', { value }, text);
}

function fillControls() {
  $('metric').replaceChildren(...DATA.metrics.map((metric, index) => option(index, metric.title)));
  for (const axis of ['x', 'y']) {
    const options = DATA.dims.map((dim, index) => option(index, dim.name));
    $(axis).replaceChildren(option('', '(nothing)'), ...options);
    $(axis).value = state[axis] ?? '';
  }
  $('filters').replaceChildren(...varying.map((dim) => {
    const values = DATA.dims[dim].values.map((value, index) => option(index, fit(value, 200)));
    return make('label', {}, `${DATA.dims[dim].name} `, make('select', { 'data-dim': dim }, option('', 'any'), ...values));
  }), make('label', {}, 'outcome ', make('select', { 'data-dim': 'outcome' }, option('', 'any'),
    ...DATA.outcomes.map((outcome, index) => option(index, outcome)))));
}

/** Which cells are shown: those that match every select, and every word of the text. */
function filter() {
  const selects = [...$('filters').querySelectorAll('select')].filter((select) => select.value !== '');
  const words = $('search').value.toLowerCase().split(/\s+/).filter(Boolean);
  state.shown = DATA.cells.map((cell) => {
    const matches = selects.every((select) => {
      const value = select.dataset.dim === 'outcome' ? cell.o : cell.at[select.dataset.dim];
      return value === Number(select.value);
    });
    if (!matches || !words.length) return matches;
    const text = [cell.id, cell.w, ...DATA.dims.map((dim, at) => `${dim.name}=${valueName(cell, at)}`),
      ...cell.r.map(([reason]) => DATA.reasons[reason])].join(' ').toLowerCase();
    return words.every((word) => text.includes(word));
  });
  table.rows = STEP;
}

function redraw() {
  filter();
  drawMap();
  drawTable();
}

/** The two axes are never the same: the other one takes what this one had. */
function changeAxis(axis, other) {
  const before = state[axis];
  state[axis] = $(axis).value === '' ? null : Number($(axis).value);
  if (state[axis] !== null && state[axis] === state[other]) {
    state[other] = before;
    $(other).value = before ?? '';
  }
  drawMap();
}

const cellAt = (event) => {
  const found = event.target.closest?.('[data-i]');
  return found ? Number(found.dataset.i) : null;
};

const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

function pressed(event) {
  if (MOVES[event.key]) {
    event.preventDefault();
    choose(neighbour(...MOVES[event.key]), false);
  } else if (event.key === 'Enter' || event.key === ' ') {
    event.preventDefault();
    choose(state.chosen ?? neighbour(0, 0), true);
  } else if (event.key === 'Escape') {
    choose(state.chosen, false);
  }
}

function listen() {
  $('metric').addEventListener('change', () => { state.metric = Number($('metric').value); drawMap(); });
  $('stat').addEventListener('change', () => { state.stat = Number($('stat').value); drawMap(); });
  $('x').addEventListener('change', () => changeAxis('x', 'y'));
  $('y').addEventListener('change', () => changeAxis('y', 'x'));
  $('filters').addEventListener('change', redraw);
  $('search').addEventListener('input', redraw);
  $('clear').addEventListener('click', () => {
    $('search').value = '';
    for (const select of $('filters').querySelectorAll('select')) select.value = '';
    redraw();
  });
  const map = $('map');
  map.addEventListener('pointermove', (event) => {
    const index = cellAt(event);
    if (event.pointerType !== 'touch') drawTip(index, event);
    if (index !== null && !state.pinned && index !== state.chosen) choose(index, false);
  });
  map.addEventListener('pointerleave', () => drawTip(null));
  map.addEventListener('click', (event) => {
    const index = cellAt(event);
    if (index !== null) choose(index, !(state.pinned && index === state.chosen));
  });
  map.addEventListener('keydown', pressed);
  map.addEventListener('focus', () => { if (state.chosen === null && map.matches(':focus-visible')) choose(neighbour(0, 0), false); });
  $('table').addEventListener('click', (event) => {
    const button = event.target.closest('button[data-column]');
    if (button) {
      const column = Number(button.dataset.column);
      table.down = table.column === column && !table.down;
      table.column = column;
      drawTable();
      $('table').querySelector(`button[data-column="${column}"]`).focus();
      return;
    }
    const index = cellAt(event);
    if (index !== null) choose(index, true);
  });
  $('more').addEventListener('click', () => { table.rows += 1000; drawTable(); });
  $('copy').addEventListener('click', copyCsv);
  let width = $('map').clientWidth;
  window.addEventListener('resize', () => {
    if ($('map').clientWidth === width) return;
    width = $('map').clientWidth;
    drawMap();
  });
}

function theme() {
  const dark = window.matchMedia('(prefers-color-scheme: dark)');
  const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? 'dark' : 'light')) === 'dark';
  const name = () => { $('theme').textContent = isDark() ? 'Light' : 'Dark'; };
  $('theme').addEventListener('click', () => {
    document.documentElement.dataset.theme = isDark() ? 'light' : 'dark';
    name();
  });
  dark.addEventListener('change', name);
  name();
}

theme();
if (DATA.cells.length) {
  fillControls();
  listen();
  redraw();
}
