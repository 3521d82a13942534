// A moment that keys choose, in pictures of curves: a line through them, and what is said at it beside the line.
//
// To assistive technology such a picture is a slider. Screen readers leave the arrow keys to sliders, and say a slider's new
// value by themselves; on phones, swipes move it. What they say is the text of the hint, to the letter, so that nothing is
// said twice, and nothing to some only.

// Says to assistive technology where a slider stands, and what that means.
function sayValue(canvas, now, most, text) {
  const says = { 'aria-valuemin': 0, 'aria-valuemax': most, 'aria-valuenow': now, 'aria-valuetext': text };
  for (const [name, value] of Object.entries(says)) {
    // What is set again is a change to some screen readers.
    if (canvas.getAttribute(name) !== String(value)) canvas.setAttribute(name, value);
  }
}

const tellers = [];

// The view goes along. null: none.
function chooseMoment(at) {
  const width = view.to - view.from;
  if (at !== null && at < view.from) show(at, at + width);
  if (at !== null && at > view.to) show(at - width, at);
  view.at = at;
  // At once: a screen reader that waits for the next frame would say the value before.
  tellers.forEach((tell) => tell());
  redraw();
}

// Keys that choose; `first` is called before each.
function momentKeys(first) {
  const to = (at) => () => {
    first();
    chooseMoment(at());
  };
  const by = (part) => to(() => {
    // From the edge where none was chosen.
    if (view.at === null) return part > 0 ? view.from : view.to;
    return Math.min(Math.max(view.at + (view.to - view.from) * part, 0), END);
  });
  return {
    ArrowLeft: by(-0.01), ArrowRight: by(0.01), PageDown: by(-0.1), PageUp: by(0.1), Home: to(() => 0), End: to(() => END),
    Escape: () => (view.at === null ? false : to(() => null)()),
  };
}

function paintMoment(context, size) {
  if (view.at === null) return;
  context.fillStyle = colour('ink');
  context.fillRect(acrossOf(size)(view.at) - 0.75, size.top, 1.5, size.height - size.bottom - size.top);
}

// Has a picture of curves say what `say` knows of a moment, to the pointer and to keys. `say` is also told how near to the
// moment something counts as there.
function sayMoments(canvas, box, say) {
  let pointed = null;
  const textAt = (at) => {
    const { left, right } = marginOf(canvas.clientWidth);
    return say(at, ((view.to - view.from) * 3) / (canvas.clientWidth - left - right));
  };
  const tell = () => {
    const text = view.at === null ? '' : textAt(view.at);
    sayValue(canvas, Math.round(view.at || 0), END, text || 'no moment chosen; the arrow keys choose one');
    // Whichever came last has the hint, the pointer or a key.
    if (pointed) return;
    const there = document.activeElement === canvas && text;
    const size = { width: canvas.clientWidth, ...marginOf(canvas.clientWidth) };
    hint(box, canvas, there ? [acrossOf(size)(view.at), size.top + 20] : null, text);
  };
  tellers.push(tell);
  redraws.push(tell);
  canvas.addEventListener('focus', tell);
  canvas.addEventListener('blur', tell);
  hand(canvas, (place) => {
    pointed = place;
    if (!place) {
      tell();
      return;
    }
    const at = momentAt(canvas, place[0]);
    hint(box, canvas, place, at >= view.from && at <= view.to ? textAt(at) : '');
  }, null, momentKeys(() => { pointed = null; }));
}
