//! Rows as text: numbers in columns, as many as there is room for, and a bar for each process below its numbers.
//!
//! Plain characters, so that it looks alike in every terminal, font and file. Invariant: no line is wider than asked.

use pinbuddy_live::{Budget, Counters, NodeUse, Page};

use super::row::Row;
use crate::show;

/// The least width in which anything is shown.
const LEAST: usize = 20;
/// Names are cut there.
const LONGEST_NAME: usize = 12;
const GAP: &str = "  ";

/// A column: its head, whether text is on the left, and its text for a process.
struct Column {
    head: &'static str,
    left: bool,
    text: fn(u32, &Page) -> String,
}

const fn column(head: &'static str, text: fn(u32, &Page) -> String) -> Column {
    let left = false;
    Column { head, left, text }
}

/// In the order in which they stand.
const COLUMNS: [Column; 11] = [
    column("PID", |pid, _| pid.to_string()),
    column("RANK", |_, it| {
        let rank = it.process.rank;
        rank.map_or(String::new(), |(rank, of)| format!("{rank}/{of}"))
    }),
    column("GPU", |_, it| {
        let device = it.process.device;
        device.map_or(String::new(), |it| it.to_string())
    }),
    Column { head: "PROGRAM", left: true, text: |_, it| it.process.program.chars().take(LONGEST_NAME).collect() },
    column("PINNED", |_, it| wide(it.counters.pinned)),
    column("PEAK", |_, it| wide(it.counters.peak_pinned)),
    column("LIVE", |_, it| wide(it.counters.live)),
    column("PENDING", |_, it| wide(it.counters.pending)),
    column("HITS", |_, it| hits(&it.counters)),
    column("WAITS", |_, it| it.counters.waits.to_string()),
    column("WAITED", |_, it| format!("{:.2} s", it.counters.waited as f64 / 1e9)),
];

/// The same, the most important first.
const IMPORTANT: [usize; 11] = [0, 4, 6, 8, 1, 7, 9, 10, 3, 5, 2];

/// A head, a legend, and two lines for each process; more where its memory is kept by NUMA node.
pub(super) fn table(rows: &[Row], columns: usize, hint: &str) -> String {
    let columns = columns.max(LEAST);
    let many = show::count_of(rows.len() as u64, "process", "processes");
    let mut lines = vec![format!("pinbuddy top: {many}{hint}")];
    let legend = "# live  + pending  - idle  . left of the budget";
    lines.extend(show::wrapped(legend, columns, ""));
    let shown = chosen(rows, columns);
    let heads: Vec<String> = shown.iter().map(|(it, _)| it.head.to_owned()).collect();
    if rows.iter().any(|it| it.page().is_some()) {
        lines.push(line(&shown, &heads));
    }
    for row in rows {
        if let Some(page) = row.page() {
            let cells = shown.iter().map(|(it, _)| (it.text)(row.pid, page));
            let cells: Vec<String> = cells.collect();
            lines.push(line(&shown, &cells));
            lines.push(bar(&page.counters, columns));
            lines.extend(nodes(&page.nodes, columns));
        }
        if let Some(remark) = row.remark() {
            let remark = format!("{}: {remark}", row.pid);
            lines.extend(show::wrapped(&remark, columns, "  "));
        }
    }
    let cut = |line: &String| line.chars().take(columns).collect::<String>() + "\n";
    lines.iter().map(cut).collect()
}

/// The columns that fit, with their widths.
fn chosen(rows: &[Row], columns: usize) -> Vec<(&'static Column, usize)> {
    let width = |it: &Column| {
        let wide = |row: &Row| Some((it.text)(row.pid, row.page()?).chars().count());
        rows.iter().filter_map(wide).max().unwrap_or(0)
    };
    let mut left = columns + GAP.len();
    let mut taken = Vec::new();
    for at in IMPORTANT {
        let column = &COLUMNS[at];
        let widest = width(column);
        let needs = widest.max(column.head.len()) + GAP.len();
        if widest > 0 && needs > left {
            break;
        }
        if widest > 0 {
            left -= needs;
            taken.push((at, needs - GAP.len()));
        }
    }
    taken.sort_unstable();
    let columns = taken.into_iter().map(|(at, width)| (&COLUMNS[at], width));
    columns.collect()
}

fn line(shown: &[(&Column, usize)], cells: &[String]) -> String {
    let pad = |((column, width), cell): (&(&Column, usize), &String)| match column.left {
        true => format!("{cell:<width$}"),
        false => format!("{cell:>width$}"),
    };
    let cells: Vec<String> = shown.iter().zip(cells).map(pad).collect();
    cells.join(GAP).trim_end().to_owned()
}

/// What is pinned, against the budget.
fn bar(of: &Counters, columns: usize) -> String {
    let (whole, caption) = match of.budget {
        Budget::Bytes(budget) => {
            let percent = 100.0 * of.pinned as f64 / budget.max(1) as f64;
            let caption = format!(" {percent:.0} % of {}", size(budget));
            (budget.max(of.pinned), caption)
        }
        Budget::Unlimited => (of.peak_pinned.max(of.pinned), " no limit".to_owned()),
        Budget::Unknown => (of.peak_pinned.max(of.pinned), " no limit yet".to_owned()),
    };
    let width = columns.saturating_sub(caption.len() + 4).max(4);
    // Sums are rounded, so that parts add up.
    let cells = |bytes: u64| {
        let cells = u128::from(bytes) * width as u128 + u128::from(whole / 2);
        cells.checked_div(u128::from(whole)).unwrap_or(0) as usize
    };
    let (live, pending) = (cells(of.live), cells(of.live + of.pending));
    let pinned = cells(of.pinned);
    let sign = |at: usize| match at {
        at if at < live => '#',
        at if at < pending => '+',
        at if at < pinned => '-',
        _ => '.',
    };
    format!("  [{}]{caption}", (0..width).map(sign).collect::<String>())
}

/// What serves the devices of each NUMA node.
fn nodes(of: &[NodeUse], columns: usize) -> Vec<String> {
    let text = |it: &NodeUse| {
        let (pinned, used) = (size(it.pinned), size(it.used));
        format!("node {}: {pinned}, {used} in use", it.node)
    };
    if of.is_empty() {
        return Vec::new();
    }
    let all: Vec<String> = of.iter().map(text).collect();
    let lines = show::wrapped(&all.join("; "), columns - 2, "");
    lines.iter().map(|it| format!("  {it}")).collect()
}

/// A size as wide as the widest.
fn wide(bytes: u64) -> String {
    format!("{:>8}", size(bytes))
}

/// Three digits and a unit.
pub(super) fn size(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let units = units.map(|(power, name)| (1_u64 << power, name));
    // What would be 1000 or more is a fraction of the next unit.
    let Some((unit, name)) = units.iter().find(|(unit, _)| bytes >= unit / 1024 * 1000) else {
        return format!("{bytes} B");
    };
    let value = bytes as f64 / *unit as f64;
    let digits = match value {
        0.0..9.995 => 2,
        9.995..99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {name}")
}

fn hits(of: &Counters) -> String {
    // Never 100 % where something missed.
    let cut = |rate: f64| format!("{:.1} %", (rate * 1000.0).floor() / 10.0);
    of.hit_rate().map_or("-".to_owned(), cut)
}

#[cfg(test)]
mod tests;
