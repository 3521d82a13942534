//! The files of this repository that travel in the wheel: headers, the Python package, licences.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::{inputs, licences};
use xtask_support::paths;
use xtask_wheel::writer::NewFile;

/// The command `pinbuddy`, as entry_points.txt has it.
pub const SCRIPT: &str = "pinbuddy = pinbuddy.__main__:main";
/// What torch calls at the end of its import, in the group [`BACKENDS`].
pub const AUTOLOAD: &str = "pinbuddy = pinbuddy._plugin:autoload";
/// The group of entry points that torch calls.
pub const BACKENDS: &str = "torch.backends";

/// The example that `pinbuddy try` runs: its path here, and in a wheel (`_try.py`).
pub const EXAMPLE: (&str, &str) = ("examples/offload.py", "pinbuddy/examples/offload.py");

/// The files of a fork wheel by path in the wheel. `dist_info` is its .dist-info folder.
pub fn ours(root: &Path, dist_info: &str) -> Result<BTreeMap<String, NewFile>> {
    let moves = [
        (
            "cxx-bridge/include/pinbuddy",
            "torch/include/pinbuddy".to_owned(),
        ),
        ("cxx-bridge/python/pinbuddy", "pinbuddy".to_owned()),
        (EXAMPLE.0, EXAMPLE.1.to_owned()),
        ("LICENSE", format!("{dist_info}/licenses/pinbuddy/LICENSE")),
        ("NOTICE", format!("{dist_info}/licenses/pinbuddy/NOTICE")),
    ];
    let mut files = gather(root, &moves)?;
    files.extend(licences::of_crates(
        root,
        &format!("{dist_info}/licenses/pinbuddy/crates"),
    )?);
    Ok(files)
}

/// Maps each folder of this repository to its folder in the wheel.
pub fn gather(root: &Path, moves: &[(&str, String)]) -> Result<BTreeMap<String, NewFile>> {
    let mut files = BTreeMap::new();
    for (from, to) in moves {
        let mut found = BTreeMap::new();
        inputs::collect(root, from, &mut found)?;
        ensure!(
            !found.is_empty(),
            "{} is missing or empty, and belongs in the wheel",
            paths::show(&root.join(from))
        );
        for name in found.into_keys() {
            let path = root.join(&name);
            let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
            files.insert(name.replacen(from, to, 1), NewFile::text(bytes));
        }
    }
    Ok(files)
}

/// top_level.txt with our package, sorted as usual.
pub fn top_level(text: &str) -> String {
    let mut names: Vec<&str> = text
        .lines()
        .chain(["pinbuddy"])
        .filter(|line| !line.is_empty())
        .collect();
    names.sort_unstable();
    names.dedup();
    names.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::top_level;

    #[test]
    fn our_package_is_listed_once() {
        assert_eq!(
            top_level("torch\nfunctorch\n"),
            "functorch\npinbuddy\ntorch\n"
        );
        assert_eq!(top_level("pinbuddy\ntorch"), "pinbuddy\ntorch\n");
    }
}
