//! `report`: a trace or snapshot in, a page to look at out; or the same for other programs.
//!
//! ```text
//!   recording  the file in memory: steps of a replay, and a row for each block
//!   observe    an allocator's model replayed on it; curve, map: what that looked like
//!   gaps       what of it was not live, and the largest free run
//!   lay        where segments and blocks of a snapshot were
//!   plan       a plan beside them
//!   device     the same of a device's memory
//!   nodes      memory of each NUMA node
//!   waits      where the run itself waited for the driver
//!   tables     what lived at the peak, sizes; who: who asked
//!   lab        many settings replayed, for a page where they can be changed
//!   page       all of it as one page; formats: as files for other programs
//! ```
//!
//! Knows what the crates of rust-core say, and decides nothing itself but what is left out of a picture.

mod curve;
mod device;
mod formats;
mod gaps;
mod lab;
mod lay;
mod map;
mod nodes;
mod observe;
mod page;
mod plan;
mod recording;
mod stack;
mod tables;
mod waits;
mod who;

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use pinbuddy_events::Whose;
use pinbuddy_plan::{Plan, Record};
use pinbuddy_replay::policy::Kind;
use pinbuddy_replay::policy::pinbuddy::Settings;
use pinbuddy_replay::replay;

use crate::advise::{self, Advice};
use crate::effort::{Limits, threads};
use crate::input::Input;
use crate::output::{self, Output};
use crate::plan::search;
use crate::{cli, show};
use curve::{Curve, FINE};
pub use page::{Allocator, Blocks, Compared, Report};
use recording::{Recording, Row};

/// The most blocks that the map shows.
const MOST_BLOCKS: usize = 100_000;

/// The most moments of one kind that are marked.
const MOST_MARKS: usize = 2_000;

/// The command.
pub fn run(args: &cli::Report) -> Result<()> {
    let begun = Instant::now();
    let out = output_of(args)?;
    let input = Input::open(&args.trace, args.device)?;
    let say = |what: &str| {
        if begun.elapsed() > Duration::from_secs(2) {
            let seconds = begun.elapsed().as_secs_f64();
            output::say(format_args!("{seconds:4.0} s  {what}\n"));
        }
    };
    let recording = recording::read(&input)?;
    input.say_cut_off();
    if recording.rows.is_empty() {
        bail!("{} has no request, so there is nothing to show", input.name);
    }
    if let Some(format) = formats::plain(args.format) {
        let callers = formats::Callers(input.stacks());
        out.write(|to| format(to, &recording, &callers))?;
    } else {
        let report = report(&input, &recording, args, &say)?;
        out.write(|to| match args.format {
            cli::Format::Json => Ok(serde_json::to_writer(to, &report)?),
            _ => report.write_page(to),
        })?;
    }
    let requests = show::count(recording.rows.len() as u64, "request");
    let live = show::bytes(tables::peak(&recording.rows).1);
    let (name, seconds) = (&out.name, begun.elapsed().as_secs_f64());
    let mut summary = format!("{name}: {requests}, at most {live} live, in {seconds:.1} s\n");
    if let Some(waited) = waits::all(&recording) {
        summary += &format!("the run itself {waited}\n");
    }
    output::summary(Some(&out), &summary)
}

/// Where it is written to: beside the trace, or what comes from a pipe goes into one.
fn output_of(args: &cli::Report) -> Result<Output> {
    let path = match &args.out {
        Some(out) => out.clone(),
        None if output::has_a_folder(&args.trace) => args.format.beside(&args.trace),
        None if !std::io::stdout().is_terminal() => "-".into(),
        None => bail!("{} has no folder for the report: --out FILE", args.trace.display()),
    };
    let others = [&args.plan, &args.compare].into_iter().flatten();
    let inputs = others.chain([&args.trace]).map(PathBuf::as_path);
    let inputs: Vec<&Path> = inputs.collect();
    Output::new(&path, &inputs)
}

fn report(input: &Input, recording: &Recording, args: &cli::Report, say: &dyn Fn(&str)) -> Result<Report> {
    let (peak_at, peak) = tables::peak(&recording.rows);
    let (live, waiting) = live(recording);
    let shown = shown(&recording.rows);
    let (allocators, advice) = judged(input, recording, args, &shown, say)?;
    say("trying settings");
    let lab = (input.whose() == Whose::Host).then(|| {
        let limits = Limits::new(args.time_limit);
        lab::explore(&recording.steps, threads(args.threads), &|| limits.stop())
    });
    Ok(Report {
        version: env!("CARGO_PKG_VERSION"),
        name: input.name.clone(),
        device: number(input.whose()),
        about: input.about.clone(),
        threshold: input.threshold(),
        end: recording.end,
        events: recording.events,
        requests: recording.rows.len() as u64,
        lost: recording.lost,
        cut_after: recording.cut_after,
        cut_off: input.cut_off(),
        peak_at: peak_at.0,
        peak,
        iterations: some(&recording.iterations),
        iterations_in_all: recording.iterations.len() as u64,
        clears: some(&recording.clears),
        waits: waits::waits(recording),
        run_peak: recording.run_peak(),
        nodes: recording.nodes.show(),
        live,
        waiting,
        allocators,
        as_recorded: input.entries().map(|it| lay::lay(it, recording, &shown)),
        blocks: blocks(&recording.rows, &shown),
        at_peak: tables::at_peak(recording, peak_at),
        who: input.stacks().and_then(|(stacks, of)| who::asked(stacks, &of, &recording.rows, &shown, peak_at)),
        sizes: tables::sizes(recording, peak_at),
        advice,
        lab,
        compare: (args.compare.as_deref()).map(|path| compared(path, input.whose())).transpose()?,
    })
}

