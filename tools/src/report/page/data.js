// What the page is given, unpacked; and numbers as people read them. Knows nothing of pictures.

const report = JSON.parse(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id);

// The numbers of which these are the differences.
function sums(differences) {
  const numbers = new Float64Array(differences.length);
  let sum = 0;
  for (let i = 0; i < numbers.length; i += 1) {
    sum += differences[i];
    numbers[i] = sum;
  }
  return numbers;
}

// A curve: from when on, and between which values then.
function curveOf(columns) {
  const high = sums(columns.high);
  const low = columns.low.length ? sums(columns.low) : high;
  return { from: sums(columns.from), high, low };
}

// The index of the last moment that is not after `at`; -1 if all are.
function lastBefore(moments, at) {
  let low = 0;
  let high = moments.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (moments[middle] <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

function valueAt(curve, at) {
  const index = lastBefore(curve.from, at);
  return index < 0 ? 0 : curve.high[index];
}

const most = (curve) => curve.high.reduce((one, other) => Math.max(one, other), 0);

function blocksOf(columns) {
  const from = sums(columns.from);
  const count = from.length;
  const freed = new Float64Array(count);
  const until = new Float64Array(count);
  for (let i = 0; i < count; i += 1) {
    freed[i] = columns.freed[i] < 0 ? Infinity : from[i] + columns.freed[i];
    until[i] = columns.until[i] < 0 ? Infinity : freed[i] + columns.until[i];
  }
  const { bytes, thread, stream } = columns;
  return { count, from, freed, until, bytes, thread, stream, line: sums(columns.line) };
}

function showBytes(bytes) {
  for (const [unit, name] of [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']]) {
    if (bytes >= unit) {
      const number = bytes / unit;
      return `${number.toFixed(number >= 100 ? 0 : number >= 10 ? 1 : 2)} ${name}`;
    }
  }
  return `${bytes} bytes`;
}

function showTime(us) {
  if (us >= 120e6) return `${(us / 60e6).toFixed(1)} min`;
  if (us >= 1e6) return `${(us / 1e6).toFixed(us >= 100e6 ? 0 : 2)} s`;
  if (us >= 1e3) return `${(us / 1e3).toFixed(us >= 100e3 ? 0 : 2)} ms`;
  return `${Math.round(us)} µs`;
}

// Without noughts behind the point, for axes.
const shortTime = (us) => showTime(us).replace(/\.0+ |(\.\d*[1-9])0+ /, '$1 ');

const shortBytes = (bytes) => showBytes(bytes).replace(/\.0+ |(\.\d*[1-9])0+ /, '$1 ');

const showCount = (count) => count.toLocaleString('en');

// A count with its noun.
const plural = (count, noun) => `${showCount(count)} ${noun}${count === 1 ? '' : 's'}`;

// An element with text or children.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// How each allocator's curve looks: which colour of the style sheet, which dashes.
const LOOKS = {
  stock: { colour: 'stock', dash: [] },
  '#181094': { colour: 'buddy', dash: [2, 3] },
  pinbuddy: { colour: 'pinbuddy', dash: [] },
  'pinbuddy, exact growth': { colour: 'exact', dash: [7, 4] },
  'a plan': { colour: 'plan', dash: [] },
  'expandable segments': { colour: 'exact', dash: [7, 4] },
  'plan, stock behind it': { colour: 'plan', dash: [] },
  'plan, expandable segments behind it': { colour: 'plan', dash: [7, 4] },
};

// What memory is that an allocator has; of a device's, no waits for the driver are known.
const onDevice = report.device !== null;
const HELD = onDevice ? 'reserved' : 'pinned';
