// What was live, and what each allocator had pinned, over time.

const live = curveOf(report.live);
const waiting = curveOf(report.waiting);
const allocators = report.allocators.map((it) => ({
  ...it, ...LOOKS[it.name], pinned: curveOf(it.pinned), waits: it.waits && curveOf(it.waits), shown: it.name !== '#181094',
}));
const other = report.compare && { ...report.compare, live: curveOf(report.compare.live), shown: true };

// Draws a curve as steps; `area` fills what is below it.
function stepCurve(context, size, up, curve, { stretch = view, area = null, end = END } = {}) {
  const across = acrossOf(size);
  const { from, high, low } = curve;
  const first = Math.max(lastBefore(from, stretch.from), 0);
  context.beginPath();
  let begun = false;
  for (let i = first; i < from.length && (i === first || from[i - 1] <= stretch.to); i += 1) {
    const x = across(Math.max(from[i], stretch.from), stretch);
    const next = i + 1 < from.length ? from[i + 1] : end;
    if (begun) context.lineTo(x, up(high[i]));
    else context.moveTo(x, up(high[i]));
    begun = true;
    // Where a stretch has more than one value, both are drawn.
    if (low[i] !== high[i]) {
      context.lineTo(x, up(low[i]));
      context.lineTo(x, up(high[i]));
    }
    context.lineTo(across(Math.min(next, stretch.to), stretch), up(high[i]));
  }
  if (area && begun) {
    context.lineTo(across(Math.min(stretch.to, end), stretch), up(0));
    context.lineTo(across(Math.max(from[first], stretch.from), stretch), up(0));
    context.closePath();
    context.fillStyle = area;
    context.fill();
  } else {
    context.stroke();
  }
}

// A curve's value near the right end: at the very end programs free everything.
const nearEnd = (curve, stretch = view) => valueAt(curve, stretch.to - (stretch.to - stretch.from) * 0.02);

// Names at the right end of curves, moved apart where they would meet.
function names(context, size, labels) {
  if (size.right < 100) return;
  labels.sort((one, other) => one.y - other.y);
  const between = 15;
  let last = -Infinity;
  for (const label of labels) {
    label.y = Math.max(label.y, last + between);
    last = label.y;
  }
  let next = size.height - size.bottom + between / 2;
  for (const label of [...labels].reverse()) {
    label.y = Math.min(label.y, next - between);
    next = label.y;
  }
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  for (const label of labels) {
    context.fillStyle = label.colour;
    context.fillText(label.text, size.width - size.right + 8, label.y, size.right - 10);
  }
}

// Times when the cache was emptied or an iteration ended.
function marks(context, size, moments, name) {
  const across = acrossOf(size);
  const seen = moments.filter((at) => at >= view.from && at <= view.to);
  if (!seen.length || seen.length > 200) return;
  context.strokeStyle = colour(name);
  context.globalAlpha = 0.6;
  context.setLineDash([1, 3]);
  for (const at of seen) {
    context.beginPath();
    context.moveTo(across(at), size.top);
    context.lineTo(across(at), size.height - size.bottom);
    context.stroke();
  }
  context.setLineDash([]);
  context.globalAlpha = 1;
}

const LANE = 12;

// A lane for the run itself and for each allocator: where requests waited for the driver.
function lanes(context, size, shown) {
  const across = acrossOf(size);
  const own = ownWaits ? [{ name: 'this run', colour: 'ink', waited: ownWaits.count }] : [];
  [...own, ...shown].forEach((it, lane) => {
    const y = size.height - size.bottom + 4 + lane * LANE;
    context.fillStyle = colour('soft');
    context.fillRect(size.left, y, size.width - size.left - size.right, LANE - 4);
    if (!it.waits) ownLane(context, size, y, LANE - 4);
    context.fillStyle = colour(it.colour);
    const { from, high } = it.waits || { from: [], high: [] };
    for (let i = Math.max(lastBefore(from, view.from), 0); i < from.length && from[i] <= view.to; i += 1) {
      if (high[i] > (i ? high[i - 1] : 0) && from[i] >= view.from) context.fillRect(across(from[i]) - 1, y, 2, LANE - 4);
    }
    if (size.right >= 100) {
      context.textAlign = 'left';
      context.textBaseline = 'middle';
      context.fillText(`${it.name}: ${showCount(it.waited)}`, size.width - size.right + 8, y + LANE / 2 - 2, size.right - 10);
    }
  });
}

