//! Packages of npm's registry that tests need: fetched by npm itself, checked, unpacked to target/tools and kept there.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use crate::support::paths;
use crate::support::refusal::refuse;
use crate::support::scratch::Scratch;

/// A package that has not changed since it was looked at.
pub struct Package {
    /// Its folder in target/tools is called so, and by the version.
    pub called: &'static str,
    /// As npm names it, with its version behind an `@`.
    pub package: &'static str,
    /// What npm says of its bytes.
    pub integrity: &'static str,
}

/// Whether this machine has npm.
pub fn is_there(shell: &Shell) -> bool {
    ["npm", "node"].into_iter().all(|program| {
        cmd!(shell, "{program} --version")
            .quiet()
            .ignore_stderr()
            .read()
            .is_ok()
    })
}

impl Package {
    /// Its folder, fetched if missing. `unpack` runs in the folder, beside `package/`, and may take what it likes from
    /// there: only the rest is kept.
    pub fn ensure(
        &self,
        shell: &Shell,
        unpack: impl FnOnce(&Shell) -> Result<()>,
    ) -> Result<PathBuf> {
        let (name, version) = self
            .package
            .rsplit_once('@')
            .context("a package with its version")?;
        let folder = paths::target()
            .join("tools")
            .join(format!("{}-{version}", self.called));
        if folder.is_dir() {
            return Ok(folder);
        }
        let scratch = Scratch::folder(&folder)?;
        let _inside = shell.push_dir(scratch.path());
        let package = self.package;
        let packed = cmd!(shell, "npm pack --json --silent {package}")
            .quiet()
            .ignore_stderr()
            .read();
        let packed = packed.with_context(|| format!("npm cannot fetch {package}"))?;
        let packed: serde_json::Value =
            serde_json::from_str(&packed).context("what npm pack says")?;
        let found = packed[0]["integrity"].as_str().unwrap_or_default();
        if found != self.integrity {
            return Err(refuse(format!("{name} {version} is not what it was"))
                .found(found)
                .expected(self.integrity)
                .remedy("npm cache clean --force, then run the same command again")
                .into());
        }
        let file = packed[0]["filename"]
            .as_str()
            .context("the name of what npm packed")?;
        cmd!(shell, "tar -xzf {file}").quiet().run()?;
        unpack(shell)?;
        fs::remove_file(scratch.path().join(file))?;
        fs::remove_dir_all(scratch.path().join("package"))?;
        scratch.publish(&folder)?;
        Ok(folder)
    }
}
