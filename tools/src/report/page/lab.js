// Settings to try: every one of a grid was replayed beforehand.

const lab = report.lab;

const labels = {
  block: (i) => showBytes(lab.block_mb[i] * 2 ** 20),
  count: (i) => (lab.count[i] === null ? 'as demand shows' : String(lab.count[i])),
  threshold: (i) => (lab.threshold_mb[i] ? showBytes(lab.threshold_mb[i] * 2 ** 20) : 'none'),
};

const state = { block: 0, count: 0, threshold: 0, growth: 'segment' };

function found() {
  if (state.growth === 'plan') {
    const plan = allocators.find((it) => it.name === 'a plan');
    return { pinned: plan.pinned, peak: plan.peak, waits: plan.waited, calls: plan.calls, lines: ['BUDDY_PLAN=run.plan'] };
  }
  const exact = state.growth === 'exact';
  const [block, count, threshold] = [lab.block_mb[state.block], lab.count[state.count], lab.threshold_mb[state.threshold]];
  const it = lab.tried.find((one) => one.exact === exact && one.threshold_mb === threshold && (exact || (one.block_mb === block && one.count === count)));
  if (!it) return null;
  it.curve = it.curve || curveOf(it.pinned);
  const lines = [];
  if (exact) lines.push('BUDDY_GROWTH=exact', 'BUDDY_WARMUP=off');
  else {
    if (block !== 1024) lines.push(`BUDDY_BLOCK_SIZE_MB=${block}`);
    if (count !== null) lines.push(`BUDDY_BLOCK_COUNT=${count}`);
  }
  if (threshold !== 4) lines.push(`BUDDY_THRESHOLD_MB=${threshold}`);
  return { pinned: it.curve, peak: it.peak, waits: it.waits, calls: it.calls, lines };
}

function paintTried(context, size) {
  const whole = { from: 0, to: END };
  const it = found();
  const usual = allocators.find((one) => one.name === 'pinbuddy');
  const stock = allocators.find((one) => one.name === 'stock');
  // One scale for all settings, so that curves move and not the axis; what is far above is cut off.
  const top = Math.min(Math.max(...lab.tried.map((one) => one.peak), stock.peak, report.peak), Math.max(stock.peak, usual.peak, report.peak) * 2.5);
  const up = axes(context, size, top * 1.06, whole);
  inside(context, size, () => {
    stepCurve(context, size, up, live, { stretch: whole, area: colour('live') });
    context.lineWidth = 1.5;
    for (const [curve, name] of [[stock.pinned, 'stock'], [usual.pinned, 'pinbuddy']]) {
      context.strokeStyle = colour(name);
      context.setLineDash([3, 3]);
      stepCurve(context, size, up, curve, { stretch: whole });
    }
    context.setLineDash([]);
    if (it) {
      context.lineWidth = 3;
      context.strokeStyle = colour('plan');
      stepCurve(context, size, up, it.pinned, { stretch: whole });
    }
  });
  const end = (curve) => up(Math.min(nearEnd(curve, whole), top));
  const named = [
    { text: 'stock', y: end(stock.pinned), colour: colour('stock') },
    { text: 'the defaults', y: end(usual.pinned), colour: colour('pinbuddy') },
    { text: 'live', y: end(live), colour: colour('quiet') },
  ];
  if (it) named.push({ text: it.peak > top ? 'these, cut off above' : 'these settings', y: end(it.pinned), colour: colour('plan') });
  names(context, size, named);
}

function sayTried() {
  const it = found();
  const waits = it && (it.waits === null ? 'waits for the driver not modelled' : `${plural(it.waits, 'wait')} for the driver`);
  byId('came-to').textContent = it
    ? `Pins ${showBytes(it.peak)} at most, ${ratio(it.peak, report.peak)} times the largest live set; ${waits}; ${plural(it.calls, 'call')} to it.`
    : 'There was no time to try this one: --time-limit gives more.';
  byId('lab-lines').textContent = it ? it.lines.map((line) => `export ${line}`).join('\n') || '# the defaults: nothing to set' : '';
  for (const label of byId('settings').querySelectorAll('[data-of]')) {
    const off = state.growth === 'plan' || (state.growth === 'exact' && label.dataset.of !== 'threshold');
    label.classList.toggle('quiet', off);
    label.querySelector('input').disabled = off;
  }
}

function setUpLab() {
  byId('lab').hidden = !lab;
  if (!lab) return;
  state.block = lab.block_mb.indexOf(1024);
  state.threshold = lab.threshold_mb.indexOf(4);
  const all = lab.tried.length === lab.of;
  byId('lab-how').textContent = `The trace was replayed on pinbuddy's engine with ${all ? 'each' : `${lab.tried.length} of ${lab.of}`} of these settings when the page was made, so they answer at once; values between them are not there.`;
  const form = byId('settings');
  const growth = element('select', { name: 'growth', id: 'growth' });
  for (const [value, text] of [['segment', 'in blocks'], ['exact', 'exact, no warm-up'], ['plan', 'by a plan']]) growth.append(element('option', { value }, text));
  growth.addEventListener('change', () => {
    state.growth = growth.value;
    sayTried();
    redraw();
  });
  form.append(element('label', {}, 'Memory is pinned ', growth));
  const slider = (of, text, length) => {
    const value = element('b', {}, labels[of](state[of]));
    const input = element('input', { type: 'range', min: 0, max: length - 1, step: 1, name: of, 'aria-label': text, 'aria-valuetext': labels[of](state[of]) });
    input.value = state[of];
    input.addEventListener('input', () => {
      state[of] = Number(input.value);
      value.textContent = labels[of](state[of]);
      input.setAttribute('aria-valuetext', labels[of](state[of]));
      sayTried();
      redraw();
    });
    form.append(element('label', { 'data-of': of }, text, value, input));
  };
  slider('block', 'Size of a block', lab.block_mb.length);
  slider('count', 'Blocks pinned ahead', lab.count.length);
  slider('threshold', 'Smallest request served', lab.threshold_mb.length);
  picture(byId('tried'), paintTried);
  sayTried();
}
