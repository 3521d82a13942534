//! Reads a finished plug-in from scratch and verifies it, before it gets its name.

use std::path::Path;

use anyhow::{Result, ensure};

use super::contents::{MANIFEST, Manifest, file, of_library};
use super::{Library, Program};
use crate::build_wheel::compile::LIBRARY;
use crate::build_wheel::contents::entry_points;
use crate::build_wheel::defaults;
use crate::build_wheel::program::IN_WHEEL;
use crate::support::progress::Step;
use crate::wheel::name::WheelName;
use crate::wheel::platform::needed;
use crate::wheel::result;

/// Verifies every byte against RECORD, and everything that torch, pip and the Python package rely on.
pub fn verify(
    path: &Path,
    name: &WheelName,
    libraries: &[Library],
    program: &Program,
    step: &Step,
) -> Result<()> {
    let (mut wheel, info) = result::open(path, name)?;
    let found = wheel.text(&format!("{info}/entry_points.txt"))?;
    ensure!(
        found == entry_points(String::new()),
        "entry_points.txt says {found:?}"
    );
    ensure!(
        wheel.bytes(IN_WHEEL)? == program.bytes,
        "{IN_WHEEL} is not the program that was compiled"
    );
    wheel.text("pinbuddy/_plugin.py")?;
    let manifest: Manifest = serde_json::from_str(&wheel.text(MANIFEST)?)?;
    ensure!(
        manifest == Manifest::of(&name.version, libraries),
        "{MANIFEST} is not what was written"
    );
    for library in libraries {
        let path = format!("pinbuddy/{}", file(&library.provenance));
        ensure!(
            wheel.bytes(&path)? == library.bytes,
            "{path} is not the library that was compiled"
        );
        if let Some((path, it)) = defaults::beside(&path, of_library(library)) {
            ensure!(
                wheel.bytes(&path)? == it.bytes,
                "{path} is not what was written"
            );
        }
        let (_, own) = needed(&library.bytes)?;
        ensure!(
            own.as_deref() == Some(LIBRARY),
            "the SONAME of {path} is {own:?}"
        );
    }
    wheel.verify_all(step, |_| Ok(None))
}
