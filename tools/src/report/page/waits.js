// Where the run itself waited for the driver: a lane with marks as long as the waits, and what is said of them.

const ownWaits = report.waits && { ...report.waits, from: sums(report.waits.from) };

// The part of each wait that is in view, as a place and a width.
function eachOwnWait(size, draw) {
  const across = acrossOf(size);
  const { from, took } = ownWaits;
  for (let i = 0; i < from.length && from[i] <= view.to; i += 1) {
    const until = Math.min(from[i] + took[i], view.to);
    if (until < view.from) continue;
    const x = across(Math.max(from[i], view.from));
    draw(x, across(until) - x);
  }
}

// Behind the curves, where a wait is long enough to be seen.
function ownBands(context, size) {
  context.fillStyle = colour('ink');
  context.globalAlpha = 0.1;
  eachOwnWait(size, (x, width) => {
    if (width >= 1) context.fillRect(x, size.top, width, size.height - size.bottom - size.top);
  });
  context.globalAlpha = 1;
}

// In the lane from `y` on, each wait at least wide enough to be seen.
function ownLane(context, size, y, height) {
  context.fillStyle = colour('ink');
  eachOwnWait(size, (x, width) => context.fillRect(x - (width < 2 ? 1 : 0), y, Math.max(width, 2), height));
}

const ofWait = (i) => (ownWaits.bytes[i] ? `for ${showBytes(ownWaits.bytes[i])}` : 'while memory was given back');

// The waits that a moment lies in, or nearly: a mark is wider than a short wait.
function sayOwnWaits(at, near) {
  const lines = [];
  const { from, took, thread } = ownWaits;
  for (let i = 0; i < from.length && from[i] <= at + near; i += 1) {
    if (from[i] + took[i] >= at - near) lines.push(`thread ${thread[i]} waits ${showTime(took[i])} for the driver, ${ofWait(i)}`);
  }
  const most = 4;
  return lines.length > most ? [...lines.slice(0, most), `and ${plural(lines.length - most, 'more wait')}`] : lines;
}

const inAll = ({ count, total }) => `${plural(count, 'time')}, ${showTime(total)} in all`;

// A paragraph for the whole run; nothing of one that was made up.
function ownWaitsInWords() {
  if (!ownWaits) return report.recorded && !onDevice ? 'The file does not say where the run itself waited for the driver: traces of pinned memory do, from version 5 on.' : '';
  if (!ownWaits.count) return 'The run itself never waited for the driver.';
  const { from, took, later } = ownWaits;
  const longest = took.reduce((best, it, i) => (it > took[best] ? i : best), 0);
  const said = [`The run itself waited for the driver ${inAll(ownWaits)}; longest ${showTime(took[longest])} at ${showTime(from[longest])}, ${ofWait(longest)}.`];
  if (later) said.push(later.count ? `After the first iteration: ${inAll(later)}.` : 'It never did after the first iteration.');
  if (from.length < ownWaits.count) said.push(`The ${showCount(from.length)} longest are marked.`);
  return said.join(' ');
}
