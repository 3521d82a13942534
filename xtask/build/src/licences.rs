//! The licence texts of the crates that are linked into our library and our program, as their sources have them, and those of
//! Rust's standard library, as the toolchain has them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::{library, standard};
use xtask_wheel::writer::NewFile;

/// How the names of such files begin, in capitals.
const BEGINNINGS: [&str; 6] = ["LICENSE", "LICENCE", "UNLICENSE", "COPYING", "COPYRIGHT", "NOTICE"];

/// The files by path in the wheel, in `folder`.
pub fn of_crates(root: &Path, folder: &str) -> Result<BTreeMap<String, NewFile>> {
    let mut files = BTreeMap::new();
    for (name, source) in library::foreign_sources(root)? {
        let before = files.len();
        let entries = fs::read_dir(&source).with_context(|| format!("reading {}", source.display()))?;
        for entry in entries {
            let entry = entry?;
            let (path, file) = (entry.path(), entry.file_name());
            let file = file.to_string_lossy();
            let capitals = file.to_uppercase();
            if path.is_file() && BEGINNINGS.iter().any(|it| capitals.starts_with(it)) {
                let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
                files.insert(format!("{folder}/{name}/{file}"), NewFile::text(bytes));
            }
        }
        ensure!(
            files.len() > before,
            "{name} is in the wheel's bill of materials, and its source in {} has no licence text (a file whose name begins with \
             one of {BEGINNINGS:?})",
            source.display()
        );
    }
    let it = standard::component(root)?;
    let (file, bytes) = standard::licences(root)?;
    let path = format!("{folder}/{}-{}/{file}", it.name, it.version);
    files.insert(path, NewFile::text(bytes));
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask_support::paths;
    use xtask_wheel::sbom;

    #[test]
    fn all_of_others_in_the_bill_has_its_texts() {
        let root = paths::root();
        let files = of_crates(root, "crates").unwrap();
        let foreign = library::crates(root, library::WHEEL).unwrap();
        let is_foreign = |it: &sbom::Crate| it.sha256.is_some() || it.name == sbom::STANDARD_LIBRARY;
        assert!(foreign.iter().any(|it| it.name == sbom::STANDARD_LIBRARY));
        let foreign = foreign.iter().filter(|it| is_foreign(it));
        let mut crates = 0;
        for it in foreign {
            let folder = format!("crates/{}-{}/", it.name, it.version);
            let texts = files.iter().filter(|(path, _)| path.starts_with(&folder));
            assert!(texts.map(|(_, it)| it.bytes.len()).sum::<usize>() > 500, "{folder}");
            crates += 1;
        }
        assert!(crates > 10, "{crates}");
    }
}
