//! `trace`: writes workloads to files, for replays.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use pinbuddy_events::trace::Writer;
use pinbuddy_replay::workload::{Sizes, WORKLOADS, Workload};

use crate::cli;
use crate::output::{self, Output};

/// The command.
///
/// # Errors
///
/// A file cannot be written.
pub fn run(args: &cli::Trace) -> Result<()> {
    if args.list {
        return output::print(&list());
    }
    fs::create_dir_all(&args.out).with_context(|| format!("{} cannot be made", args.out.display()))?;
    for name in &args.workloads {
        // The command line has checked the names.
        let workload = Workload::named(name).with_context(|| format!("no workload {name}"))?;
        let file = write(workload, args.made, &args.out)?;
        output::print(&format_args!("{}\n", file.display()))?;
    }
    Ok(())
}

/// One line per workload.
fn list() -> String {
    let width = WORKLOADS.iter().map(|it| it.name.len()).max().unwrap_or(0);
    let line = |it: &Workload| {
        let Workload { name, about, steps, .. } = it;
        let sizes = match it.sizes {
            Sizes::Fixed => "fixed sizes",
            Sizes::Vary => "sizes vary",
        };
        format!("{name:width$}  {steps:>5} steps, {sizes:11}  {about}\n")
    };
    WORKLOADS.iter().map(line).collect()
}

fn write(workload: &Workload, made: cli::Made, folder: &Path) -> Result<PathBuf> {
    let file = folder.join(format!("{}.jsonl", workload.name));
    Output::new(&file, &[])?.write(|to| {
        let mut writer = Writer::new(to)?;
        let steps = made.steps.unwrap_or(workload.steps);
        for event in workload.events(made.seed, steps) {
            writer.write(&event)?;
        }
        writer.finish().map(drop)
    })?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list() {
        insta::assert_snapshot!(list());
    }

    #[test]
    fn a_file_for_a_workload_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let workload = Workload::named("fixed-2.083gib").unwrap();
        let made = cli::Made { seed: 1, steps: None };
        let file = write(workload, made, folder.path()).unwrap();
        insta::assert_snapshot!(fs::read_to_string(&file).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
