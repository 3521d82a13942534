//! Random programs against stock: how near the worst of them come to each bound, as a table for the
//! docs.
//!
//! usage: programs COUNT [SEED]

use std::collections::BTreeMap;
use std::io::Write;

use pinbuddy_replay::GIB;
use pinbuddy_replay::programs::{Case, Cell, Setting, Shape, Sizes, Verdict};
use pinbuddy_replay::workload::Random;
use pinbuddy_replay::world::Machine;

/// The same programs on every machine.
struct Programs(Random);

impl Programs {
    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[(self.0.draw() % of.len() as u64) as usize]
    }

    fn case(&mut self) -> Case {
        let shape = Shape {
            sizes: self.one(&Sizes::ALL),
            live: self.one(&[GIB / 2, 2 * GIB, 8 * GIB, 16 * GIB]),
            threads: self.one(&[1, 1, 1, 2, 4]),
            holders: self.one(&[0, 0, 10, 50]),
            clears: self.one(&[0, 0, 0, 100, 10]),
            computes: self.one(&[0, 100, 3000, 20000]),
        };
        let cell = |it: u64| -> Cell { (it as u16, (it >> 16) as u8, (it >> 24) as u8) };
        let length = self.0.draw() % 800 + 1;
        let tape = (0..length).map(|_| cell(self.0.draw())).collect();
        // Nanoseconds a mebibyte: of a fast machine, and of a slow one.
        let pace = self.one(&[100_000, 500_000]);
        let machine = Machine {
            fill: pace * 6 / 10,
            register: pace * 4 / 10,
            unpin: pace / 5,
            behind: self.one(&[1, 3, 10, 100]),
            budget: self.one(&[u64::MAX, u64::MAX, u64::MAX, shape.live, shape.live / 2, 0]),
        };
        Case {
            shape,
            tape,
            machine,
            setting: self.one(&Setting::ALL),
        }
    }
}

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
        let case = Programs(Random::new(number * 7919)).case();
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
