//! What the closing summary of `build-plugin` says of its libraries.

use serde::Serialize;

use super::Library;
use crate::build_wheel::summary::{self, Lines};

/// The results of a build.
pub type Summary = summary::Summary<Libraries>;

/// Of a plug-in.
#[derive(Debug, Serialize)]
pub struct Libraries {
    /// One for each torch.
    pub libraries: Vec<For>,
}

/// One library.
#[derive(Debug, Serialize)]
pub struct For {
    /// `torch.__version__` of the official wheel.
    pub torch: String,
    /// Hash of the library, which equals the fork wheel's made from the same inputs.
    pub sha256: String,
    /// Its size.
    pub bytes: u64,
    /// The newest symbol versions that it needs.
    pub needs: String,
}

impl Libraries {
    pub(super) fn of(libraries: &[Library]) -> Self {
        let libraries = libraries.iter().map(|it| For {
            torch: it.provenance.torch_version.clone(),
            sha256: it.provenance.library_sha256.clone(),
            bytes: it.bytes.len() as u64,
            needs: it.floors.to_string(),
        });
        Self { libraries: libraries.collect() }
    }
}

impl Lines for Libraries {
    fn lines(&self) -> Vec<(&'static str, String)> {
        let line = |it: &For| {
            let kib = it.bytes.div_ceil(1024);
            format!("{} ({kib} KiB, needs {})", it.torch, it.needs)
        };
        self.libraries.iter().map(|it| ("torch", line(it))).collect()
    }
}
