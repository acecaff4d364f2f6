// The data, and how figures are written: by the rules of src/plot/unit.rs, to which a test holds them.

const DATA = JSON.parse(document.getElementById('data').textContent);
const $ = (id) => document.getElementById(id);

/** Makes an element. Texts are only ever set as text. */
function make(name, attributes = {}, ...children) {
  const svg = ['svg', 'rect', 'text', 'path', 'g', 'line', 'polygon', 'pattern', 'defs', 'title', 'circle'].includes(name);
  const element = svg ? document.createElementNS('http://www.w3.org/2000/svg', name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

const UNITS = DATA.units;

const digits = (value) => value.toFixed(value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2);

/** A number of a program's: a whole one as it is, others with four digits that count. */
function plain(value) {
  // The digits decide where the point is: 9.9996 is 10.00.
  const [digits, power] = value.toExponential(3).split('e');
  const exponent = Number(power);
  let text = `${digits.includes('.') ? digits.replace(/\.?0+$/, '') : digits}e${exponent}`;
  if (Number.isInteger(value) && exponent < 15) text = String(value);
  else if (exponent >= -4 && exponent < 15) text = value.toFixed(Math.max(3 - exponent, 0));
  return text.replaceAll('-', '−');
}

/** With three significant digits: `4.67 s`. */
function show(unit, value) {
  if (value === null || value === undefined) return '–';
  if (unit === 'number') return plain(value);
  if (value < 0) return `−${show(unit, -value)}`;
  const sizes = UNITS[unit];
  // Only a program's number has a fraction of the smallest unit.
  if (value < 1000 && !Number.isInteger(value) && (unit === 'ns' || unit === 'bps')) return `${plain(value)} ${sizes.at(-1)[1]}`;
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

/** The scale of a metric and a statistic, on a map or for a line: its ends and ticks come with the data. */
function scaleOf(metric, stat, line) {
  const scale = metric.scales[stat][line ? 1 : 0];
  if (!scale) return null;
  const { low, high, log } = scale;
  const place = log ? (value) => Math.log(value / low) / Math.log(high / low) : (value) => (value - low) / (high - low);
  return { ...scale, place: (value) => Math.min(Math.max(place(value), 0), 1) };
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
