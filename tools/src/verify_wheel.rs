//! `verify-wheel`: whether a wheel is what it says it is, byte for byte, and if not, which of its files is
//! not.
//!
//! RECORD knows every file in a wheel, and nothing of the archive around them: names of times, of rights, RECORD
//! itself. The hash of the whole file knows all of it; it comes from beside the wheel or from the command line. Who can
//! change that as well can change everything: a hash is worth what the place is worth that it was had from.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use xtask_support::hash::Digest;
use xtask_support::progress::{Progress, Step};
use xtask_support::refusal::refuse;
use xtask_wheel::differ;
use xtask_wheel::provenance::{self, Provenance};
use xtask_wheel::verify::{self, Checked};

use crate::{cli, output};

/// Where the library lies in a fork wheel, and where this program.
const LIBRARY: &str = "torch/lib/libtorch_pinbuddy.so";
const PROGRAM: &str = "pinbuddy/bin/pinbuddy-tools";

/// The command.
///
/// # Errors
///
/// A byte is not as it was promised; names the file that it is in.
pub fn run(args: &cli::VerifyWheel) -> Result<()> {
    let progress = Progress::new(1);
    let said = progress.step("verify", |step| {
        let checked = check(&args.file, args.sha256.as_deref(), step);
        match &args.like {
            Some(good) => placed(checked, &args.file, good),
            None => checked,
        }
    })?;
    output::print(&format_args!("{said}\n"))
}

/// What was said, and where the wheel differs from one that is known to be good.
fn placed(checked: Result<String>, file: &Path, good: &Path) -> Result<String> {
    let cannot = || format!("{} is no wheel to compare with", good.display());
    let difference = differ::first(file, good).with_context(cannot)?;
    let Some(place) = difference else {
        return checked;
    };
    let refusal = refuse(format!(
        "{} differs from {}",
        file.display(),
        good.display()
    ))
    .found(place)
    .remedy("fetch it again, or build it again");
    Err(match checked {
        Err(why) => why.context(refusal),
        Ok(_) => refusal.into(),
    })
}

fn check(file: &Path, sha256: Option<&str>, step: &Step) -> Result<String> {
    let promised = match sha256 {
        Some(hash) => Some((hash.to_ascii_lowercase(), "--sha256".to_owned())),
        None => beside(file)?,
    };
    let found = Digest::of_file(file)?.hex();
    let changed = promised.as_ref().filter(|(hash, _)| *hash != found);
    // Also where the whole is known to be another: RECORD says which part.
    let mut wheel = verify::open(file)?;
    wheel.verify_all(step, |_| Ok(None))?;
    library(&mut wheel)?;
    let shown = file.display();
    if let Some((hash, from)) = changed {
        return Err(refuse(format!("{shown} is not the wheel that {from} speaks of"))
            .found(format!(
                "SHA-256 {found}; every file in it is as RECORD says, so what differs is RECORD itself or the archive \
                 around the files, or it is another build"
            ))
            .expected(hash.clone())
            .remedy("fetch it again, with its hash from where you trust it")
            .into());
    }
    Ok(match promised {
        Some((_, from)) => {
            format!("{shown}: every byte is as {from} says, and every file as RECORD says")
        }
        None => format!(
            "{shown}: every file is as RECORD says. RECORD and the archive around the files are vouched for by nobody: \
             --sha256 HASH, or a file {}.sha256, knows every byte. This wheel's hash is {found}",
            file.file_name().unwrap_or_default().display()
        ),
    })
}

/// The hash in `FILE.sha256`, as sha256sum writes it.
fn beside(file: &Path) -> Result<Option<(String, String)>> {
    let mut name = file.as_os_str().to_owned();
    name.push(".sha256");
    let path = PathBuf::from(name);
    if !path.is_file() {
        return Ok(None);
    }
    let text =
        std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let hash = text.split_whitespace().next().unwrap_or_default();
    Ok(Some((
        hash.to_ascii_lowercase(),
        path.display().to_string(),
    )))
}

