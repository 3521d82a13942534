//! Random programs against stock: how near the worst come to each bound, as a table, and as the run that docs/worst.md is held to.
//!
//! usage: programs COUNT [SEED [FILE]]

use std::collections::BTreeMap;
use std::io::Write;

use pinbuddy_replay::programs::{Verdict, drawn};
use serde_json::{Map, Value, json};

type Figure = fn(&Verdict) -> f64;

const FIGURES: [(&str, Figure); 6] = [
    ("pinned", |it| it.pinned),
    ("pins more", |it| it.pins as f64),
    ("bytes pinned", |it| it.bytes),
    ("waits", |it| it.waits),
    ("unpinning requests", |it| it.unpinning as f64),
    ("time", |it| it.time),
];

/// How a figure is spread over the programs of a row.
struct Spread {
    worst: f64,
    seed: u64,
    most: f64,
    many: f64,
    median: f64,
}

/// Of verdicts with their seeds, which there are some of.
fn spread(verdicts: &mut [(Verdict, u64)], figure: Figure) -> Spread {
    verdicts.sort_by(|one, other| figure(&one.0).total_cmp(&figure(&other.0)));
    let last = verdicts.len() - 1;
    let at = |part: f64| figure(&verdicts[(last as f64 * part) as usize].0);
    Spread {
        worst: figure(&verdicts[last].0),
        seed: verdicts[last].1,
        most: at(0.999),
        many: at(0.99),
        median: at(0.5),
    }
}

fn main() -> Result<(), String> {
    let usage = "usage: programs COUNT [SEED [FILE]]";
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| args.get(at).map(|it| it.parse::<u64>().map_err(|_| usage));
    let count = number(0).ok_or(usage)??;
    let seed = number(1).unwrap_or(Ok(0))?;
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
    table += "\n|---|---|---|---|---|---|---|---|\n";
    let mut run = Map::new();
    for (row, mut verdicts) in rows {
        table += &format!("| {row} | {} |", verdicts.len());
        let mut figures = Map::from_iter([("number".to_owned(), json!(verdicts.len()))]);
        for (name, figure) in FIGURES {
            let it = spread(&mut verdicts, figure);
            table += &format!(" {:.2} ({}), {:.2}, {:.2}, {:.2} |", it.worst, it.seed, it.most, it.many, it.median);
            figures.insert(name.to_owned(), it.rounded());
        }
        table += "\n";
        // The document has these rows.
        if let Some(row) = row.strip_suffix(", all") {
            run.insert(row.to_owned(), figures.into());
        }
    }
    if let Some(file) = args.get(2) {
        let run = json!({"count": count, "first seed": seed, "programs": run});
        std::fs::write(file, format!("{run:#}\n")).map_err(|e| format!("{file}: {e}"))?;
    }
    // A pipe that closes early is no error.
    let _ = std::io::stdout().write_all(table.as_bytes());
    Ok(())
}

impl Spread {
    /// With as many decimals as anybody needs.
    fn rounded(&self) -> Value {
        let short = |it: f64| (it * 1e4).round() / 1e4;
        json!({
            "worst": short(self.worst),
            "seed of the worst": self.seed,
            "99.9th percentile": short(self.most),
            "99th percentile": short(self.many),
            "median": short(self.median),
        })
    }
}
