//! `top`: how pinned memory stands in programs that run with `BUDDY_LIVE=1`. Reads only.
//!
//! ```text
//!   find        which processes
//!   live        the page of one of them, read as what anybody may have written
//!   row         what is known of a process; table: as text, as wide as there is room; prometheus: as samples
//!   others      who else holds memory, below the table
//!   screen      a few lines at the end of a terminal that are drawn again and again
//!   launch      a program that is started, and shown until it ends
//! ```
//!
//! Knows no allocator. Invariants: no process is waited for, stopped or written to; what a page says reaches a terminal
//! as plain text.

mod find;
mod launch;
mod live;
mod others;
mod prometheus;
mod row;
mod screen;
mod table;

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use pinbuddy_machine::Held;

use crate::{cli, effort, output};
use find::Who;
use row::Row;
use screen::Screen;

/// How wide a table is where there is no terminal.
const PAPER: usize = 100;

/// The command.
pub fn run(args: &cli::Top) -> Result<ExitCode> {
    if let Some(file) = &args.prometheus {
        prometheus::check_name(file)?;
    }
    if !args.launch.is_empty() {
        return launch::run(args);
    }
    let who = match args.all {
        true => Who::All,
        false => Who::These(&args.pids),
    };
    effort::catch();
    let rows = find::rows(who);
    if args.once || args.json || (args.prometheus.is_none() && !std::io::stdout().is_terminal()) {
        return once(args, who, &rows);
    }
    match &args.prometheus {
        Some(file) => export(file, who, rows, every(args))?,
        None => watch(who, rows, every(args))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows how things stand, and ends; fails where nothing can be shown.
fn once(args: &cli::Top, who: Who<'_>, rows: &[Row]) -> Result<ExitCode> {
    if let Some(file) = &args.prometheus {
        prometheus::write(file, rows)?;
    }
    if args.json {
        output::print(&format_args!("{}\n", row::json(rows, &others::read(rows))))?;
    } else if args.prometheus.is_none() {
        output::print(&text(who, rows, &others::read(rows), PAPER, ""))?;
    }
    Ok(output::ends(rows.iter().any(|it| it.page().is_some())))
}

/// Draws the table again and again, until a key, Ctrl-C, or the end of all processes.
fn watch(who: Who<'_>, mut rows: Vec<Row>, every: Duration) -> Result<()> {
    let mut screen = Screen::open(true)?;
    loop {
        let (columns, _) = screen.size();
        let others = others::read(&rows);
        screen.draw(b"", &text(who, &rows, &others, columns, "; q ends"))?;
        if who.is_over(&rows) || screen.wait(every)? {
            return Ok(());
        }
        rows = find::rows(who);
    }
}

/// Writes samples again and again.
fn export(file: &Path, who: Who<'_>, mut rows: Vec<Row>, every: Duration) -> Result<()> {
    output::say(format_args!("writing {} every {:.1} s; Ctrl-C ends it\n", file.display(), every.as_secs_f64()));
    loop {
        prometheus::write(file, &rows)?;
        let until = Instant::now() + every;
        while Instant::now() < until {
            if effort::interrupted() || who.is_over(&rows) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(100).min(every));
        }
        rows = find::rows(who);
    }
}

fn every(args: &cli::Top) -> Duration {
    // Checked where options are read; more often than pages change is of no use.
    Duration::from_secs_f64(args.interval).max(Duration::from_millis(200))
}

/// The table, or what to do where there is nothing to show; below it, who else holds memory.
fn text(who: Who<'_>, rows: &[Row], others: &Held, columns: usize, hint: &str) -> String {
    let table = match rows {
        [] => format!("{}{hint}\n", who.nobody()),
        _ => table::table(rows, columns, hint),
    };
    table + &others::text(others, columns)
}

/// Writes all at once, so that nobody sees half of it.
fn put(bytes: &[u8]) -> Result<()> {
    output::print_with(|to| to.write_all(bytes)).map(drop)
}
