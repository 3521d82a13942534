//! `cargo xtask verify-wheel`: whether a wheel is what it says it is, byte for byte, and if not, which of its files is
//! not.
//!
//! RECORD knows every file in a wheel, and nothing of the archive around them: names of times, of rights, RECORD
//! itself. The hash of the whole file knows all of it; it comes from beside the wheel or from the command line. Who can
//! change that as well can change everything: a hash is worth what the place is worth that it was had from.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::build_wheel::program::IN_WHEEL;
use crate::cli;
use crate::support::hash::Digest;
use crate::support::progress::Progress;
use crate::support::refusal::refuse;
use crate::wheel::provenance::{self, Provenance};
use crate::wheel::verify::{self, Checked};

/// Where the library lies in a fork wheel.
const LIBRARY: &str = "torch/lib/libtorch_pinbuddy.so";

/// The command.
pub fn run(args: &cli::VerifyWheel) -> Result<()> {
    let progress = Progress::new(1);
    let said = progress.step("verify", |step| {
        check(&args.file, args.sha256.as_deref(), step)
    })?;
    println!("{said}");
    Ok(())
}

fn check(
    file: &Path,
    sha256: Option<&str>,
    step: &crate::support::progress::Step,
) -> Result<String> {
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
    let program = provenance.program_sha256.map(|hash| (IN_WHEEL, hash));
    for (file, expected) in [(LIBRARY, provenance.library_sha256)]
        .into_iter()
        .chain(program)
    {
        let found = Digest::of(&wheel.bytes(file)?).hex();
        if found != expected {
            return Err(refuse(format!("{file} is not the file that {name} names"))
                .found(found)
                .expected(expected)
                .remedy("build the wheel again: cargo xtask build-wheel")
                .into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::support::progress::Step;
    use crate::wheel::writer::{self, Contents, NewFile};

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

    #[test]
    fn every_changed_byte_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (file, hash) = made(folder.path());
        let good = fs::read(&file).unwrap();
        let said = check(&file, Some(&hash), &Step::silent()).unwrap();
        assert!(said.contains("every byte"), "{said}");
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            fs::write(&file, &bad).unwrap();
            let refused = check(&file, Some(&hash), &Step::silent());
            assert!(refused.is_err(), "byte {at} of {}", good.len());
        }
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
