//! Finds an existing fork wheel with exactly the inputs of a build now.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;

use crate::fetch::Base;
use crate::plan::Plan;
use crate::{compile, fits, inputs, tree};
use xtask_python::tools::Tools;
use xtask_wheel::name::WheelName;
use xtask_wheel::provenance::Provenance;

/// The newest such wheel in the plan's output folder.
pub fn find(plan: &Plan, tools: &Tools) -> Result<Option<PathBuf>> {
    let Some(path) = plan.base.clone() else {
        return Ok(None);
    };
    let name = WheelName::parse(&path.file_name().unwrap_or_default().to_string_lossy())?;
    let base = Base::of(path, name)?;
    let Some(facts) = tree::facts(&plan.cache, &base.sha256) else {
        return Ok(None);
    };
    let cuda = plan.versions.cuda(&facts.cuda)?;
    let compilers = compile::compilers()?;
    let wanted = inputs::gather(plan, &base, cuda, &compilers, tools)?;
    let entries = fs::read_dir(&plan.out).into_iter().flatten().flatten();
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().and_then(|it| it.to_str());
        name.and_then(|it| WheelName::parse(it).ok()).is_some_and(|it| {
            it.version.contains("pinbuddy")
                && it.public_version() == plan.release.version
                && fits::check(&it, &plan.python).is_ok()
        })
    };
    let mut found: Vec<_> = entries.map(|it| it.path()).filter(is_ours).collect();
    found.sort_by_key(|path| fs::metadata(path).and_then(|data| data.modified()).ok());
    let current = |path: &PathBuf| Provenance::read(path).is_ok_and(|it| it.inputs == wanted);
    Ok(found.into_iter().rev().find(current))
}