/// The models of allocators, a plan beside them, and what it is best to do.
fn judged(
    input: &Input,
    recording: &Recording,
    args: &cli::Report,
    shown: &[usize],
    say: &dyn Fn(&str),
) -> Result<(Vec<Allocator>, Option<Advice>)> {
    say("replaying allocators");
    if let Whose::Device(number) = input.whose() {
        return Ok((device::allocators(input, number, recording, args)?, None));
    }
    let mut allocators = allocators(recording, input.threshold(), Some(shown));
    say("looking for a plan");
    let plan = match &args.plan {
        Some(file) => plan::of_file(file, Plan::read)?,
        None => search(&recording.record, args.time_limit, args.threads),
    };
    allocators.push(plan::planned(&plan, recording, shown));
    say("looking for advice");
    // Advice is about the plan that would be made of the whole file.
    let is_its_own = args.plan.is_none() && recording.cut_after.is_none();
    let mut look = |record: &Record| match is_its_own {
        true => plan.clone(),
        false => search(record, args.time_limit, args.threads),
    };
    Ok((allocators, Some(advise::advise(input, &mut look)?)))
}

fn number(whose: Whose) -> Option<u32> {
    match whose {
        Whose::Host => None,
        Whose::Device(device) => Some(device),
    }
}

/// Another file, as far as it is compared.
fn compared(path: &Path, whose: Whose) -> Result<Compared> {
    let input = Input::open(path, number(whose))?;
    let recording = recording::read(&input)?;
    input.say_cut_off();
    if input.whose() != whose {
        bail!(
            "{} has no pinned memory, which it is to be compared with: name a device of both with --device N",
            input.name
        );
    }
    Ok(Compared {
        name: input.name.clone(),
        end: recording.end,
        requests: recording.rows.len() as u64,
        peak: tables::peak(&recording.rows).1,
        waits: waits::all(&recording),
        live: live(&recording).0,
        allocators: match whose {
            Whose::Host => allocators(&recording, input.threshold(), None),
            Whose::Device(_) => Vec::new(),
        },
    })
}

/// Models that do not know the future; with maps of `shown`.
fn allocators(recording: &Recording, threshold_bytes: u64, shown: Option<&[usize]>) -> Vec<Allocator> {
    let kinds = [
        ("stock", Kind::Stock),
        ("#181094", Kind::Buddy181094),
        ("pinbuddy", Kind::Pinbuddy),
        ("pinbuddy, exact growth", Kind::PinbuddyExact),
    ];
    let settings = Settings { threshold_bytes, ..Settings::default() };
    let one = |(name, kind)| {
        let mut run = replay::on(kind, settings);
        let (seen, map) = match shown {
            Some(shown) if kind != Kind::Buddy181094 => {
                let (seen, map) = observe::observe_with_map(run.as_mut(), recording, shown);
                (seen, Some(map))
            }
            _ => (observe::observe(run.as_mut(), &recording.steps), None),
        };
        Allocator {
            name,
            pinned: seen.pinned,
            waits: Some(seen.waits),
            peak: seen.last.peak,
            waited: Some(seen.last.misses),
            calls: seen.last.calls,
            stopped: seen.stopped,
            map,
        }
    };
    kinds.into_iter().map(one).collect()
}

/// Live as requested, and of that what was freed and waits for a stream.
fn live(recording: &Recording) -> (Curve, Curve) {
    let (mut live, mut waiting) = (Curve::new(FINE), Curve::new(FINE));
    tables::live(&recording.rows, &mut |(at, _), bytes| {
        if at <= recording.end {
            live.push(at, bytes);
        }
    });
    tables::sum(&recording.rows, |it| it.freed, &mut |at, bytes| {
        if at <= recording.end {
            waiting.push(at, bytes);
        }
    });
    (live, waiting)
}

/// The rows that maps show: those with most bytes for longest, in their order.
fn shown(rows: &[Row]) -> Vec<usize> {
    let mut shown: Vec<usize> = (0..rows.len()).collect();
    if rows.len() > MOST_BLOCKS {
        let area = |row: &usize| {
            let row = rows[*row];
            u128::from(row.bytes) * u128::from(row.until - row.from + 1)
        };
        shown.select_nth_unstable_by_key(MOST_BLOCKS, |row| std::cmp::Reverse(area(row)));
        shown.truncate(MOST_BLOCKS);
        shown.sort_unstable();
    }
    shown
}

fn blocks(rows: &[Row], shown: &[usize]) -> Blocks {
    let column = |of: fn(&Row) -> u64| shown.iter().map(move |it| of(&rows[*it]));
    let since = |from: u64, to: u64| match to {
        u64::MAX => -1,
        _ => i64::try_from(to.saturating_sub(from)).unwrap_or(i64::MAX),
    };
    let signed = |of: &dyn Fn(&Row) -> i64| shown.iter().map(|it| of(&rows[*it])).collect();
    Blocks {
        of: rows.len(),
        line: curve::differences(column(|it| it.line)),
        bytes: column(|it| it.bytes).collect(),
        from: curve::differences(column(|it| it.from)),
        freed: signed(&|it| since(it.from, it.freed)),
        until: signed(&|it| since(it.freed, it.until)),
        thread: shown.iter().map(|it| rows[*it].thread).collect(),
        stream: signed(&|it| it.stream.map_or(-1, i64::from)),
    }
}

/// No more than can be told apart.
fn some(moments: &[u64]) -> Vec<u64> {
    let each = moments.len().div_ceil(MOST_MARKS).max(1);
    moments.iter().copied().step_by(each).collect()
}
