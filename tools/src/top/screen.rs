//! The last lines of a terminal, drawn again and again; what is above them scrolls as usual.
//!
//! Knows no table. Invariant: the terminal is as it was once this is dropped.

use std::io::{IsTerminal as _, stdin, stdout};
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use crate::effort;

/// How often signals are looked for.
const LOOK: Duration = Duration::from_millis(100);

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Screen {
    /// How many lines are drawn.
    drawn: usize,
    /// What the terminal's input was set to.
    before: Option<Termios>,
}

impl Screen {
    /// With `keys`, each key is read at once and not shown.
    pub(super) fn open(keys: bool) -> Result<Self> {
        let mut before = None;
        if keys && stdin().is_terminal() {
            let now = tcgetattr(stdin())?;
            before = Some(now.clone());
            let mut each = now;
            // Ctrl-C and Ctrl-Z do what they always do.
            each.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
            tcsetattr(stdin(), OptionalActions::Now, &each)?;
        }
        Ok(Self { drawn: 0, before })
    }

    /// Columns and lines.
    pub(super) fn size(&self) -> (usize, usize) {
        let size = tcgetwinsize(stdout()).ok().filter(|it| it.ws_col > 0 && it.ws_row > 0);
        size.map_or((80, 24), |it| (it.ws_col.into(), it.ws_row.into()))
    }

    /// Writes `above`, which ends with a line's end or is empty, and the table below it in place of the last one.
    pub(super) fn draw(&mut self, above: &[u8], table: &str) -> Result<()> {
        let (columns, lines) = self.size();
        let mut out = Vec::new();
        if self.drawn > 0 {
            out.extend(format!("\x1b[{}A\r", self.drawn).into_bytes());
        }
        out.extend(b"\x1b[J");
        out.extend(above);
        // One line stays for the cursor, so that nothing scrolls.
        let most = lines.saturating_sub(1).max(1);
        let all = table.lines().count();
        let shown = if all > most { most - 1 } else { all };
        for line in table.lines().take(shown) {
            out.extend(line.chars().take(columns).collect::<String>().into_bytes());
            out.push(b'\n');
        }
        self.drawn = shown;
        if all > shown {
            out.extend(format!("{} more lines\n", all - shown).into_bytes());
            self.drawn += 1;
        }
        super::put(&out)
    }

    /// Waits; returns at once with true where the user wants to end.
    pub(super) fn wait(&self, time: Duration) -> Result<bool> {
        let until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now()).min(LOOK);
            if self.before.is_none() {
                std::thread::sleep(left);
            } else if ends(left)? {
                return Ok(true);
            }
            if effort::interrupted() {
                return Ok(true);
            }
            if Instant::now() >= until {
                return Ok(false);
            }
        }
    }
}

/// Whether a key comes in this time that ends it.
fn ends(time: Duration) -> Result<bool> {
    let time = Timespec::try_from(time)?;
    let input = stdin();
    let mut keys = [PollFd::new(&input, PollFlags::IN)];
    // A signal is looked at by the caller.
    if poll(&mut keys, Some(&time)).unwrap_or(0) == 0 {
        return Ok(false);
    }
    let mut read = [0; 64];
    let count = rustix::io::read(&input, &mut read)?;
    // None: the terminal is gone.
    Ok(count == 0 || read[..count].iter().any(|it| matches!(it, b'q' | b'Q')))
}

impl Drop for Screen {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(stdin(), OptionalActions::Now, before);
        }
    }
}