/// In a fork wheel: the library and the program are those that the provenance names.
fn library(wheel: &mut Checked) -> Result<()> {
    let name = format!("{}.dist-info/{}", wheel.stem, provenance::NAME);
    if !wheel.rows.contains_key(&name) || !wheel.rows.contains_key(LIBRARY) {
        return Ok(());
    }
    let provenance: Provenance =
        serde_json::from_str(&wheel.text(&name)?).with_context(|| format!("reading {name}"))?;
    let program = provenance.program_sha256.map(|hash| (PROGRAM, hash));
    for (file, expected) in [(LIBRARY, provenance.library_sha256)]
        .into_iter()
        .chain(program)
    {
        let found = Digest::of(&wheel.bytes(file)?).hex();
        if found != expected {
            return Err(refuse(format!("{file} is not the file that {name} names"))
                .found(found)
                .expected(expected)
                .remedy("fetch it again; who builds it: cargo xtask build-wheel")
                .into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use xtask_wheel::writer::{self, Contents, NewFile};

    /// A small wheel, and its hash.
    fn made(folder: &Path) -> (PathBuf, String) {
        let file = folder.join("torch-1-py3-none-any.whl");
        let files = [("torch/a.py", "a = 1\n"), ("torch/b.py", "b = 2\n")];
        let files = files.map(|(name, text)| (name.to_owned(), NewFile::text(text)));
        let contents = Contents {
            stem: "torch-1".to_owned(),
            files: files.into(),
        };
        writer::write_new(&contents, &file).unwrap();
        let hash = Digest::of_file(&file).unwrap().hex();
        (file, hash)
    }

    /// Where each file's packed bytes lie in the archive.
    fn packed(file: &Path) -> Vec<(String, std::ops::Range<u64>)> {
        let mut archive = verify::open(file).unwrap().archive;
        let ranges = (0..archive.zip.len()).map(|index| {
            let entry = archive.zip.by_index_raw(index).unwrap();
            let from = entry.data_start().unwrap();
            let name = entry.name().unwrap().into_owned();
            (name, from..from + entry.compressed_size())
        });
        ranges.collect()
    }

    #[test]
    fn every_changed_byte_is_refused_and_its_place_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let (file, hash) = made(folder.path());
        let good = fs::read(&file).unwrap();
        let like = folder.path().join("good.whl");
        fs::write(&like, &good).unwrap();
        let said = check(&file, Some(&hash), &Step::silent()).unwrap();
        assert!(said.contains("every byte"), "{said}");
        assert_eq!(placed(Ok(said.clone()), &file, &like).unwrap(), said);
        let packed = packed(&like);
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            fs::write(&file, &bad).unwrap();
            let with_hash = check(&file, Some(&hash), &Step::silent());
            assert!(with_hash.is_err(), "byte {at} of {}", good.len());
            let place = placed(with_hash, &file, &like).unwrap_err().to_string();
            let inside = packed.iter().find(|it| it.1.contains(&(at as u64)));
            let Some((name, _)) = inside.filter(|it| !it.0.ends_with("RECORD")) else {
                let expected = format!("byte {at} of the file, in ");
                assert!(place.contains(&expected), "byte {at}: {place}");
                continue;
            };
            assert!(
                place.contains(&format!(" of the 6 of {name}: ")),
                "byte {at}: {place}"
            );
            // RECORD alone knows, and says which.
            for sha256 in [Some(&*hash), None] {
                let why = check(&file, sha256, &Step::silent()).unwrap_err();
                assert!(format!("{why:#}").contains(name), "byte {at}: {why:#}");
            }
        }
    }

    #[test]
    fn a_fork_is_compared_with_the_wheel_it_was_made_of() {
        let folder = tempfile::tempdir().unwrap();
        let (file, _) = made(folder.path());
        let official = folder.path().join("official.whl");
        fs::copy(&file, &official).unwrap();
        let fork = folder.path().join("torch-1+fork-py3-none-any.whl");
        let contents = Contents {
            stem: "torch-1+fork".to_owned(),
            files: [("torch/b.py".to_owned(), NewFile::text("b = 3\n"))].into(),
        };
        let mut base = verify::open(&official).unwrap();
        writer::write(&mut base, &contents, &fork, &Step::silent()).unwrap();
        let checked = check(&fork, None, &Step::silent());
        placed(checked, &fork, &official).unwrap();
        let mut bytes = fs::read(&fork).unwrap();
        let (name, place) = packed(&fork)[0].clone();
        assert_eq!(name, "torch/a.py");
        bytes[place.start as usize + 4] ^= 1;
        fs::write(&fork, &bytes).unwrap();
        let checked = check(&fork, None, &Step::silent());
        let why = placed(checked, &fork, &official).unwrap_err();
        let said = why.to_string();
        assert!(said.contains("of the 6 of torch/a.py: "), "{said}");
        let cause = format!("{:#}", why.source().unwrap());
        assert!(cause.contains("torch/a.py"), "{cause}");
    }

    #[test]
    fn the_file_that_differs_is_named_and_what_nobody_vouches_for_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let (file, hash) = made(folder.path());
        let said = check(&file, None, &Step::silent()).unwrap();
        assert!(
            said.contains("vouched for by nobody") && said.contains(&hash),
            "{said}"
        );
        fs::write(
            folder.path().join("torch-1-py3-none-any.whl.sha256"),
            format!("{hash}  x\n"),
        )
        .unwrap();
        let said = check(&file, None, &Step::silent()).unwrap();
        assert!(said.contains(".sha256 says"), "{said}");
        let other = "0".repeat(64);
        let error = check(&file, Some(&other), &Step::silent())
            .unwrap_err()
            .to_string();
        assert!(error.contains("RECORD itself or the archive"), "{error}");
    }
}
