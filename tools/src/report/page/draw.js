// Canvases, the stretch of time that pictures share, and the hand that moves it. Knows nothing of what is drawn.

// Left, for numbers; right, for labels; above; below, for times.
const MARGIN = { left: 64, right: 150, top: 10, bottom: 26 };
const marginOf = (width) => (width < 600 ? { ...MARGIN, left: 56, right: 12 } : MARGIN);

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

const redraws = [];
let planned = false;

// Everything is drawn once a frame at most.
function redraw() {
  if (planned) return;
  planned = true;
  requestAnimationFrame(() => {
    planned = false;
    redraws.forEach((draw) => draw());
  });
}

// The stretch of time that is shown, and the moment in it that keys have chosen; null: none.
const view = { from: 0, to: Math.max(report.end, 1), at: null };
const END = view.to;

function show(from, to) {
  const width = Math.min(Math.max(to - from, Math.min(1, END)), END);
  const start = Math.min(Math.max(from, 0), END - width);
  view.from = start;
  view.to = start + width;
  if (view.at < view.from || view.at > view.to) view.at = null;
  redraw();
}

// Makes the stretch `factor` times as long, around a moment: that which was chosen, or the middle.
function zoom(factor, around = view.at === null ? (view.from + view.to) / 2 : view.at) {
  show(around - (around - view.from) * factor, around + (view.to - around) * factor);
}

const move = (part) => show(view.from + (view.to - view.from) * part, view.to + (view.to - view.from) * part);

// A canvas that is as sharp as the screen; `paint` gets its context, its size and its margins.
function picture(canvas, paint) {
  const draw = () => {
    const { clientWidth: width, clientHeight: height } = canvas;
    if (!width) return;
    const scale = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
    }
    const context = canvas.getContext('2d');
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = '12px system-ui, "DejaVu Sans", sans-serif';
    paint(context, { width, height, ...marginOf(width) });
  };
  redraws.push(draw);
  new ResizeObserver(redraw).observe(canvas);
}

const acrossOf = (size) => (at, stretch = view) =>
  size.left + ((at - stretch.from) / (stretch.to - stretch.from)) * (size.width - size.left - size.right);

// The moment under a pointer.
function momentAt(canvas, x) {
  const { left, right } = marginOf(canvas.clientWidth);
  const part = (x - left) / (canvas.clientWidth - left - right);
  return view.from + part * (view.to - view.from);
}

// Steps of 1, 2 or 5 times a power of ten, about `count` of them.
function steps(range, count) {
  const rough = range / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((it) => it * power >= rough);
}

// Steps of powers of two, for bytes.
const byteSteps = (range, count) => 2 ** Math.ceil(Math.log2(Math.max(range / count, 1)));

// Lines and numbers for bytes from `from` to `to`, at the heights that `up` says.
function byteAxis(context, size, up, from, to) {
  context.lineWidth = 1;
  context.strokeStyle = colour('line');
  context.fillStyle = colour('quiet');
  context.textAlign = 'right';
  context.textBaseline = 'middle';
  const each = byteSteps(to - from, 5);
  for (let bytes = Math.ceil(from / each) * each; bytes <= to; bytes += each) {
    const y = Math.round(up(bytes)) + 0.5;
    context.beginPath();
    context.moveTo(size.left, y);
    context.lineTo(size.width - size.right, y);
    context.stroke();
    context.fillText(bytes ? shortBytes(bytes) : '0', size.left - 6, y);
  }
}

function timeAxis(context, size, stretch = view) {
  const across = acrossOf(size);
  context.fillStyle = colour('quiet');
  context.textAlign = 'center';
  context.textBaseline = 'top';
  const step = steps(stretch.to - stretch.from, size.width < 600 ? 3 : 7);
  for (let at = Math.ceil(stretch.from / step) * step; at <= stretch.to; at += step) {
    context.fillText(at ? shortTime(at) : '0', across(at, stretch), size.height - size.bottom + 7);
  }
}

