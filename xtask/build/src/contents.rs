//! The files of this repository that travel in the wheel: headers, the Python package, licences.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::{inputs, licences};
use xtask_support::paths;
use xtask_wheel::metadata;
use xtask_wheel::writer::NewFile;

/// The command `pinbuddy`, as entry_points.txt has it.
const SCRIPT: &str = "pinbuddy = pinbuddy.__main__:main";
/// What torch calls at the end of its import, in the group [`BACKENDS`]. Each form has a file of its own for it, since pip
/// removes the package, which both have, with either.
const ENTRY: &str = "cxx-bridge/python/entry.py";
/// Its path in a fork.
pub const FORK_ENTRY: &str = "torch/_pinbuddy.py";
/// Its path in the plug-in.
pub const PLUGIN_ENTRY: &str = "pinbuddy/_entry.py";
/// The group of entry points that torch calls.
const BACKENDS: &str = "torch.backends";

/// The example that `pinbuddy try` runs: its path here, and in a wheel (`_try.py`).
pub const EXAMPLE: (&str, &str) = ("examples/offload.py", "pinbuddy/examples/offload.py");

/// The files of a wheel of ours by their path there. `places` are the folders of our headers and of the licences, and
/// the file of the entry point.
pub fn ours(root: &Path, places: (&str, &str, &str)) -> Result<BTreeMap<String, NewFile>> {
    let (headers, texts, entry) = places;
    let moves = [
        ("cxx-bridge/include/pinbuddy", headers),
        ("cxx-bridge/python/pinbuddy", "pinbuddy"),
        (ENTRY, entry),
        EXAMPLE,
        ("LICENSE", &format!("{texts}/LICENSE")),
        ("NOTICE", &format!("{texts}/NOTICE")),
    ];
    let mut files = BTreeMap::new();
    for (from, to) in moves {
        let mut found = BTreeMap::new();
        inputs::collect(root, from, &mut found)?;
        ensure!(!found.is_empty(), "{} is missing or empty, and belongs in the wheel", paths::show(&root.join(from)));
        for name in found.into_keys() {
            let path = root.join(&name);
            let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
            files.insert(name.replacen(from, to, 1), NewFile::text(bytes));
        }
    }
    files.extend(licences::of_crates(root, &format!("{texts}/crates"))?);
    Ok(files)
}

/// The licences among these files, as METADATA lists them.
pub fn licences(files: &BTreeMap<String, NewFile>, dist_info: &str) -> Vec<String> {
    let folder = format!("{dist_info}/licenses/");
    let found = files.keys().filter_map(|it| it.strip_prefix(&folder));
    found.map(str::to_owned).collect()
}

/// entry_points.txt with our command, and with what torch calls at the end of its import, in that file.
pub fn entry_points(mut text: String, file: &str) -> String {
    let autoload = format!("pinbuddy = {}:autoload", file.trim_end_matches(".py").replace('/', "."));
    for (group, entry) in [("console_scripts", SCRIPT), (BACKENDS, autoload.as_str())] {
        if let Some(more) = metadata::add_entry_point(&text, group, entry) {
            text = more;
        }
    }
    text
}

/// top_level.txt with our package, sorted as usual.
pub fn top_level(text: &str) -> String {
    let mut names: Vec<&str> = text.lines().chain(["pinbuddy"]).filter(|line| !line.is_empty()).collect();
    names.sort_unstable();
    names.dedup();
    names.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::top_level;

    #[test]
    fn our_package_is_listed_once() {
        assert_eq!(top_level("torch\nfunctorch\n"), "functorch\npinbuddy\ntorch\n");
        assert_eq!(top_level("pinbuddy\ntorch"), "pinbuddy\ntorch\n");
    }
}
