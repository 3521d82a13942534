// The top of the page, and everything set up.

function setUpTop() {
  document.title = `${report.name}: pinbuddy report`;
  byId('title').textContent = report.name;
  const facts = [
    report.device === null ? 'pinned memory' : `memory of device ${report.device}`,
    plural(report.requests, 'request'),
    `at most ${showBytes(report.peak)} live`,
    showTime(report.end),
  ];
  if (report.iterations_in_all) facts.push(plural(report.iterations_in_all, 'iteration mark'));
  if (report.torch) facts.push(`torch ${report.torch}`);
  if (report.rank && report.rank[1] > 1) facts.push(`rank ${report.rank[0]} of ${report.rank[1]}`);
  byId('facts').textContent = facts.join(' · ');
  const notes = [];
  if (report.cut_off) notes.push(`The file is cut off at line ${showCount(report.cut_off)}, as by a crash; all before that is shown.`);
  if (report.cut_after) notes.push(`The file is longer: the first ${showCount(report.cut_after)} events are shown.`);
  if (report.lost) notes.push(`${plural(report.lost, 'event')} came too fast to be recorded, and are missing.`);
  if (report.blocks.of > blocks.count) notes.push(`Thinned: the map shows ${showCount(blocks.count)} of ${showCount(report.blocks.of)} blocks, those with most bytes for longest. Curves keep every peak.`);
  byId('notes').replaceChildren(...notes.map((it) => element('li', {}, it)));
  const model = onDevice ? 'the device is never full' : 'pins take no time there, and there is no budget';
  byId('made').textContent = `Made by pinbuddy ${report.version}. Curves of allocators are replays on models, with no GPU: ${model}.`;
  document.querySelectorAll('.held').forEach((it) => { it.textContent = HELD; });
  byId('lanes-how').hidden = onDevice;
}

// Names, and what is said of each.
const told = (said) => element('dl', {}, ...Object.entries(said).flatMap(([name, text]) => [element('dt', {}, name), element('dd', {}, text)]));

function setUpAdvice() {
  const { advice } = report;
  byId('advice').hidden = !advice;
  if (!advice) return;
  const it = advice.recommendation;
  const lines = it.lines.join('\n');
  const parts = [element('p', { class: 'choice' }, it.choice), element('p', {}, `${it.reason[0].toUpperCase()}${it.reason.slice(1)}.`)];
  if (lines) {
    const copy = element('button', { type: 'button' }, 'Copy');
    const byHand = () => { copy.textContent = 'Select and copy by hand'; };
    // A page that came by plain http has no clipboard.
    copy.addEventListener('click', () => (navigator.clipboard ? navigator.clipboard.writeText(lines).then(() => { copy.textContent = 'Copied'; }, byHand) : byHand()));
    parts.push(element('pre', {}, lines), copy);
  }
  byId('recommendation').replaceChildren(...parts);
  byId('findings-title').hidden = !advice.findings.length;
  byId('findings').replaceChildren(...advice.findings.map((one) => element('li', {}, element('strong', {}, one.what), told({ evidence: one.evidence, 'to do': one.to_do }))));
}

setUpTop();
setUpAdvice();
setUpCurves();
setUpMap();
setUpGaps();
setUpTables();
setUpLab();
setUpPaper();
window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
redraw();
