// The data, and how figures are written. The same rules as in src/plot/unit.rs and src/plot/scale.rs.

const DATA = JSON.parse(document.getElementById('data').textContent);
const $ = (id) => document.getElementById(id);

/** Makes an element. Texts are only ever set as text. */
function make(name, attributes = {}, ...children) {
  const svg = ['svg', 'rect', 'text', 'path', 'g', 'line', 'polygon', 'pattern', 'defs', 'title'].includes(name);
  const element = svg ? document.createElementNS('http://www.w3.org/2000/svg', name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

const UNITS = {
  ns: [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']],
  bps: [[1e9, 'Gbit/s'], [1e6, 'Mbit/s'], [1e3, 'kbit/s'], [1, 'bit/s']],
  bytes: [[2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'B']],
  count: [[1, '']],
  share: [[0.01, '%']],
};

const digits = (value) => value.toFixed(value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2);

/** With three significant digits: `4.67 s`. */
function show(unit, value) {
  if (value === null || value === undefined) return '–';
  const sizes = UNITS[unit];
  let index = sizes.findIndex(([size]) => value >= size);
  if (index < 0) index = sizes.length - 1;
  // Rounding may reach the next unit: 999.9 µs is 1.00 ms.
  if (index > 0 && value / sizes[index][0] >= 999.5 && unit !== 'bytes') index -= 1;
  const [size, name] = sizes[index];
  const number = size === 1 ? String(Math.round(value)) : digits(value / size);
  return name ? `${number} ${name}` : number;
}

/** Shorter still, for cells with little room: `80.4k`, `4.67s`. */
function brief(unit, value) {
  const [number, name = ''] = show(unit, value).split(' ');
  if (unit === 'bps') return number + name[0].replace('b', '');
  return number + (unit === 'bytes' ? name[0] : name);
}

/** A size: exact, but for large ones that no unit divides. */
function bytes(value) {
  if (value === null) return '–';
  for (const [size, name] of UNITS.bytes) {
    if (value >= size && value % size === 0) {
      return name === 'B' && value >= 2 ** 20 ? show('bytes', value) : `${value / size} ${name}`;
    }
  }
  return `${value} B`;
}

const percent = (share) => (share === null ? '–' : `${digits(share * 100)} %`);

for (const cell of DATA.cells) cell.measured = cell.n.filter(([outcome]) => outcome === 0).length;

/** Range over median of a metric, where there are several repeats. */
function spreadOf(cell, metric) {
  const figures = cell.m[metric];
  return figures && cell.measured > 1 && figures[0] > 0 ? (figures[2] - figures[1]) / figures[0] : null;
}

/** What a cell has of a metric and a statistic: 0 median, 1 smallest, 2 largest, 3 spread. */
function valueOf(cell, metric, stat) {
  const figures = cell.m[metric];
  if (!figures) return null;
  return stat === 3 ? spreadOf(cell, metric) : figures[stat];
}

/** An end of a logarithmic scale, moved outwards to the next round figure if that is near. */
function round(end, up) {
  const power = 10 ** Math.floor(Math.log10(end));
  const steps = [1, 2, 3, 5, 10].map((step) => step * power);
  const next = up ? steps.find((step) => step >= end) : steps.findLast((step) => step <= end);
  return next && Math.abs(Math.log(next / end)) < 0.3 ? next : end;
}

/** Logarithmic beyond a decade; never so fine that nearly equal figures look different. */
function scaleOf(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low === Infinity) return null;
  if (low > 0 && high / low > 10) {
    [low, high] = [round(low, false), round(high, true)];
    const span = Math.log(high / low);
    return { low, high, log: true, place: (value) => Math.log(value / low) / span };
  }
  const middle = (low + high) / 2;
  const half = Math.max((high - low) / 2, middle * 0.05) || 0.5;
  const from = Math.max(middle - half, 0);
  const to = middle + half;
  return { low: from, high: to, log: false, place: (value) => (value - from) / (to - from) };
}

/** Round figures on a scale. */
function ticksOf(scale, unit) {
  const ticks = [];
  if (scale.log) {
    const base = unit === 'bytes' ? 2 : 10;
    const decades = Math.log(scale.high / scale.low) / Math.log(base);
    const stride = Math.max(1, Math.ceil(decades / 6));
    const first = Math.ceil(Math.log(scale.low) / Math.log(base) - 1e-9);
    for (let power = first; base ** power <= scale.high * 1.000001; power += stride) ticks.push(base ** power);
    return ticks.length > 1 ? ticks : [scale.low, scale.high];
  }
  const size = (UNITS[unit].find(([s]) => scale.high >= s) || [1])[0];
  const rough = (scale.high - scale.low) / size / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((s) => s * power).find((s) => s >= rough * 0.999) * size;
  for (let number = Math.ceil(scale.low / step - 1e-9); number * step <= scale.high * 1.000001; number += 1) {
    ticks.push(number * step);
  }
  return ticks;
}

/** A tick without zeros at its end. */
function tick(unit, value) {
  const [size, name] = UNITS[unit].find(([s]) => value >= s * 0.999999) || UNITS[unit].at(-1);
  return value === 0 ? '0' : `${Number((value / size).toPrecision(5))}${name ? ` ${name}` : ''}`;
}

const STOPS = DATA.stops.map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));

/** The colour at a place from 0 to 1, and the ink that can be read on it. */
function colourAt(place) {
  const scaled = Math.min(Math.max(place, 0), 1) * (STOPS.length - 1);
  const below = Math.floor(scaled);
  const above = Math.min(below + 1, STOPS.length - 1);
  const rgb = STOPS[below].map((channel, i) => Math.round(channel + (STOPS[above][i] - channel) * (scaled - below)));
  const linear = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  const luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  return { fill: `rgb(${rgb.join(',')})`, ink: (luminance + 0.05) ** 2 >= 0.0525 ? '#000' : '#fff' };
}

const varying = DATA.dims.map((_, index) => index).filter((index) => DATA.dims[index].values.length > 1);
const valueName = (cell, dim) => DATA.dims[dim].values[cell.at[dim]];
