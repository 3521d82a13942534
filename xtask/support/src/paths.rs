//! Paths: the checkout, its target folder, the user's cache.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The root of the checkout.
pub fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        // `cargo run` names the manifest's folder; a binary called by hand remembers where it was built.
        let manifest = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let xtask = manifest.filter(|path| path.ends_with("xtask"));
        let built = || PathBuf::from(env!("CARGO_MANIFEST_DIR").trim_end_matches("/support"));
        let xtask = xtask.unwrap_or_else(built);
        xtask.parent().map_or_else(|| xtask.clone(), Path::to_path_buf)
    })
}

/// Holds generated files; may be deleted at any time.
pub fn target() -> PathBuf {
    root().join("target")
}

/// The user's cache of official wheels and extracted files, shared between checkouts.
pub fn cache() -> PathBuf {
    let base = env::var_os("XDG_CACHE_HOME").filter(|it| !it.is_empty()).map_or_else(
        || PathBuf::from(env::var_os("HOME").unwrap_or_else(|| "/tmp".into())).join(".cache"),
        PathBuf::from,
    );
    base.join("pinbuddy")
}

/// `path` for a message: relative to the checkout if it is inside.
pub fn show(path: &Path) -> String {
    let relative = path.strip_prefix(root()).unwrap_or(path);
    relative.display().to_string()
}
