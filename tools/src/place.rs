//! `plan --instance`: places the blocks of a table, and compares that with allocators that do not know the future.

use std::fmt;
use std::io::BufReader;
use std::path::Path;

use anyhow::{Context as _, Result};
use pinbuddy_plan::{Block, Effort, Instance, check, solve};
use serde::Serialize;

use crate::baseline::{self, Baseline};
use crate::cli;
use crate::effort::{Ended, Limits, gap_percent, threads};
use crate::input::open;
use crate::input::table::Table;
use crate::output::{self, Output};
use crate::show;

/// What a placement came to. Sizes are in the table's units.
#[derive(Debug, Serialize)]
pub struct Placed {
    /// Blocks of the table.
    pub blocks: usize,
    /// The highest end.
    pub peak: u64,
    /// The most that lives at once.
    pub lower_bound: u64,
    /// No placement is lower: as `lower_bound`, or what exact search showed.
    pub proved_bound: u64,
    /// How far the peak is above `lower_bound`.
    pub gap_percent: f64,
    /// `lower_bound` over `peak`.
    pub efficiency: f64,
    /// How long the search took.
    pub seconds: f64,
    /// Why it ended.
    pub ended: Ended,
    /// What found it.
    pub by: &'static str,
    /// How many threads searched.
    pub threads: usize,
    /// What PyTorch's own allocator would have pinned; none where sizes are no bytes of any machine.
    pub stock: Option<Baseline>,
    /// What pinbuddy's engine would have pinned, with no plan.
    pub engine: Option<Baseline>,
}

/// The command.
pub fn run(file: &Path, args: &cli::Plan) -> Result<()> {
    let name = file.display();
    let out = Output::asked_for(args.out.as_deref(), &[file])?;
    let unread = || format!("there is no table {name} that can be read");
    let table = Table::read(BufReader::new(open::once(file).with_context(unread)?));
    let table = table.with_context(|| format!("{name} is no table of lifetimes"))?;
    let placed = place(&table.blocks, args);
    let (placed, offsets) = placed.with_context(|| format!("{name} cannot be placed"))?;
    if let Some(out) = &out {
        out.write(|to| table.write(&offsets, to))?;
    }
    output::answer(out.as_ref(), &placed, args.json)
}

/// Places blocks, within the limits of `args`.
pub fn place(blocks: &[Block], args: &cli::Plan) -> Result<(Placed, Vec<u64>)> {
    let instance = Instance::new(blocks.to_vec())?;
    let (lower_bound, threads) = (instance.lower_bound(), threads(args.threads));
    let limits = Limits::new(args.time_limit);
    let effort = Effort { joins: true, threads, stop: &|| limits.stop(), seen: &|peak| limits.seen(peak, lower_bound) };
    let solution = limits.watch(|| solve(&instance, effort));
    let seconds = limits.seconds();
    let peak =
        check(blocks, None, &solution.offsets).context("the placement found is none, which is a defect of pinbuddy")?;
    let others = baseline::of_blocks(blocks, lower_bound);
    let [stock, engine] = others.map_or([None, None], |it| it.map(Some));
    let placed = Placed {
        blocks: blocks.len(),
        peak,
        lower_bound,
        proved_bound: solution.bound,
        gap_percent: gap_percent(peak, lower_bound),
        efficiency: baseline::ratio(lower_bound, peak),
        seconds,
        ended: limits.ended(peak <= solution.bound),
        by: solution.by,
        threads,
        stock,
        engine,
    };
    Ok((placed, solution.offsets))
}

impl fmt::Display for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ended = match self.ended {
            Ended::Optimal => "nothing better is possible",
            Ended::Done => "nothing more is tried",
            Ended::TimeLimit => "the time was up",
            Ended::Interrupted => "interrupted",
        };
        let (peak, bound) = (show::bytes(self.peak), show::bytes(self.lower_bound));
        let blocks = show::count(self.blocks as u64, "block");
        let gap = self.gap_percent;
        writeln!(f, "{blocks} in {peak}, {gap:.2} % above the lower bound of {bound}")?;
        let threads = show::count(self.threads as u64, "thread");
        let (by, seconds) = (self.by, self.seconds);
        writeln!(f, "  found by {by} in {seconds:.2} s with {threads}: {ended}")?;
        let engine = "pinbuddy without a plan";
        let others = [("stock", &self.stock), (engine, &self.engine)];
        for (name, it) in others {
            let Some(it) = it else { continue };
            let (peak, gap) = (show::bytes(it.peak), it.gap_percent);
            writeln!(f, "  {name} pins {peak}, {gap:.2} % above it")?;
        }
        Ok(())
    }
}
