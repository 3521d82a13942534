//! Who else holds memory that the kernel cannot take back, as lines below the table. Knows no page of pinbuddy's.
//!
//! Invariant: no line is wider than asked.

use std::path::Path;

use pinbuddy_machine::{Files, Held};

use super::row::Row;
use super::table::size;
use crate::show;

/// No more processes have a line.
const MOST: usize = 10;

/// All that hold memory and have no row.
pub(super) fn read(rows: &[Row]) -> Held {
    let shown = rows.iter().filter(|it| it.page().is_some());
    let shown: Vec<u32> = shown.map(|it| it.pid).collect();
    Held::read(&Files::below(Path::new("/")), &shown)
}

/// A line for each; nothing where nobody holds any.
pub(super) fn text(held: &Held, columns: usize) -> String {
    let mut lines = Vec::new();
    if !held.processes.is_empty() {
        let of_all = |bytes: Option<u64>| bytes.map_or_else(|| "unknown".to_owned(), size);
        let (mlocked, unevictable) = (of_all(held.mlocked_bytes), of_all(held.unevictable_bytes));
        let head = format!("# others; the whole machine: {mlocked} mlocked, {unevictable} unevictable");
        lines.extend(show::wrapped(&head, columns, ""));
        let head = ["PID", "PINBUDDY", "LOCKED", "PINNED", "SHARED", "USER"].map(str::to_owned);
        lines.push(line(&head, "COMMAND"));
    }
    for it in held.processes.iter().take(MOST) {
        let (own, locked) = (size(it.pinbuddy_bytes), size(it.locked_bytes));
        let (pinned, shared) = (size(it.pinned_bytes), size(it.shared_bytes));
        let user = it.user.map_or_else(String::new, |it| it.to_string());
        let cells = [it.pid.to_string(), own, locked, pinned, shared, user];
        lines.push(line(&cells, &it.command));
    }
    if let more @ 1.. = held.processes.len().saturating_sub(MOST) {
        lines.push(format!("{more} more"));
    }
    if held.unreadable > 0 {
        let who = show::count_of(held.unreadable as u64, "process", "processes");
        lines.push(format!("{who} of other users: not readable"));
    }
    let cut = |line: &String| line.chars().take(columns).collect::<String>() + "\n";
    lines.iter().map(cut).collect()
}

fn line([pid, own, locked, pinned, shared, user]: &[String; 6], command: &str) -> String {
    format!("{pid:>7}  {own:>8}  {locked:>8}  {pinned:>8}  {shared:>8}  {user:>5}  {command}")
}

#[cfg(test)]
mod tests {
    use pinbuddy_machine::Holder;

    use super::*;

    fn holder(pid: u32) -> Holder {
        Holder {
            pid,
            user: Some(1000),
            command: "python train.py --with many words".to_owned(),
            locked_bytes: u64::from(pid) << 20,
            ..Holder::default()
        }
    }

    #[test]
    fn lines_are_few_and_fit_and_there_is_none_where_nobody_holds_any() {
        let mut held = Held::default();
        assert_eq!(text(&held, 80), "");
        held.unreadable = 1;
        assert_eq!(text(&held, 80), "1 process of other users: not readable\n");
        held.processes = (1..=12).rev().map(holder).collect();
        let all = text(&held, 80);
        let lines: Vec<&str> = all.lines().collect();
        insta::assert_snapshot!([lines[0], lines[2], lines[12]].join("\n"), @r"
        # others; the whole machine: unknown mlocked, unknown unevictable
             12       0 B  12.0 MiB       0 B       0 B   1000  python train.py --with m
        2 more
        ");
        for width in 20..120 {
            let all = text(&held, width);
            assert!(all.lines().all(|it| it.chars().count() <= width), "{width}");
        }
    }
}
