//! Rust's standard library, which is linked into our library and our program: what the toolchain says of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use xtask_wheel::sbom::{self, Crate};

/// The licence texts of the standard library and of all that is in it, as rustup's toolchains have them.
const TEXTS: &str = "share/doc/rust/COPYRIGHT-library.html";

/// It as a component of a wheel. `root` is the checkout, which may choose a toolchain.
pub fn component(root: &Path) -> Result<Crate> {
    let known = rustc(root, "-vV")?;
    let version = known.lines().find_map(|it| it.strip_prefix("release: "));
    Ok(Crate {
        name: sbom::STANDARD_LIBRARY.to_owned(),
        version: version.context("rustc names no release")?.to_owned(),
        license: Some("MIT OR Apache-2.0".to_owned()),
        sha256: None,
        depends_on: BTreeSet::new(),
    })
}

/// The name of its licence texts, and the texts.
pub fn licences(root: &Path) -> Result<(&'static str, Vec<u8>)> {
    let path = Path::new(rustc(root, "--print=sysroot")?.trim()).join(TEXTS);
    let text = fs::read(&path).with_context(|| {
        format!(
            "the toolchain has no {}, the licence texts of Rust's standard library, which belong in the wheel: one of rustup's \
             (`rustup toolchain install stable`) has them",
            path.display()
        )
    })?;
    Ok(("COPYRIGHT-library.html", text))
}

fn rustc(root: &Path, question: &str) -> Result<String> {
    let shell = Shell::new()?;
    shell.change_dir(root);
    cmd!(shell, "rustc {question}").quiet().read().context("asking rustc about its standard library")
}
