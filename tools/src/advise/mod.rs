//! `advise`: what to set for the program that a trace is of, and what is wrong in it.
//!
//! Two passes: the first counts, so that the second can replay the trace with settings of the right size and knows
//! how long is long. Invariant: every finding has its evidence in the trace; without it there is no finding.

mod choices;
mod findings;
mod recommend;
mod text;
mod world;

use anyhow::{Result, bail};
use pinbuddy_events::Whose;
use pinbuddy_plan::{Plan, Record};
use pinbuddy_replay::policy::Kind;
use pinbuddy_replay::policy::pinbuddy::Settings;
use pinbuddy_replay::replay;
use serde::Serialize;

use crate::baseline::Replays;
use crate::cli;
use crate::flow::{Beside, Lifetimes};
use crate::input::Input;
use crate::output;
use crate::plan::{MOST_EVENTS, search};
use pinbuddy_replay::step::Step;

pub use choices::Choice;
pub use findings::Finding;
pub use recommend::Recommendation;
pub use text::Brief;
pub use world::Counts;
use world::World;

/// What is said of a trace.
#[derive(Debug, Serialize)]
pub struct Advice {
    /// The file, or the workload's name.
    pub trace: String,
    /// What there is in it.
    pub counts: Counts,
    /// What each choice would have pinned, and how often it would have waited.
    pub choices: Vec<Choice>,
    /// Which one to take.
    pub recommendation: Recommendation,
    /// What is wrong in the program.
    pub findings: Vec<Finding>,
}

/// The command.
pub fn run(args: &cli::Advise) -> Result<()> {
    let input = Input::open(&args.trace, args.device)?;
    let mut look = |record: &Record| search(record, args.time_limit, args.threads);
    let advice = advise(&input, &mut look)?;
    input.say_cut_off();
    if advice.counts.requests == 0 {
        let name = input.name;
        bail!("{name} has no request, so there is nothing to advise");
    }
    output::answer(None, &advice, args.json)
}

/// What there is to say of a trace of device memory: what is wrong. PyTorch's own allocator serves it, whatever is set.
fn of_a_device(input: &Input) -> Result<Advice> {
    let mut world = World::of(world::count(input, input.threshold())?);
    let mut watches = findings::of_a_device();
    input.each(&mut |item| {
        for watch in &mut watches {
            watch.see(&item, &world);
        }
        world.see(&item);
        Ok(())
    })?;
    Ok(Advice {
        trace: input.name.clone(),
        choices: Vec::new(),
        recommendation: recommend::of_a_device(&choices::plan_of(input)),
        findings: findings::found(&mut watches, &world),
        counts: world.counts,
    })
}

/// What there is to say of a trace; `plan` makes a plan of it.
///
/// # Errors
///
/// What is wrong with the trace, and where.
pub fn advise(input: &Input, plan: &mut dyn FnMut(&Record) -> Plan) -> Result<Advice> {
    if input.whose() != Whose::Host {
        return of_a_device(input);
    }
    let (threshold, planned_from) = (input.threshold(), input.planned_from());
    let mut world = World::of(world::count(input, threshold)?);
    let tries = choices::grid(&world.counts, input.about.torch.as_deref());
    let mut replays = Replays::new(tries.iter().map(choices::Try::run).collect());
    // What a plan leaves to stock.
    let mut rest = Replays::new(vec![replay::on(Kind::Stock, Settings::default())]);
    let mut beside = Beside::new(planned_from);
    let mut watches = findings::watches(&world.counts, &input.about);
    let (mut lifetimes, mut record) = (Lifetimes::new(planned_from), Record::new(MOST_EVENTS));
    let mut push = |event| {
        record.push(event);
    };
    input.each(&mut |item| {
        for watch in &mut watches {
            watch.see(&item, &world);
        }
        world.see(&item);
        lifetimes.push(&item, &mut push);
        let is_beside = beside.has(&item);
        if let Some(step) = Step::of(&item) {
            replays.push(step);
            if item.event.op.id().is_none() || is_beside {
                rest.push(step);
            }
        }
        Ok(())
    })?;
    lifetimes.end(&mut push);
    let outcomes = replays.outcomes();
    let tried = tries.into_iter().zip(&outcomes);
    let mut choices: Vec<Choice> = tried.map(|(it, outcome)| it.came_to(outcome)).collect();
    if !record.is_empty() && !record.is_full() {
        let plan = plan(&record);
        let rest = &rest.outcomes()[0];
        choices.push(choices::of_plan(&plan, &record, rest, &world.counts, &choices::plan_of(input)));
    }
    let recommendation = recommend::recommend(&choices, &world.counts);
    Ok(Advice {
        trace: input.name.clone(),
        choices,
        recommendation,
        findings: findings::found(&mut watches, &world),
        counts: world.counts,
    })
}
