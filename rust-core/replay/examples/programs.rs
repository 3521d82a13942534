//! Random programs against stock: how near the worst come to each bound, as a table for the docs.
//!
//! usage: programs COUNT [SEED]

use std::collections::BTreeMap;
use std::io::Write;

use pinbuddy_replay::programs::{Verdict, drawn};

type Figure = fn(&Verdict) -> f64;

const FIGURES: [(&str, Figure); 5] = [
    ("pinned", |it| it.pinned),
    ("pins more", |it| it.pins as f64),
    ("bytes pinned", |it| it.bytes),
    ("waits", |it| it.waits),
    ("time", |it| it.time),
];

fn main() -> Result<(), String> {
    let mut args = std::env::args().skip(1).map(|it| it.parse::<u64>());
    let usage = "usage: programs COUNT [SEED]";
    let (Some(Ok(count)), seed) = (args.next(), args.next().unwrap_or(Ok(0))) else {
        return Err(usage.to_owned());
    };
    let seed = seed.map_err(|_| usage)?;
    let mut rows: BTreeMap<String, Vec<(Verdict, u64)>> = BTreeMap::new();
    for number in seed..seed + count {
        let case = drawn(number);
        let verdict = case.judge(false)?;
        let budget = if case.is_short() { "short" } else { "plenty" };
        for sizes in ["all", case.shape.sizes.name()] {
            let row = format!("{:?}, budget {budget}, {sizes}", case.setting);
            rows.entry(row).or_default().push((verdict, number));
        }
    }
    let mut table = String::from("| programs | number |");
    for (name, _) in FIGURES {
        table += &format!(" {name}: worst (seed), 99.9th, 99th, median |");
    }
    table += "\n|---|---|---|---|---|---|---|\n";
    for (row, mut verdicts) in rows {
        table += &format!("| {row} | {} |", verdicts.len());
        for (_, figure) in FIGURES {
            verdicts.sort_by(|one, other| figure(&one.0).total_cmp(&figure(&other.0)));
            let last = verdicts.len() - 1;
            let at = |part: f64| figure(&verdicts[(last as f64 * part) as usize].0);
            let (worst, number) = verdicts[last];
            table += &format!(
                " {:.2} ({number}), {:.2}, {:.2}, {:.2} |",
                figure(&worst),
                at(0.999),
                at(0.99),
                at(0.5)
            );
        }
        table += "\n";
    }
    // A pipe that closes early is no error.
    let _ = std::io::stdout().write_all(table.as_bytes());
    Ok(())
}
