//! Client programs with each of ten faults, beside stock: `crate::clients::faults`.
//!
//! `PINBUDDY_CLIENTS`, names with spaces between them, chooses some.

use std::env;

use anyhow::Result;

use super::Effort;
use super::row::Explored;
use crate::clients::faults::{self, Outcome};

/// The check.
pub fn run(_effort: Effort) -> Result<Explored> {
    let names = env::var("PINBUDDY_CLIENTS").unwrap_or_default();
    let names: Vec<String> = names.split_whitespace().map(str::to_owned).collect();
    let rows = faults::all(&names)?;
    let (mut clients, mut wrong) = (Vec::new(), Vec::new());
    let mut with_libraries = 0;
    for row in &rows {
        if !clients.contains(&row.client) {
            clients.push(row.client);
            with_libraries += u64::from(row.library.is_some());
        }
        eprintln!(
            "{:<20}{:<34}{:<44}{}",
            row.client, row.fault, row.stock, row.fork
        );
        if row.outcome == Outcome::Differs {
            wrong.push(format!("{} ({})", row.client, row.fault));
        }
    }
    let count = |wanted: &[Outcome]| {
        rows.iter()
            .filter(|it| wanted.contains(&it.outcome))
            .count() as u64
    };
    let explored = Explored::default()
        .figure("clients", clients.len() as u64)
        .figure("of these with a library", with_libraries)
        .figure("faults met", rows.len() as u64 - count(&[Outcome::NotMet]))
        .figure("survived", count(&[Outcome::Survived]))
        .figure("ended as stock", count(&[Outcome::AsStock]))
        .figure("differences, listed", count(&[Outcome::AsListed]))
        .figure("faults not met", count(&[Outcome::NotMet]))
        .note(clients.join(" "));
    Ok(match wrong.is_empty() {
        true => explored,
        false => explored.wrong(format!("not as with stock: {}", wrong.join(", "))),
    })
}
