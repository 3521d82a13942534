//! Who asked for memory, where a snapshot has stacks of calls.

use std::collections::HashMap;

use pinbuddy_snapshot::{Call, Stacks};
use serde::Serialize;

use super::recording::Row;
use super::tables::{When, lives};

/// Calls of a stack that are shown.
const MOST_CALLS: usize = 16;
/// Rows of the table.
const MOST_ROWS: usize = 16;

/// Who asked for what.
#[derive(Debug, Serialize)]
pub struct Who {
    /// Stacks as texts, a call a line, the innermost first.
    pub stacks: Vec<String>,
    /// Of each of the page's blocks: 0 if nobody knows, else one more than the number of its stack.
    pub blocks: Vec<u32>,
    /// What lived at the peak, by who asked.
    pub at_peak: Vec<AtPeak>,
}

/// What one place in a program asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AtPeak {
    /// The innermost call outside of torch; none for all other places together.
    pub place: Option<String>,
    /// How many blocks.
    pub blocks: u64,
    /// Their bytes together.
    pub total: u64,
}

/// Of these rows, each a request in the order of `stack_of`. None where no request has a stack.
pub(super) fn asked(
    stacks: &Stacks,
    stack_of: &[Option<u32>],
    rows: &[Row],
    shown: &[usize],
    peak_at: When,
) -> Option<Who> {
    let of = |row: usize| stack_of.get(row).copied().flatten();
    // Equal stacks may have several numbers.
    let mut known: HashMap<u32, u32> = HashMap::new();
    let mut numbers: HashMap<String, u32> = HashMap::new();
    let mut texts = Vec::new();
    let blocks = shown.iter().map(|row| {
        let Some(stack) = of(*row) else { return 0 };
        *known.entry(stack).or_insert_with(|| {
            let text = text(stacks, stack);
            *numbers.entry(text.clone()).or_insert_with(|| {
                texts.push(text);
                u32::try_from(texts.len()).unwrap_or(0)
            })
        })
    });
    let blocks: Vec<u32> = blocks.collect();
    let mut places: HashMap<Option<String>, AtPeak> = HashMap::new();
    for (number, row) in rows.iter().enumerate().filter(|it| lives(it.1, peak_at)) {
        let place = of(number).and_then(|it| place(stacks, it));
        let group = places.entry(place).or_default();
        group.blocks += 1;
        group.total += row.bytes;
    }
    let groups = places.into_iter().map(|(place, it)| AtPeak { place, ..it });
    let mut at_peak: Vec<AtPeak> = groups.collect();
    at_peak.sort_by(|one, other| (other.total, &one.place).cmp(&(one.total, &other.place)));
    if at_peak.len() > MOST_ROWS {
        let rest = at_peak.split_off(MOST_ROWS - 1);
        at_peak.push(AtPeak {
            place: None,
            blocks: rest.iter().map(|it| it.blocks).sum(),
            total: rest.iter().map(|it| it.total).sum(),
        });
    }
    (!texts.is_empty()).then_some(Who { stacks: texts, blocks, at_peak })
}

fn text(stacks: &Stacks, stack: u32) -> String {
    let mut calls: Vec<String> = stacks.calls(stack).take(MOST_CALLS).map(written).collect();
    if stacks.calls(stack).count() > MOST_CALLS {
        calls.push("…".to_owned());
    }
    calls.join("\n")
}

/// Where a program asked: the innermost function that has a name and is in no file of torch's, else the innermost call.
fn place(stacks: &Stacks, stack: u32) -> Option<String> {
    let own = |call: &Call<'_>| !call.function.starts_with('<') && !call.file.contains("/torch/") && call.line > 0;
    let call = stacks.calls(stack).find(own);
    call.or_else(|| stacks.calls(stack).next()).map(written)
}

fn written(call: Call<'_>) -> String {
    let Call { function, file, line } = call;
    // The folders next to the file tell files of one name apart.
    let start = file.rmatch_indices('/').nth(2).map_or(0, |it| it.0 + 1);
    match (file, line) {
        ("" | "??", _) => function.to_owned(),
        (_, 0) => format!("{function}, {}", &file[start..]),
        _ => format!("{function}, {}:{line}", &file[start..]),
    }
}
