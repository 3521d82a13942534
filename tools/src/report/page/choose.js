// Choosing a block of the map, by a click or by keys. To assistive technology the map is a slider whose values are blocks, for
// the reasons that moment.js has.

// Keeps what is said of a block; -1: of none. Beside a block that keys chose it is said, too, where no pointer is.
function chooseBlock(i, byKeys = false) {
  const text = i < 0 ? '' : sayBlock(i);
  Object.assign(layer, { chosen: i, byKeys });
  byId('block').textContent = text;
  sayValue(byId('map'), Math.max(i, 0), Math.max(blocks.count - 1, 0), text || 'no block chosen; the arrow keys choose one');
  redraw();
}

// Whether some of a block is at the heights that are shown.
function isAtHeights(i) {
  const { places, height } = layer.map;
  const low = places[i] - 1;
  return places[i] > 0 && low < layer.to * height && low + blocks.bytes[i] > layer.from * height;
}

const isInTime = (i) => blocks.from[i] <= view.to && blocks.until[i] >= view.from;

// The first from `begin` on, in the order of requests, that `fits`; the picture goes along in time.
function chooseFrom(begin, step, fits = isAtHeights) {
  for (let i = begin; i >= 0 && i < blocks.count; i += step) {
    if (!fits(i)) continue;
    const width = view.to - view.from;
    if (!isInTime(i)) show(blocks.from[i] - width * (step > 0 ? 0.9 : 0.1), blocks.from[i] + width * (step > 0 ? 0.1 : 0.9));
    chooseBlock(i, true);
    return;
  }
}

// The next block; the first or the last in the picture if none was chosen.
function stepBlock(step) {
  if (layer.chosen >= 0) chooseFrom(layer.chosen + step, step);
  else chooseFrom(step > 0 ? 0 : blocks.count - 1, step, (i) => isAtHeights(i) && isInTime(i));
}

// The next that was requested as much later as a part of the picture.
function leapBlock(part) {
  if (layer.chosen < 0) {
    stepBlock(Math.sign(part));
    return;
  }
  const at = blocks.from[layer.chosen] + (view.to - view.from) * part;
  const last = lastBefore(blocks.from, at);
  // One at least, and not past the last there is.
  if (part > 0) chooseFrom(Math.min(Math.max(last, layer.chosen + 1), blocks.count - 1), 1);
  else chooseFrom(Math.max(Math.min(last, layer.chosen - 1), 0), -1);
}

// Keys that choose; `first` is called before each.
function blockKeys(first) {
  const then = (choose) => () => {
    first();
    if (layer.map) choose();
  };
  const [next, previous] = [then(() => stepBlock(1)), then(() => stepBlock(-1))];
  return {
    ArrowRight: next, n: next, ArrowLeft: previous, p: previous,
    PageUp: then(() => leapBlock(0.1)), PageDown: then(() => leapBlock(-0.1)),
    Home: then(() => chooseFrom(0, 1)), End: then(() => chooseFrom(blocks.count - 1, -1)),
    Escape: () => (layer.chosen < 0 ? false : then(() => chooseBlock(-1))()),
  };
}

// Where in the map's picture the chosen block is said, if keys chose it and it is in view.
function placeOfChosen(canvas) {
  const i = layer.chosen;
  if (!layer.byKeys || document.activeElement !== canvas || !isInTime(i) || !isAtHeights(i)) return null;
  const size = { width: canvas.clientWidth, height: canvas.clientHeight, ...marginOf(canvas.clientWidth) };
  const y = upOf(size)(layer.map.places[i] - 1 + blocks.bytes[i] / 2);
  return [acrossOf(size)(Math.max(blocks.from[i], view.from)), Math.min(Math.max(y, size.top), size.height - size.bottom)];
}
