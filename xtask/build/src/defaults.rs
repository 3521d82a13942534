//! The defaults that travel in a wheel: `--default NAME=VALUE`, as a file beside the library.
//!
//! A file, and nothing compiled in: one library, tested once, serves all defaults. Invariants: a program would refuse
//! no value in it, since its own rules judge them here (`pinbuddy-config`); wheels with other defaults have another
//! version, so that pip replaces one by the other and none has another's name. So have wheels with other links.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::links::{self, Links};
use pinbuddy_config::{BESIDE_LIBRARY, defaults};
use xtask_support::hash::Digest;
use xtask_support::refusal::refuse;
use xtask_wheel::writer::NewFile;

/// Values by their variables' names.
pub type Defaults = BTreeMap<String, String>;

/// What was given on the command line.
pub fn parse(given: &[impl AsRef<str>]) -> Result<Defaults> {
    let mut values = Defaults::new();
    for pair in given.iter().map(AsRef::as_ref) {
        let Some((name, value)) = pair.split_once('=') else {
            return Err(refuse(format!("--default {pair} sets nothing"))
                .expected("NAME=VALUE, for instance BUDDY_LOG=info")
                .into());
        };
        if let Some(before) = values.insert(name.to_owned(), value.to_owned()) {
            return Err(refuse(format!("--default gives {name} twice"))
                .found(format!("{before:?} and {value:?}"))
                .into());
        }
    }
    match &defaults::refusals(&values)[..] {
        [] => Ok(values),
        all => Err(refuse(format!("--default {}", all.join("; ")))
            .expected("what the environment of a program may set (docs/variables.md)")
            .into()),
    }
}

/// The file beside the library of ours at that path of a wheel; nothing without defaults.
pub fn beside(library: &str, values: &Defaults) -> Option<(String, NewFile)> {
    let (folder, _) = library.rsplit_once('/')?;
    let path = format!("{folder}/{BESIDE_LIBRARY}");
    (!values.is_empty()).then(|| (path, NewFile::text(defaults::text(values))))
}

/// A fork's version with these defaults and links: `.d` and the first digits of their texts' SHA-256 behind it. The number of
/// the build stands before, so that it decides which is newer.
pub fn version(fork: &str, build: Option<u32>, values: &Defaults, links: &Links) -> String {
    let fork = match build {
        Some(build) => format!("{fork}.{build}"),
        None => fork.to_owned(),
    };
    if values.is_empty() && links.is_empty() {
        return fork;
    }
    let given = defaults::text(values) + &links::lines(links);
    format!("{fork}.d{}", &Digest::of(given.as_bytes()).hex()[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_judged_by_the_rules_of_a_start() {
        let refused = [
            &["BUDDY_LOG"][..],
            &["BUDDY_LOG=info", "BUDDY_LOG=off"],
            &["BUDDY_LOG=loud"],
            &["BUDDY_TRESHOLD_MB=2", "BUDDY_MAX_MB=half"],
        ];
        let refused = refused.map(|it| format!("{:#}", parse(it).unwrap_err()));
        insta::assert_snapshot!(refused.join("\n--\n"));
        let good = parse(&["BUDDY_PLAN=/plans/a=b {rank}.plan", "BUDDY_LOG=info"]).unwrap();
        let (path, file) = beside("torch/lib/libtorch_pinbuddy.so", &good).unwrap();
        assert_eq!(path, "torch/lib/libtorch_pinbuddy.toml");
        let text = String::from_utf8(file.bytes).unwrap();
        assert_eq!(text, "BUDDY_LOG = \"info\"\nBUDDY_PLAN = \"/plans/a=b {rank}.plan\"\n");
        assert_eq!(defaults::refusals(&good), [] as [String; 0]);
    }

    #[test]
    fn other_defaults_are_another_version_with_the_number_of_the_build_before_the_digest() {
        let fork = "2.15.0+cu132.pinbuddy.0.1.0";
        let numbered = |build: Option<u32>, pairs: &[&str]| version(fork, build, &parse(pairs).unwrap(), &Links::new());
        let of = |pairs: &[&str]| numbered(None, pairs);
        assert_eq!(numbered(Some(10), &[]), format!("{fork}.10"));
        let tenth = numbered(Some(10), &["BUDDY_LOG=info"]);
        let plain = of(&["BUDDY_LOG=info"]);
        assert_eq!(plain.replace(".0.1.0.d", ".0.1.0.10.d"), tenth);
        let plain = of(&[]);
        assert_eq!(plain, "2.15.0+cu132.pinbuddy.0.1.0");
        let (info, debug) = (of(&["BUDDY_LOG=info"]), of(&["BUDDY_LOG=debug"]));
        assert!(info.starts_with(&format!("{plain}.d")) && info.len() == plain.len() + 10);
        assert_ne!(info, debug);
        let links = links::parse(&["Source=https://git.example"]).unwrap();
        let with_links = |pairs: &[&str]| version(fork, None, &parse(pairs).unwrap(), &links);
        let linked = [with_links(&[]), with_links(&["BUDDY_LOG=info"])];
        assert!(![plain, info].iter().any(|it| linked.contains(it)) && linked[0] != linked[1]);
        let order = ["BUDDY_LIVE=1", "BUDDY_LOG=off"];
        assert_eq!(of(&order), of(&[order[1], order[0]]));
    }
}
