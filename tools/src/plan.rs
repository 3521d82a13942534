//! `plan`: a trace or snapshot in, a plan out; and what allocators that do not know the future would have pinned.

pub mod device;
mod device_summary;
mod models;
mod summary;

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail};
use pinbuddy_events::Whose;
use pinbuddy_plan::device::DeviceRecord;
use pinbuddy_plan::file::MadeFor;
use pinbuddy_plan::file::device::DevicePlan;
use pinbuddy_plan::{Options, Plan, Record, Watch, plan_watched};
use pinbuddy_replay::replay::Outcome;

use crate::baseline::{self, Replays};
use crate::cli;
use crate::effort::{Limits, threads};
use crate::flow::{Beside, Lifetimes};
use pinbuddy_events::Op;
use pinbuddy_replay::step::Step;

use crate::input::Input;
use crate::output::{self, Output};
use crate::show;
use device_summary::DevicePlanned;
use summary::{Planned, Search};

/// The most events of a trace that are planned: half a KiB or so for each.
pub const MOST_EVENTS: u32 = 16_000_000;

/// What is known of a trace after one pass.
struct Read {
    /// What a plan is made from.
    record: Record,
    /// Requests below the threshold.
    left_out: u64,
    /// Of `baseline::runs`.
    outcomes: [Outcome; 2],
    /// The most that the run's own allocator had from the driver at once; 0 if the file does not say.
    run_peak: u64,
}

/// The command.
pub fn run(file: &Path, args: &cli::Plan) -> Result<()> {
    let out = Output::asked_for(args.out.as_deref(), &[file])?.map(Output::private);
    let input = Input::open(file, args.device)?;
    let made_for = made_for(&input, args)?;
    let written = out.as_ref().and_then(Output::path);
    if let Whose::Device(number) = input.whose() {
        let (read, (made, chosen), mut search) = searched(
            args,
            made_for,
            || device::read_for_plan(&input, number),
            |read, options, watch| read.record.plan_watched(options, watch),
        )?;
        let begun = Instant::now();
        let models = models::replay(&read.record, number, &made)?;
        search.reading_seconds += begun.elapsed().as_secs_f64();
        let [(_, chosen)] = &*chosen else { bail!("{} has memory of more than device {number}", input.name) };
        let planned = DevicePlanned::new(&made, &read, chosen, models, search, written);
        if let Some(out) = &out {
            if made.plans.is_empty() {
                bail!("no plan is made of {}. To do: {}", input.name, planned.instead());
            }
            out.write(|to| made.write(to))?;
        }
        return output::answer(out.as_ref(), &planned, args.json);
    }
    let threshold = made_for.threshold;
    let (read, mut plan, search) = searched(
        args,
        made_for,
        || read(&input, threshold),
        |read, options, watch| plan_watched(&read.record, options, watch),
    )?;
    plan.facts.seconds = search.seconds;
    if let Some(out) = &out {
        out.write(|to| plan.write(to))?;
    }
    let planned = Planned::new(&plan, &read, search, written);
    output::answer(out.as_ref(), &planned, args.json)
}

/// What is read, what is made of it within the time that is allowed, and how that went.
fn searched<R, M>(
    args: &cli::Plan,
    made_for: MadeFor,
    read: impl FnOnce() -> Result<R>,
    make: impl FnOnce(&R, &Options, Watch<'_>) -> M,
) -> Result<(R, M, Search)> {
    let begun = Instant::now();
    let read = read()?;
    let reading_seconds = begun.elapsed().as_secs_f64();
    let threads = threads(args.threads);
    let (limits, options) = (Limits::new(args.time_limit), options(made_for, threads));
    let made = limits.search(|watch| make(&read, &options, watch));
    let search = Search { seconds: limits.seconds(), reading_seconds, ended: limits.ended(false), threads };
    Ok((read, made, search))
}

/// A plan of this record, the best that is found within so many seconds.
pub fn search(record: &Record, seconds: f64, asked: Option<usize>) -> Plan {
    let limits = Limits::new(seconds);
    let options = options(MadeFor::default(), threads(asked));
    limits.search(|watch| plan_watched(record, &options, watch))
}

/// Plans of a device's memory, as [`search`] finds one.
pub fn search_device(record: &DeviceRecord, seconds: f64, asked: Option<usize>) -> DevicePlan {
    let limits = Limits::new(seconds);
    let options = options(MadeFor::default(), threads(asked));
    limits.search(|watch| record.plan_watched(&options, watch).0)
}

fn options(made_for: MadeFor, threads: usize) -> Options {
    Options { made_for, threads, ..Options::default() }
}

/// What the plan is for: as the user says, or else as the file says.
fn made_for(input: &Input, args: &cli::Plan) -> Result<MadeFor> {
    let about = &input.about;
    let torch = args.torch.clone().or_else(|| about.torch.clone());
    let on_device = input.whose() != Whose::Host;
    if on_device && args.threshold_mb.is_some() {
        bail!("plans of device memory find out their own threshold: leave out --threshold-mb");
    }
    let torch = torch.map(|it| it.split('+').next().unwrap_or_default().to_owned());
    if torch.is_none() && args.out.is_some() {
        bail!(
            "{} does not say which torch it is of, and a plan is for one version: --torch VERSION \
             (python -c 'import torch; print(torch.__version__)')",
            input.name
        );
    }
    let (rank, world_size) = about.rank.unwrap_or((0, 1));
    let threshold = args.threshold_mb.map(|it| u64::from(it) << 20);
    Ok(MadeFor {
        torch: torch.unwrap_or_default(),
        world_size: args.world_size.unwrap_or(world_size),
        rank: args.rank.unwrap_or(rank),
        threshold: match threshold {
            // The planner finds it out.
            _ if on_device => 0,
            Some(threshold) => threshold,
            None => input.planned_from(),
        },
    })
}

/// Reads a trace once: for a plan, and for the allocators that it is compared with.
fn read(input: &Input, threshold: u64) -> Result<Read> {
    let mut record = Record::new(MOST_EVENTS);
    let mut lifetimes = Lifetimes::new(threshold);
    let mut beside = Beside::new(threshold);
    let mut replays = Replays::new(baseline::runs(input.threshold()).into());
    let (mut full, mut has, mut run_peak) = (false, 0_u64, 0);
    let mut push = |event| full |= !record.push(event);
    input.each(&mut |item| {
        lifetimes.push(&item, &mut push);
        if !beside.has(&item)
            && let Some(step) = Step::of(&item)
        {
            replays.push(step);
        }
        match item.event.op {
            Op::SegmentAlloc { bytes } => has = has.saturating_add(bytes),
            Op::SegmentFree { bytes } => has = has.saturating_sub(bytes),
            _ => {}
        }
        run_peak = run_peak.max(has);
        Ok(())
    })?;
    lifetimes.end(&mut push);
    if full {
        bail!(
            "{} has more than {MOST_EVENTS} events, which is the most that are planned: record fewer steps",
            input.name
        );
    }
    input.say_cut_off();
    if record.is_empty() && lifetimes.left_out == 0 {
        bail!("{} has no request, so there is nothing to plan", input.name);
    }
    if record.is_empty() {
        bail!(
            "{} has no request of {} or more, which is the threshold: {} smaller ones are PyTorch's own; for a plan of \
             those too, --threshold-mb 0",
            input.name,
            show::bytes(threshold),
            lifetimes.left_out,
        );
    }
    let outcomes = replays.outcomes();
    Ok(Read { record, left_out: lifetimes.left_out, outcomes: [outcomes[0].clone(), outcomes[1].clone()], run_peak })
}
