//! Checks that the upstream header is the one that the patches were written against.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::verify::Expected;
use xtask_support::hash::Digest;
use xtask_support::refusal::refuse;
use xtask_support::scratch;

/// The path in upstream's tree of a file under `torch/include/` in a wheel.
pub fn in_wheel(upstream: &str) -> Option<String> {
    let plain = !upstream.split('/').any(|part| matches!(part, "" | "." | ".."));
    let inside = upstream.strip_prefix("aten/src/").or_else(|| {
        let public = upstream.starts_with("c10/") || upstream.starts_with("torch/csrc/");
        public.then_some(upstream)
    })?;
    (plain && inside.ends_with(".h")).then(|| format!("torch/include/{inside}"))
}

/// Stores a copy in the cache by its hash, and refuses a header other than the pinned one.
pub fn check(text: &str, expected: &Expected<'_>, shown: &str) -> Result<String> {
    let found = Digest::of(text.as_bytes()).hex();
    let kept = place(expected.cache, expected.header, &found);
    scratch::replace(&kept, text.as_bytes())?;
    let pinned = expected.header_sha256;
    if found == pinned {
        return Ok(found);
    }
    Err(refuse(format!("{} in {shown} is not the one that the series was written against", expected.header))
        .found(format!("SHA-256 {found}"))
        .expected(format!("SHA-256 {pinned} (patches/versions.toml)"))
        .remedy(format!(
            "compare {} with the header of upstream's tag v{}; the official wheel of the release is what is supported",
            kept.display(),
            expected.release
        ))
        .into())
}

/// The cache path of a copy of `header` with that hash.
pub fn place(cache: &Path, header: &str, hash: &str) -> PathBuf {
    let name = header.rsplit('/').next().unwrap_or_default();
    cache.join("headers").join(hash).join(name)
}

#[cfg(test)]
mod tests {
    use super::in_wheel;

    #[test]
    fn only_public_headers_have_a_place() {
        let header = in_wheel("aten/src/ATen/core/CachingHostAllocator.h");
        assert_eq!(header.as_deref(), Some("torch/include/ATen/core/CachingHostAllocator.h"));
        assert_eq!(in_wheel("c10/core/Seam.h").as_deref(), Some("torch/include/c10/core/Seam.h"));
        for elsewhere in ["aten/src/../../x.h", "setup.py", "aten/src/ATen/core/x.cpp", "/etc/x.h"] {
            assert_eq!(in_wheel(elsewhere), None);
        }
    }
}
