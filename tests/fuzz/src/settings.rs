//! The readers of the `BUDDY_*` variables and of the files that set them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use pinbuddy_config::defaults::Layer;
use pinbuddy_config::variables::VARIABLES;
use pinbuddy_config::{Config, Origin};

/// Reads `bytes` as lines of NAME=VALUE, where a name may be a number, of a variable: no value stops
/// anything, each that is refused is told of, and sizes can be multiplied.
pub fn run(bytes: &[u8]) {
    let lines: Vec<(String, OsString)> = bytes
        .split(|byte| *byte == b'\n')
        .filter_map(|line| {
            let at = line.iter().position(|byte| *byte == b'=')?;
            let name = String::from_utf8_lossy(&line[..at]).into_owned();
            let known = name.parse().ok().and_then(|n: usize| VARIABLES.get(n));
            let name = known.map_or(name, |it| it.name.to_owned());
            Some((name, OsString::from_vec(line[at + 1..].to_vec())))
        })
        .collect();
    let lookup = |name: &str| {
        let found = lines.iter().find(|line| line.0 == name);
        found.map(|line| line.1.clone())
    };
    let (mut config, warnings) = Config::read(lookup);
    assert!(config.block_bytes() > 0);
    let count = config.block_count.value.unwrap_or(1);
    let all = config.block_bytes().checked_mul(count);
    assert!(all.is_some_and(|all| isize::try_from(all).is_ok()));
    assert!(isize::try_from(config.threshold_bytes()).is_ok());
    let json = serde_json::to_string(&config).unwrap();
    let refused = json.matches(r#""origin":"rejected""#).count();
    assert!(warnings.len() >= refused, "{json}\n{warnings:?}");
    for warning in &warnings {
        assert!(warning.contains("BUDDY_"), "{warning}");
    }
    config.compare_with((1 << 40, "this machine has"));
    file(bytes);
}

/// A line of a file sets a variable or costs a complaint, and none does both.
fn file(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (layer, complaints) = Layer::parse(Origin::Site, "a file", &text);
    assert!(layer.sets.len() + complaints.len() <= text.split('\n').count());
    let (config, _) = Config::layered(|_| None, &[layer]);
    assert!(config.block_bytes() > 0);
}
