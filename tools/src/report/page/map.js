// Where blocks were: pinned memory over time, and who had which of it.

const blocks = blocksOf(report.blocks);
// The run's own comes first, where a snapshot has it: its heights are addresses.
const recorded = report.as_recorded ? [{ name: 'as recorded', ...report.as_recorded }] : [];
const maps = [...recorded, ...report.allocators].filter((it) => it.map).map(({ name, map, height, address }) => ({
  name,
  addresses: address ? { height, address: address.map(BigInt) } : null,
  height: Math.max(map.height, 1),
  segments: map.segments,
  places: sums(map.blocks),
  elsewhere: map.elsewhere,
  fragmentation: map.fragmentation,
}));
const layer = { map: maps.find((it) => it.addresses) || maps.find((it) => it.name === 'pinbuddy') || maps[0], by: 'size', from: 0, to: 1, hovered: -1, chosen: -1, byKeys: false };

// Even to the eye from dark to light; and colours that stay apart for the colour-blind, the last a grey for none. A test
// looks at them, and at those of the style sheet, as the colour-blind do.
const SCALE = ['#3b2f80', '#3f4b8c', '#38658c', '#2f7d8d', '#28958a', '#3bac7c', '#6cc064', '#a8cf4b', '#e3d83f'];
const KINDS = ['#1165fc', '#c50013', '#63baea', '#602175', '#e96b50', '#8b58cb', '#cba2af', '#5f6b76'];

const smallest = Math.log2(Math.max(blocks.bytes.reduce((one, it) => Math.min(one, it), Infinity), 1));
const largest = Math.log2(Math.max(blocks.bytes.reduce((one, it) => Math.max(one, it), 1), 2));

const classOf = {
  size: (i) => Math.min(Math.floor(((Math.log2(blocks.bytes[i]) - smallest) / Math.max(largest - smallest, 1e-9)) * SCALE.length), SCALE.length - 1),
  thread: (i) => blocks.thread[i] % KINDS.length,
  stream: (i) => (blocks.stream[i] < 0 ? KINDS.length - 1 : blocks.stream[i] % (KINDS.length - 1)),
};
const paletteOf = (by) => (by === 'size' ? SCALE : KINDS);

// The class of each block, made once for each choice.
const classes = {};
function classesBy(by) {
  classes[by] = classes[by] || Uint8Array.from({ length: blocks.count }, (_, i) => classOf[by](i));
  return classes[by];
}

const upOf = (size) => (height) => {
  const bottom = size.height - size.bottom;
  const from = layer.from * layer.map.height;
  const to = layer.to * layer.map.height;
  return bottom - ((height - from) / (to - from)) * (bottom - size.top);
};

function paintMap(context, size) {
  if (!layer.map) return;
  const { map } = layer;
  const across = acrossOf(size);
  const up = upOf(size);
  byteAxis(context, size, up, layer.from * map.height, layer.to * map.height);
  timeAxis(context, size);
  inside(context, size, () => {
    const { segments } = map;
    for (let i = 0; i < segments.from.length; i += 1) {
      if (segments.from[i] > view.to || segments.to[i] < view.from) continue;
      const x = across(Math.max(segments.from[i], view.from));
      const width = Math.max(across(Math.min(segments.to[i], view.to)) - x, 1);
      const y = up(segments.height[i] + segments.bytes[i]);
      const high = up(segments.height[i]) - y;
      context.fillStyle = colour('free');
      context.fillRect(x, y, width, high);
      if (high > 6) {
        context.strokeStyle = colour('line');
        context.lineWidth = 1;
        context.strokeRect(x + 0.5, y + 0.5, width - 1, high - 1);
      }
    }
    paintBlocks(context, size, across, up);
  });
}