// Both axes; returns how high bytes are.
function axes(context, size, top, stretch = view) {
  const bottom = size.height - size.bottom;
  const up = (bytes) => bottom - (bytes / top) * (bottom - size.top);
  byteAxis(context, size, up, 0, top);
  timeAxis(context, size, stretch);
  return up;
}

function inside(context, size, paint) {
  context.save();
  context.beginPath();
  context.rect(size.left, 0, size.width - size.left - size.right, size.height - size.bottom);
  context.clip();
  paint();
  context.restore();
}

// The wheel, dragging, two fingers and keys, also a picture's own `keys`. `also` is called with the pointer's place, or null
// once it has gone.
function hand(canvas, also, heights = null, keys = {}) {
  const fingers = new Map();
  let moved = 0;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener('wheel', (event) => {
    // The page scrolls until the picture was chosen.
    if (document.activeElement !== canvas && !event.ctrlKey) return;
    event.preventDefault();
    const [x, y] = place(event);
    const factor = Math.exp((event.deltaY || event.deltaX) * 0.0015);
    if (event.shiftKey && heights) heights.zoom(factor, y);
    else zoom(factor, momentAt(canvas, x));
  }, { passive: false });
  canvas.addEventListener('pointerdown', (event) => {
    canvas.focus({ preventScroll: true });
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, place(event));
    moved = 0;
  });
  canvas.addEventListener('pointermove', (event) => {
    const now = place(event);
    const before = fingers.get(event.pointerId);
    if (!before) {
      also(now);
      return;
    }
    const others = [...fingers].filter(([id]) => id !== event.pointerId);
    if (others.length) {
      const [x] = others[0][1];
      zoom(Math.max(Math.abs(before[0] - x), 1) / Math.max(Math.abs(now[0] - x), 1), momentAt(canvas, x));
    } else {
      const width = momentAt(canvas, before[0]) - momentAt(canvas, now[0]);
      show(view.from + width, view.to + width);
      if (heights) heights.move(now[1] - before[1]);
      also(null);
    }
    moved += Math.abs(now[0] - before[0]) + Math.abs(now[1] - before[1]);
    fingers.set(event.pointerId, now);
  });
  const up = (event) => {
    fingers.delete(event.pointerId);
    if (moved < 4) also(place(event), true);
  };
  canvas.addEventListener('pointerup', up);
  canvas.addEventListener('pointercancel', (event) => fingers.delete(event.pointerId));
  canvas.addEventListener('pointerleave', () => also(null));
  canvas.addEventListener('keydown', (event) => {
    const does = {
      '+': () => zoom(0.7), '=': () => zoom(0.7), '-': () => zoom(1 / 0.7), 0: () => show(0, END),
      'Shift ArrowLeft': () => move(-0.1), 'Shift ArrowRight': () => move(0.1), ...keys,
    }[event.shiftKey && event.key.startsWith('Arrow') ? `Shift ${event.key}` : event.key];
    if (!does || event.ctrlKey || event.metaKey || event.altKey) return;
    if (does() !== false) event.preventDefault();
  });
}

// Puts a hint beside the pointer, or what keys have chosen, inside its picture.
function hint(box, canvas, place, text) {
  box.hidden = !place || !text;
  if (box.hidden) return;
  box.textContent = text;
  const [x, y] = place;
  const beside = x + 14 + box.offsetWidth > canvas.clientWidth ? x - box.offsetWidth - 14 : x + 14;
  // Above or below where a narrow picture has no room on either side, so that it does not cover what it is about.
  const below = y + 14 + box.offsetHeight <= canvas.clientHeight ? y + 14 : y - 14 - box.offsetHeight;
  const down = beside < 0 ? below : y - 20;
  box.style.left = `${Math.max(beside, 0)}px`;
  box.style.top = `${Math.max(Math.min(down, canvas.clientHeight - box.offsetHeight), 0)}px`;
}
