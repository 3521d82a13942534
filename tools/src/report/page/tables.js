// Tables: what allocators come to, what lived at the peak, sizes, and another file beside this one.

function fill(table, heads, rows) {
  const row = (name, cells) => element('tr', {}, ...cells.map((it) => (it instanceof Node ? it : element(name, name === 'th' ? { scope: 'col' } : {}, String(it)))));
  table.replaceChildren(element('thead', {}, row('th', heads)), element('tbody', {}, ...rows.map((cells) => row('td', cells))));
}

const bar = (part, name = 'pinbuddy') => element('td', { class: 'bar' }, element('i', { style: `width: ${(Math.min(part, 1) * 100).toFixed(2)}%; background: var(--${name})` }));

const ratio = (one, other) => (other ? (one / other).toFixed(2) : '');

// What of an allocator's memory was not live at the peak, and the largest free run where its map says it.
const gapsAtPeak = (it) => (it.map && it.map.fragmentation
  ? [it.map.fragmentation.idle_at_peak, it.map.fragmentation.largest_at_peak].map(showBytes)
  : [showBytes(Math.max(valueAt(it.pinned, report.peak_at) - report.peak, 0)), '']);

function setUpTables() {
  const top = Math.max(...allocators.map((it) => it.peak), report.run_peak || 0, 1);
  const own = ownWaits || report.run_peak ? [[
    'this run', ...(report.run_peak ? [showBytes(report.run_peak), bar(report.run_peak / top, 'ink'), ratio(report.run_peak, report.peak)] : ['', '', '']), '', '',
    ownWaits ? `${showCount(ownWaits.count)}, ${showTime(ownWaits.total)}` : '', '',
  ]] : [];
  const heads = ['allocator', `${HELD} at most`, '', 'over the largest live set', 'not live at the peak', 'largest free run then', 'waits for the driver', 'calls to the driver'];
  // Neither is known of a device's memory.
  const known = (cells) => cells.filter((_, column) => !onDevice || (column !== 5 && column !== 6));
  fill(byId('allocators'), known(heads), [...own, ...allocators.map((it) => [
    it.name, `${showBytes(it.peak)}${it.stopped ? ', stopped' : ''}`, bar(it.peak / top, it.colour), ratio(it.peak, report.peak), ...gapsAtPeak(it), it.waited === null ? 'not modelled' : showCount(it.waited), showCount(it.calls),
  ])].map(known));

  byId('nodes').hidden = !report.nodes.length;
  fill(byId('nodes'), ['NUMA node', 'pinned at most', 'in use at most', 'pinned at the end', 'in use at the end'], report.nodes.map((it) => [
    it.node, ...[it.peak_pinned, it.peak_used, ...it.at_end].map(showBytes),
  ]));

  const blocksThere = report.at_peak.reduce((sum, it) => sum + it.blocks, 0);
  byId('peak-how').textContent = `${showBytes(report.peak)} in ${plural(blocksThere, 'block')}, ${showTime(report.peak_at)} after the first event. Freed memory that waits for a stream counts.`;
  fill(byId('at-peak'), ['each', 'blocks', 'together', '', 'share', 'asked by', 'waits for a stream'], report.at_peak.map((it) => [
    it.from === it.to ? showBytes(it.to) : `${showBytes(it.from)} to ${showBytes(it.to)}`, showCount(it.blocks), showBytes(it.total), bar(it.total / report.peak),
    `${((100 * it.total) / report.peak).toFixed(1)} %`, `thread ${it.thread}`, it.waiting ? showBytes(it.waiting) : '',
  ]));

  byId('at-peak-who').hidden = !report.who;
  if (report.who) {
    fill(byId('at-peak-who'), ['asked by', 'blocks', 'together', '', 'share'], report.who.at_peak.map((it) => [
      it.place === null ? 'others, or not in the file' : it.place, showCount(it.blocks), showBytes(it.total), bar(it.total / report.peak), `${((100 * it.total) / report.peak).toFixed(1)} %`,
    ]));
  }

  const rounding = report.sizes.reduce((sum, it) => sum + it.rounding, 0);
  byId('sizes-how').textContent = report.device !== null
    ? 'By powers of two. PyTorch rounds requests for device memory up to 512 bytes.'
    : report.exact_sizes
    ? `Stock rounds each request up to a power of two: ${showBytes(rounding)} more at the peak, ${((100 * rounding) / Math.max(report.peak, 1)).toFixed(0)} % of what lives.`
    : 'A snapshot has sizes as the allocator rounded them, so what rounding costs does not show.';
  const requests = Math.max(...report.sizes.map((it) => it.requests), 1);
  fill(byId('sizes'), ['up to', 'requests', '', 'different sizes', 'at the peak', 'rounding adds', 'median lifetime'], report.sizes.map((it) => [
    showBytes(it.up_to), showCount(it.requests), bar(it.requests / requests), showCount(it.different), it.at_peak ? showBytes(it.at_peak) : '',
    it.rounding ? showBytes(it.rounding) : '', it.lifetime === null ? 'never freed' : showTime(it.lifetime),
  ]));

  byId('compare').hidden = !other;
  if (other) {
    byId('compare-how').textContent = `${report.name} beside ${other.name}, which has ${plural(other.requests, 'request')} in ${showTime(other.end)}.`;
    const rows = [['largest live set', showBytes(report.peak), showBytes(other.peak), ratio(other.peak, report.peak), '', '']];
    const its = (waits) => (waits ? inAll(waits) : 'not in the file');
    if (ownWaits || other.waits) rows.push(['the run itself', '', '', '', its(ownWaits), its(other.waits)]);
    for (const it of allocators) {
      const twin = other.allocators.find((one) => one.name === it.name);
      if (twin) rows.push([`${it.name}: pinned at most`, showBytes(it.peak), showBytes(twin.peak), ratio(twin.peak, it.peak), showCount(it.waited), showCount(twin.waited)]);
    }
    fill(byId('compared'), ['', 'this', 'the other', 'ratio', 'waits, this', 'waits, the other'], rows);
  }
}