// Blocks of one colour after those of another: changing it takes longer than a rectangle.
function paintBlocks(context, size, across, up) {
  const { places } = layer.map;
  const palette = paletteOf(layer.by);
  const of = classesBy(layer.by);
  const lists = palette.map(() => []);
  const idle = [];
  const last = lastBefore(blocks.from, view.to);
  for (let i = 0; i <= last; i += 1) {
    if (places[i] === 0 || blocks.until[i] < view.from) continue;
    const y = up(places[i] - 1 + blocks.bytes[i]);
    const high = up(places[i] - 1) - y;
    if (y > size.height || y + high < 0) continue;
    lists[of[i]].push(i, y, high);
    if (blocks.until[i] > blocks.freed[i]) idle.push(i, y, high);
  }
  const rectangle = (from, to, y, high) => {
    const x = across(Math.max(from, view.from));
    const width = across(Math.min(to, view.to)) - x;
    // A line between neighbours where there is room for it.
    context.fillRect(x, high > 3 ? y + 0.5 : y, Math.max(width > 4 ? width - 1 : width, 0.7), Math.max(high > 3 ? high - 1 : high, 0.4));
  };
  lists.forEach((list, number) => {
    context.fillStyle = palette[number];
    for (let k = 0; k < list.length; k += 3) rectangle(blocks.from[list[k]], Math.min(blocks.freed[list[k]], END), list[k + 1], list[k + 2]);
  });
  context.fillStyle = colour('waiting');
  for (let k = 0; k < idle.length; k += 3) {
    const i = idle[k];
    if (blocks.until[i] >= view.from && blocks.freed[i] <= view.to) rectangle(blocks.freed[i], Math.min(blocks.until[i], END), idle[k + 1], idle[k + 2]);
  }
  context.lineWidth = 2;
  context.strokeStyle = colour('ink');
  for (const i of [layer.hovered, layer.chosen]) {
    if (i < 0 || places[i] === 0) continue;
    const y = up(places[i] - 1 + blocks.bytes[i]);
    const x = across(blocks.from[i]);
    context.strokeRect(x, y, Math.max(across(Math.min(blocks.until[i], END)) - x, 2), up(places[i] - 1) - y);
  }
}

// The block under the pointer; -1: none.
function blockAt(canvas, [x, y]) {
  if (!layer.map) return -1;
  const size = { width: canvas.clientWidth, height: canvas.clientHeight, ...marginOf(canvas.clientWidth) };
  const at = momentAt(canvas, x);
  if (at < view.from || at > view.to) return -1;
  // A pixel of time, so that short ones are found.
  const pixel = (view.to - view.from) / (size.width - size.left - size.right);
  const bottom = size.height - size.bottom;
  const height = (layer.from + ((bottom - y) / (bottom - size.top)) * (layer.to - layer.from)) * layer.map.height;
  const { places } = layer.map;
  for (let i = lastBefore(blocks.from, at + pixel); i >= 0; i -= 1) {
    if (places[i] && blocks.until[i] >= at - pixel && places[i] - 1 <= height && height < places[i] - 1 + blocks.bytes[i]) return i;
  }
  return -1;
}

// Where a block was in memory, by its height in the picture.
function addressOf({ addresses, places }, i) {
  const range = lastBefore(addresses.height, places[i] - 1);
  return `0x${(addresses.address[range] + BigInt(places[i] - 1 - addresses.height[range])).toString(16)}`;
}

function sayBlock(i) {
  const lines = [
    `${showBytes(blocks.bytes[i])}${blocks.bytes[i] >= 1024 ? ` (${showCount(blocks.bytes[i])} bytes)` : ''}`,
    `requested at ${showTime(blocks.from[i])} by thread ${blocks.thread[i]}, line ${showCount(blocks.line[i])}`,
  ];
  if (layer.map.addresses && layer.map.places[i]) lines.push(`at ${addressOf(layer.map, i)}`);
  if (blocks.freed[i] === Infinity) lines.push('never freed');
  else lines.push(`freed after ${showTime(blocks.freed[i] - blocks.from[i])}`);
  if (blocks.stream[i] >= 0) lines.push(`last used on stream ${blocks.stream[i]}`);
  if (blocks.until[i] === Infinity && blocks.freed[i] !== Infinity) lines.push('its stream was not seen done');
  else if (blocks.until[i] > blocks.freed[i]) lines.push(`waited ${showTime(blocks.until[i] - blocks.freed[i])} for its stream`);
  const stack = report.who ? report.who.blocks[i] : 0;
  if (stack) lines.push('', report.who.stacks[stack - 1]);
  return lines.join('\n');
}

