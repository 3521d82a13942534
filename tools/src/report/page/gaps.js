// Fragmentation: what of an allocator's memory was not live, and the largest free run, in the allocator whose map is shown.

const gapsOf = (map) => {
  if (!map || !map.fragmentation) return null;
  map.gaps = map.gaps || { idle: curveOf(map.fragmentation.idle), largest: curveOf(map.fragmentation.largest) };
  return map.gaps;
};

function paintGaps(context, size) {
  const gaps = gapsOf(layer.map);
  if (!gaps) return;
  const { idle, largest } = gaps;
  const up = axes(context, size, Math.max(most(idle), 1) * 1.06);
  inside(context, size, () => {
    stepCurve(context, size, up, idle, { area: colour('live') });
    context.lineWidth = 2;
    context.strokeStyle = colour('plan');
    stepCurve(context, size, up, largest);
    paintMoment(context, size);
  });
  names(context, size, [
    { text: `${HELD}, not live`, y: up(nearEnd(idle)), colour: colour('quiet') },
    { text: 'largest free run', y: up(nearEnd(largest)), colour: colour('plan') },
  ]);
}

function sayGaps(at) {
  const gaps = gapsOf(layer.map);
  if (!gaps) return '';
  const { idle, largest } = gaps;
  return [`at ${showTime(at)}`, `${HELD}, not live: ${showBytes(valueAt(idle, at))}`, `largest free run: ${showBytes(valueAt(largest, at))}`].join('\n');
}

// For the map that was chosen.
function sayFragmentation() {
  if (!layer.map) return;
  byId('gaps').hidden = !layer.map.fragmentation;
  if (!layer.map.fragmentation) {
    byId('gaps-how').textContent = `${layer.map.name}: which block lies where is not known.`;
    return;
  }
  const { idle_at_peak: idle, largest_at_peak: run } = layer.map.fragmentation;
  byId('gaps-how').textContent = idle
    ? `${layer.map.name}: when most was live, ${showBytes(idle)} more were ${HELD}, free or lost to rounding; the largest free run was ${showBytes(run)}. No larger request would have fitted.`
    : `${layer.map.name}: when most was live, nothing more was ${HELD}.`;
}

function setUpGaps() {
  const canvas = byId('gaps');
  picture(canvas, paintGaps);
  sayMoments(canvas, byId('gaps-hint'), sayGaps);
}
