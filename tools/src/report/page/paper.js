// On paper pictures are drawn in the light colours, and as wide as a page: what is on the screen may be dark, and wider.

function setUpPaper() {
  const root = document.documentElement;
  const turn = (on) => {
    root.classList.toggle('paper', on);
    // Not in the next frame: the page is printed before that.
    redraws.forEach((draw) => draw());
  };
  window.addEventListener('beforeprint', () => turn(true));
  window.addEventListener('afterprint', () => turn(false));
}
