//! The command lines of `trace` and `simulate`: no behaviour.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use pinbuddy_core::{Growth, WarmUp};
use pinbuddy_replay::policy::Kind;
use pinbuddy_replay::policy::pinbuddy::Settings;
use pinbuddy_replay::workload::WORKLOADS;

/// Options of `trace`.
#[derive(Debug, Args)]
#[command(
    after_help = "Each workload is one file of JSON lines; --list says what it is, and `pinbuddy explain docs/simulate.md` what they say."
)]
pub struct Trace {
    /// The workloads to write
    #[arg(value_parser = PossibleValuesParser::new(WORKLOADS.map(|it| it.name)), hide_possible_values = true)]
    #[arg(required_unless_present = "list", value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
    /// List the workloads
    #[arg(long)]
    pub list: bool,
    /// Seed and steps
    #[command(flatten)]
    pub made: Made,
    /// Where the traces go
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
}

/// How workloads are made.
#[derive(Clone, Copy, Debug, Args)]
pub struct Made {
    /// The seed of varying sizes: the same seed gives the same trace
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How many steps of a workload [default: its own number]
    #[arg(long, value_name = "N")]
    pub steps: Option<u32>,
}

/// Options of `simulate`.
#[derive(Debug, Args)]
#[command(
    after_help = "`pinbuddy explain docs/simulate.md` says what is measured, and what the keys of the JSON mean."
)]
pub struct Simulate {
    /// Files that `trace` wrote, or names of workloads (`pinbuddy trace --list`) [default: every
    /// workload]
    #[arg(value_name = "TRACE")]
    pub traces: Vec<String>,
    /// A policy to replay them on, any number of times [default: all of them]
    #[arg(long = "policy", value_name = "POLICY", value_parser = policies())]
    pub policies: Vec<Kind>,
    /// Device memory instead: generated trainings (TRACE names some of them) on the model of PyTorch's allocator, with
    /// a plan in front of it and without
    #[arg(long, conflicts_with_all = ["policies", "steps"])]
    pub device: bool,
    /// Seed and steps
    #[command(flatten)]
    pub made: Made,
    /// Print the results as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Settings of the policies
    #[command(flatten)]
    pub settings: Pinbuddy,
}

/// The settings of the policies pinbuddy and pinbuddy-exact.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Settings of pinbuddy, as the BUDDY_ variables of these names")]
pub struct Pinbuddy {
    /// Size of a block pinned ahead, in MiB
    #[arg(long, value_name = "N", default_value_t = 1024)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub block_size_mb: u32,
    /// How many blocks the warm-up pins; unset: as much as demand shows
    #[arg(long, value_name = "N")]
    pub block_count: Option<u16>,
    /// The smallest request that blocks serve, in MiB
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub threshold_mb: u32,
    /// When blocks are pinned ahead; pinbuddy-exact has `off`
    #[arg(long, value_name = "WARMUP", default_value = "background", value_parser = warm_ups())]
    pub warmup: WarmUp,
    /// What is pinned when nothing fits; pinbuddy-exact has `exact`
    #[arg(long, value_name = "GROWTH", default_value = "segment", value_parser = growths())]
    pub growth: Growth,
}

impl Pinbuddy {
    /// As the model takes them.
    pub fn settings(self) -> Settings {
        let bytes = |mib| u64::from(mib) << 20;
        Settings {
            block_bytes: bytes(self.block_size_mb),
            block_count: self.block_count.map(u64::from),
            threshold_bytes: bytes(self.threshold_mb),
            warm_up: self.warmup,
            growth: self.growth,
        }
    }
}

fn policies() -> impl TypedValueParser<Value = Kind> {
    let names = PossibleValuesParser::new(Kind::ALL.map(Kind::name));
    names.try_map(|name| Kind::named(&name).ok_or("no such policy"))
}

/// Values with what they mean, and what each is.
fn choices<T: Copy + Send + Sync + 'static, const N: usize>(
    all: [(&'static str, &'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    let values = all.map(|(name, help, _)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(values).try_map(move |name| {
        let found = all.iter().find(|it| it.0 == name);
        found.map(|it| it.2).ok_or("no such value")
    })
}

/// `BUDDY_WARMUP`.
fn warm_ups() -> impl TypedValueParser<Value = WarmUp> {
    let first = "By a thread, from the first request that finds no room";
    choices([
        ("background", first, WarmUp::Background),
        ("sync", "All of them by that request", WarmUp::Sync),
        ("off", "Never", WarmUp::Off),
    ])
}

/// `BUDDY_GROWTH`.
fn growths() -> impl TypedValueParser<Value = Growth> {
    let exact = "The request; half as long again, up to a block, once pins are ahead of stock's";
    choices([("segment", "Up to a block, as demand shows", Growth::Segment), ("exact", exact, Growth::Exact)])
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::{CommandFactory as _, Parser as _};

    use super::super::{Cli, Command};

    /// The help needs the defaults written down in this file.
    #[test]
    fn the_settings_of_pinbuddy_are_by_default_the_models_own() {
        let cli = Cli::try_parse_from(["pinbuddy", "simulate"]).unwrap();
        let Command::Simulate(args) = cli.command else {
            panic!("another command");
        };
        assert_eq!(args.settings.settings(), Default::default());
    }

    /// The help of a setting begins as the page's explanation of the BUDDY_ variable.
    #[test]
    fn settings_are_explained_as_on_their_page() {
        let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/variables.md")).unwrap();
        let mut cli = Cli::command();
        cli.build();
        let simulate = cli.find_subcommand("simulate").unwrap();
        let settings = |it: &&clap::Arg| it.get_help_heading().is_some();
        assert_eq!(simulate.get_arguments().filter(settings).count(), 5);
        for option in simulate.get_arguments().filter(settings) {
            let long = option.get_long().unwrap().to_uppercase().replace('-', "_");
            let start = format!("| `BUDDY_{long}` |");
            let row = page.lines().find(|it| it.starts_with(&start)).unwrap();
            let has = |text: String| assert!(row.contains(&text), "{text:?} is not in {row}");
            let help = option.get_help().unwrap().to_string();
            let first = help.split(';').next().unwrap_or_default();
            has(format!("| {}", lower(first)));
            for value in option.get_possible_values() {
                let help = value.get_help().unwrap().to_string();
                has(format!("`{}`: {}", value.get_name(), lower(&help)));
            }
        }
    }

    fn lower(text: &str) -> String {
        let (first, rest) = text.split_at(1);
        first.to_lowercase() + rest
    }
}
