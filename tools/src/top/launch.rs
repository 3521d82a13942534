//! A program that is started with `BUDDY_LIVE=1`, and shown with all that it starts until it ends.
//!
//! In a terminal its output comes through a pipe, and stands above the table; elsewhere its output is its own, and the
//! last numbers follow on standard error. Invariants: its exit status is ours; its input and its signals are its own.

use std::io::{IsTerminal as _, PipeReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use pinbuddy_machine::Held;
use rustix::process::{Pid, Signal, getpgrp, kill_process};

use super::find::Who;
use super::row::Row;
use super::screen::Screen;
use super::{PAPER, every, find, others, prometheus, row, text};
use crate::{cli, effort, output};

/// How often output is passed on.
const PASS: Duration = Duration::from_millis(100);

/// Starts it, and returns its status once it has ended.
pub(super) fn run(args: &cli::Top) -> Result<ExitCode> {
    let drawn = std::io::stdout().is_terminal() && !args.once && !args.json;
    effort::catch();
    let (mut child, output) = start(args, drawn)?;
    let mut shown = Shown {
        who: Who::Below(child.id()),
        every: every(args),
        args,
        last: Vec::new(),
        others: Held::default(),
        looked: None,
    };
    let status = match output {
        Some(output) => shown.beside(&mut child, &output)?,
        None => shown.alone(&mut child)?,
    };
    Ok(code(status))
}

struct Shown<'a> {
    who: Who<'a>,
    every: Duration,
    args: &'a cli::Top,
    /// The latest rows that showed anything.
    last: Vec<Row>,
    others: Held,
    looked: Option<Instant>,
}

impl Shown<'_> {
    /// Looks again, if it is time to.
    fn look(&mut self) -> Result<bool> {
        if self.looked.is_some_and(|it| it.elapsed() < self.every) {
            return Ok(false);
        }
        self.looked = Some(Instant::now());
        let rows = find::rows(self.who);
        if let Some(file) = &self.args.prometheus {
            // A process that has ended is in it no more.
            prometheus::write(file, &rows)?;
        }
        if !rows.is_empty() {
            self.last = rows;
        }
        self.others = others::read(&self.last);
        Ok(true)
    }

    /// Its output is its own.
    fn alone(&mut self, child: &mut Child) -> Result<ExitStatus> {
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            forward(child);
            self.look()?;
            std::thread::sleep(PASS);
        };
        let said = match self.args.json {
            true => format!("{}\n", row::json(&self.last, &self.others)),
            false => text(self.who, &self.last, &self.others, PAPER, ""),
        };
        output::say(format_args!("{said}"));
        Ok(status)
    }

    /// Its output stands above the table.
    fn beside(&mut self, child: &mut Child, output: &Receiver<Vec<u8>>) -> Result<ExitStatus> {
        let mut screen = Screen::open(false)?;
        let mut lines = Lines::default();
        loop {
            let ended = child.try_wait()?;
            // What it wrote before it ended is in the pipe; a process that it left behind may keep that open.
            let until = Instant::now() + if ended.is_some() { 3 * PASS } else { PASS };
            while let Ok(more) = output.recv_timeout(until.saturating_duration_since(Instant::now())) {
                lines.push(&more);
                if ended.is_none() && lines.whole.len() > 1 << 16 {
                    break;
                }
            }
            forward(child);
            let looked = self.look()?;
            if ended.is_some() {
                lines.end();
            }
            if looked || ended.is_some() || lines.changed {
                let (columns, _) = screen.size();
                let table = lines.open() + &text(self.who, &self.last, &self.others, columns, "");
                screen.draw(&lines.take(), &table)?;
            }
            if let Some(status) = ended {
                return Ok(status);
            }
        }
    }
}

fn start(args: &cli::Top, piped: bool) -> Result<(Child, Option<Receiver<Vec<u8>>>)> {
    let command = args.launch.split_first();
    let (program, words) = command.context("--launch needs a command")?;
    let mut command = Command::new(program);
    command.args(words).env("BUDDY_LIVE", "1");
    let mut output = None;
    if piped {
        let (reader, writer) = std::io::pipe()?;
        command.stdout(writer.try_clone()?).stderr(writer);
        if std::env::var_os("PYTHONUNBUFFERED").is_none() {
            // Else Python would keep what it prints, since it goes to no terminal.
            command.env("PYTHONUNBUFFERED", "1");
        }
        output = Some(reader);
    }
    let child = command.spawn();
    // The command has a copy of the pipe's end, which would keep the pipe open.
    drop(command);
    let program = program.display();
    let expected = "expected a program and its arguments behind --launch";
    let child = child.with_context(|| format!("{program} cannot be started; {expected}"))?;
    Ok((child, output.map(pass_on)))
}

/// What comes through the pipe, in order; the writer waits while nobody takes it.
fn pass_on(mut from: PipeReader) -> Receiver<Vec<u8>> {
    let (to, output) = mpsc::sync_channel(16);
    std::thread::spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            if to.send(bytes[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    output
}

/// Ctrl-C reaches the program by itself, from the terminal. A scheduler, or `kill`, signals this process alone. The next
/// signal is the program's, too, and ends nothing here.
fn forward(child: &Child) {
    let Some(signal) = effort::taken().and_then(Signal::from_named_raw) else {
        return;
    };
    let by_the_terminal = signal == Signal::INT && has_terminal();
    if !by_the_terminal && let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// Whether a terminal's Ctrl-C reaches this process, and all that it started: whatever its streams are.
fn has_terminal() -> bool {
    let Ok(terminal) = std::fs::File::open("/dev/tty") else {
        return false;
    };
    rustix::termios::tcgetpgrp(&terminal).is_ok_and(|group| group == getpgrp())
}

fn code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    ExitCode::from(code.and_then(|it| u8::try_from(it).ok()).unwrap_or(1))
}

/// What a program writes, line by line.
#[derive(Debug, Default)]
struct Lines {
    whole: Vec<u8>,
    rest: Vec<u8>,
    changed: bool,
}

impl Lines {
    fn push(&mut self, bytes: &[u8]) {
        self.changed = true;
        self.rest.extend(bytes);
        if let Some(end) = self.rest.iter().rposition(|it| *it == b'\n') {
            self.whole.extend(self.rest.drain(..=end));
        }
        // A bar that is drawn over and over again.
        if self.rest.len() > 1 << 16 {
            self.end();
        }
    }

    /// No line goes on.
    fn end(&mut self) {
        if !self.rest.is_empty() {
            self.whole.append(&mut self.rest);
            let _ = self.whole.write_all(b"\n");
        }
    }

    fn take(&mut self) -> Vec<u8> {
        self.changed = false;
        std::mem::take(&mut self.whole)
    }

    /// The line that goes on, as a terminal would show it, with its end; empty if there is none.
    fn open(&self) -> String {
        let text = String::from_utf8_lossy(&self.rest);
        let last = text.split('\r').rfind(|it| !it.is_empty()).unwrap_or("");
        let shown: String = last.chars().filter(|it| !it.is_control()).collect();
        if shown.is_empty() { shown } else { shown + "\n" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_passed_on_whole_and_bars_as_they_stand() {
        let mut lines = Lines::default();
        for (written, whole, open) in
            [(&b"one\ntw"[..], &b"one\n"[..], "tw\n"), (b"o\n 10 %\r 20 %\r", b"two\n", " 20 %\n")]
        {
            lines.push(written);
            assert_eq!((&*lines.take(), &*lines.open()), (whole, open));
        }
        lines.end();
        assert_eq!(lines.take(), b" 10 %\r 20 %\r\n");
        assert_eq!(lines.open(), "");
    }
}
