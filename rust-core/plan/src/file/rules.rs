//! What must hold of a plan's numbers.

use std::fmt::Display;

use super::{Error, GRANULE, Lane, MOST_LANES, MOST_REGION, MOST_REGIONS, Plan, Slot};

/// The longest name of a version.
const MOST_NAME: usize = 256;

/// The first place where `plan` is none.
pub(super) fn check(plan: &Plan) -> Result<(), Error> {
    let made_for = &plan.made_for;
    require(made_for.torch.len() <= MOST_NAME, || {
        ("torch", made_for.torch.len(), format!("a name of {MOST_NAME} bytes at most"))
    })?;
    require(made_for.rank < made_for.world_size.max(1), || {
        let most = format!("a number below world_size, {}", made_for.world_size);
        ("rank", made_for.rank, most)
    })?;
    let facts = &plan.facts;
    for (name, number) in [
        ("facts.gap_percent", facts.gap_percent),
        ("facts.efficiency", facts.efficiency),
        ("facts.seconds", facts.seconds),
    ] {
        require((0.0..=1e9).contains(&number), || (name, number, "a number from 0 to 1000000000".into()))?;
    }
    count("regions", plan.regions.len(), MOST_REGIONS)?;
    count("lanes", plan.lanes.len(), MOST_LANES)?;
    for (index, &bytes) in plan.regions.iter().enumerate() {
        require(bytes > 0 && bytes.is_multiple_of(GRANULE) && bytes <= MOST_REGION, || {
            (format!("region {index}"), bytes, format!("a multiple of {GRANULE} up to {MOST_REGION}"))
        })?;
    }
    let classes = plan.classes;
    require(classes == 0 || classes.is_power_of_two() && classes <= 1024, || {
        ("classes", classes, "0 or a power of two up to 1024".into())
    })?;
    for (index, slot) in plan.slots.iter().enumerate() {
        in_region(plan, index, slot)?;
    }
    for (index, lane) in plan.lanes.iter().enumerate() {
        named(plan, index, lane)?;
    }
    Ok(())
}

fn in_region(plan: &Plan, index: usize, slot: &Slot) -> Result<(), Error> {
    let region = usize::try_from(slot.region).unwrap_or(usize::MAX);
    let Some(&length) = plan.regions.get(region) else {
        return Err(Error::Value {
            place: format!("the region of slot {index}"),
            found: slot.region.to_string(),
            expected: format!("below {}, the number of regions", plan.regions.len()),
        });
    };
    require(slot.bytes > 0 && slot.bytes.is_multiple_of(GRANULE) && slot.bytes <= length, || {
        let most = format!("a multiple of {GRANULE} up to {length}, its region's length");
        (format!("the length of slot {index}"), slot.bytes, most)
    })?;
    let last = length - slot.bytes;
    require(slot.offset.is_multiple_of(GRANULE) && slot.offset <= last, || {
        let most = format!("a multiple of {GRANULE} up to {last}, where it ends with its region");
        (format!("the offset of slot {index}"), slot.offset, most)
    })
}

fn named(plan: &Plan, index: usize, lane: &Lane) -> Result<(), Error> {
    let slots = plan.slots.len();
    let (turns, steps) = (lane.turns as usize, lane.period.len());
    require(turns > 0 && steps.is_multiple_of(turns), || {
        let whole = format!("a number that {steps}, the length of its period, is a multiple of");
        (format!("lane {index}'s number of turns"), turns, whole)
    })?;
    let once = lane.prologue.len() + steps / turns;
    let wrong = lane.clears.iter().find(|&&step| step as usize > once);
    require(wrong.is_none(), || {
        let found = wrong.copied().unwrap_or_default();
        let place = format!("a step before which lane {index} empties the cache");
        (place, found, format!("{once} at most, the steps of its prologue and an iteration"))
    })?;
    for (part, entries) in [("prologue", &lane.prologue), ("period", &lane.period)] {
        let wrong = entries.iter().position(|&slot| slot as usize >= slots);
        if let Some(entry) = wrong {
            return Err(Error::Value {
                place: format!("entry {entry} of lane {index}'s {part}"),
                found: entries[entry].to_string(),
                expected: format!("below {slots}, the number of slots"),
            });
        }
    }
    Ok(())
}

fn count(name: &'static str, found: usize, most: usize) -> Result<(), Error> {
    require(found <= most, || (format!("the number of {name}"), found, format!("{most} at most")))
}

fn require<P: Into<String>, F: Display>(holds: bool, otherwise: impl FnOnce() -> (P, F, String)) -> Result<(), Error> {
    if holds {
        return Ok(());
    }
    let (place, found, expected) = otherwise();
    Err(Error::Value { place: place.into(), found: found.to_string(), expected })
}
