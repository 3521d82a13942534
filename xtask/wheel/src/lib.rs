//! Reads untrusted wheels and writes new ones. Knows nothing of how the library is built.

pub mod header;
pub mod metadata;
pub mod name;
pub mod platform;
pub mod provenance;
pub mod reader;
pub mod record;
pub mod result;
pub mod sbom;
#[cfg(test)]
mod tests;
pub mod verify;
pub mod writer;