function paintCurves(context, whole) {
  const shown = allocators.filter((it) => it.shown);
  const waited = shown.filter((it) => it.waits);
  const rows = waited.length + (ownWaits ? 1 : 0);
  const room = rows * LANE + (rows ? 22 : 0);
  const size = { ...whole, height: whole.height - room };
  let top = Math.max(report.peak, ...shown.map((it) => most(it.pinned)));
  if (other && other.shown) top = Math.max(top, other.peak);
  // A limit that is far away would flatten everything.
  const limits = [['budget', report.budget], ['control group', report.group_limit]].filter(([, it]) => it && it < top * 2);
  top = Math.max(top, ...limits.map(([, it]) => it));
  const up = axes(context, size, top * 1.06);
  inside(context, size, () => {
    if (ownWaits) ownBands(context, size);
    stepCurve(context, size, up, live, { area: colour('live') });
    stepCurve(context, size, up, waiting, { area: colour('waiting') });
    marks(context, size, report.iterations, 'quiet');
    marks(context, size, report.clears, 'limit');
    context.lineWidth = 1;
    context.strokeStyle = colour('ink');
    context.setLineDash([1, 2]);
    context.strokeRect(size.left - 1, up(report.peak), size.width, 0);
    context.strokeStyle = colour('limit');
    context.setLineDash([10, 4]);
    for (const [, limit] of limits) context.strokeRect(size.left - 1, up(limit), size.width, 0);
    context.lineWidth = 2;
    for (const it of shown) {
      context.strokeStyle = colour(it.colour);
      context.setLineDash(it.dash);
      stepCurve(context, size, up, it.pinned);
    }
    if (other && other.shown) {
      context.strokeStyle = colour('other');
      context.setLineDash([3, 3]);
      stepCurve(context, size, up, other.live, { end: other.end });
    }
    context.setLineDash([]);
    paintMoment(context, size);
  });
  const labels = shown.map((it) => ({ text: it.name, y: up(nearEnd(it.pinned)), colour: colour(it.colour) }));
  labels.push({ text: `least possible: ${showBytes(report.peak)}`, y: up(report.peak), colour: colour('ink') });
  labels.push({ text: 'live', y: up(nearEnd(live)), colour: colour('quiet') });
  for (const [name, limit] of limits) labels.push({ text: `${name}: ${showBytes(limit)}`, y: up(limit), colour: colour('limit') });
  if (other && other.shown) labels.push({ text: 'live, compared', y: up(nearEnd(other.live)), colour: colour('other') });
  names(context, size, labels);
  if (rows) {
    context.save();
    context.translate(0, 20);
    lanes(context, size, waited);
    context.restore();
  }
}

function sayCurves(at, near) {
  const lines = [`at ${showTime(at)}`, ...(ownWaits ? sayOwnWaits(at, near) : []), `live: ${showBytes(valueAt(live, at))}`];
  const idle = valueAt(waiting, at);
  if (idle) lines.push(`of that, waits for a stream: ${showBytes(idle)}`);
  for (const it of allocators) if (it.shown) lines.push(`${it.name}: ${showBytes(valueAt(it.pinned, at))}`);
  return lines.join('\n');
}

function setUpCurves() {
  const canvas = byId('curves');
  picture(canvas, paintCurves);
  sayMoments(canvas, byId('curves-hint'), sayCurves);
  const choice = (it, name, look) => {
    const box = element('input', { type: 'checkbox' });
    box.checked = it.shown;
    box.addEventListener('change', () => {
      it.shown = box.checked;
      redraw();
    });
    const swatch = element('span', { class: 'swatch', style: `border-color: var(--${look.colour}); border-top-style: ${look.dash.length ? 'dashed' : 'solid'}` });
    byId('series').append(element('label', {}, box, swatch, name));
  };
  const area = (name, text) => byId('series').append(element('span', {}, element('span', { class: 'swatch area', style: `background: var(--${name})` }), ` ${text}`));
  allocators.forEach((it) => choice(it, it.name, it));
  if (other) choice(other, `live in ${other.name}`, { colour: 'other', dash: [3] });
  area('live', 'live, as requested');
  area('waiting', 'freed, waits for a stream');
  if (ownWaits) area('ink', 'the run itself waits for the driver');
  for (const button of document.querySelectorAll('[data-zoom]')) {
    const does = { in: () => zoom(0.5), out: () => zoom(2), all: () => show(0, END) }[button.dataset.zoom];
    button.addEventListener('click', does);
  }
  byId('waited').textContent = ownWaitsInWords();
  redraws.push(() => {
    const all = view.from === 0 && view.to === END;
    byId('range').textContent = all ? `all ${showTime(END)}` : `${showTime(view.from)} to ${showTime(view.to)}`;
  });
}