function key() {
  const by = layer.by;
  const item = (background, text) => element('span', {}, element('i', { style: `background: ${background}` }), text);
  const items = [];
  if (by === 'size') {
    const edge = (part) => showBytes(Math.round(2 ** (smallest + (largest - smallest) * part)));
    // Where all are of one size, that is one colour.
    SCALE.forEach((it, i) => { if (i % 4 === 0 && (i === 0 || largest - smallest > 0.1)) items.push(item(it, edge((i + 0.5) / SCALE.length))); });
  } else {
    const numbers = [...new Set(blocks[by])].sort((one, it) => one - it);
    for (const number of numbers.slice(0, 6)) items.push(item(KINDS[number < 0 ? KINDS.length - 1 : number % (by === 'stream' ? KINDS.length - 1 : KINDS.length)], number < 0 ? 'none' : `${by} ${number}`));
    if (numbers.length > 6) items.push(element('span', {}, `and ${numbers.length - 6} more`));
  }
  items.push(item('var(--waiting)', 'freed, waits for a stream'), item('var(--free)', `${HELD}, idle`));
  byId('map-key').replaceChildren(...items);
}

function setUpMap() {
  byId('where').hidden = !maps.length;
  if (!maps.length) return;
  const canvas = byId('map');
  const heights = {
    zoom(factor, y) {
      const { top, bottom } = marginOf(canvas.clientWidth);
      const part = layer.to - ((y - top) / (canvas.clientHeight - top - bottom)) * (layer.to - layer.from);
      this.show(part - (part - layer.from) * factor, part + (layer.to - part) * factor);
    },
    move(pixels) {
      const { top, bottom } = marginOf(canvas.clientWidth);
      const part = (pixels / (canvas.clientHeight - top - bottom)) * (layer.to - layer.from);
      if (layer.to - layer.from < 1) this.show(layer.from + part, layer.to + part);
    },
    // Around the middle.
    zoomBy(factor) {
      const [middle, half] = [(layer.from + layer.to) / 2, ((layer.to - layer.from) / 2) * factor];
      this.show(middle - half, middle + half);
    },
    // Nothing, so that the page scrolls, where all of it is shown.
    step(part) {
      if (layer.to - layer.from === 1) return false;
      const way = (layer.to - layer.from) * part;
      this.show(layer.from + way, layer.to + way);
      return true;
    },
    show(from, to) {
      const width = Math.min(Math.max(to - from, 1e-6), 1);
      layer.from = Math.min(Math.max(from, 0), 1 - width);
      layer.to = layer.from + width;
      redraw();
    },
  };
  picture(canvas, paintMap);
  let pointed = null;
  const sayChosen = () => {
    const place = pointed ? null : placeOfChosen(canvas);
    // Whichever came last has the hint, the pointer or a key.
    if (!pointed) hint(byId('map-hint'), canvas, place, place && sayBlock(layer.chosen));
  };
  redraws.push(sayChosen);
  canvas.addEventListener('focus', sayChosen);
  canvas.addEventListener('blur', sayChosen);
  hand(canvas, (place, clicked = false) => {
    pointed = place;
    const found = place ? blockAt(canvas, place) : -1;
    if (clicked) chooseBlock(found);
    if (found !== layer.hovered) redraw();
    layer.hovered = found;
    hint(byId('map-hint'), canvas, place, found < 0 ? '' : sayBlock(found));
    sayChosen();
  }, heights, {
    ...blockKeys(() => { pointed = null; }),
    'Shift ArrowUp': () => heights.zoomBy(0.7), 'Shift ArrowDown': () => heights.zoomBy(1 / 0.7),
    ArrowUp: () => heights.step(0.1), ArrowDown: () => heights.step(-0.1),
    0: () => { show(0, END); heights.show(0, 1); },
  });
  const choose = () => {
    layer.map = maps.find((it) => it.name === byId('map-of').value);
    layer.by = byId('map-by').value;
    chooseBlock(-1);
    const notes = [];
    if (blocks.count < report.blocks.of) notes.push(`Of ${showCount(report.blocks.of)} blocks the ${showCount(blocks.count)} with most bytes for longest are drawn.`);
    if (layer.map.addresses) notes.push(`Segments and blocks at the addresses that they had, in ${plural(layer.map.addresses.height.length, 'range')}; gaps between ranges are left out.`);
    if (layer.map.elsewhere) notes.push(`${plural(layer.map.elsewhere, 'block')} had no place here: ${layer.map.name === 'a plan' ? 'no slot of the plan was theirs' : 'the replay was stopped before'}.`);
    byId('map-note').textContent = notes.join(' ');
    key();
    sayFragmentation();
    redraw();
  };
  maps.forEach((it) => byId('map-of').append(element('option', { value: it.name }, it.name)));
  if (layer.map) byId('map-of').value = layer.map.name;
  byId('map-of').addEventListener('change', choose);
  byId('map-by').addEventListener('change', choose);
  choose();
}
