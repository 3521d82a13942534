//! Runs programs with the simulated CUDA runtime in front of the real one.
//!
//! Only the started command sees the simulator; cargo and xtask never run under it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use xtask_support::refusal::refuse;

/// The simulator's limit.
const MOST_DEVICES: u32 = 64;

/// File name of the library to preload, as cargo names it.
pub const PRELOAD: &str = "libpinbuddy_cuda_sim.so";
/// File name of the driver stub, as the loader searches for it.
pub const DRIVER: &str = "libcuda.so.1";
/// File name of the same stub as the management library.
pub const MANAGEMENT: &str = "libnvidia-ml.so.1";

/// A built simulator: the folder of its libraries, [`PRELOAD`] and [`DRIVER`].
#[derive(Clone, Debug)]
pub struct Simulator(pub PathBuf);

impl Simulator {
    /// The variables for a command that sees `devices` GPUs: names and values.
    pub fn env(&self, devices: u32) -> Result<[(&'static str, OsString); 3]> {
        if devices > MOST_DEVICES {
            return Err(refuse("that is more GPUs than the simulator has")
                .found(devices.to_string())
                .expected(format!("at most {MOST_DEVICES}"))
                .into());
        }
        let path = self.0.join(PRELOAD).into_os_string();
        // The loader splits that list at spaces. A bare name it looks for in the folders of the other one.
        let preload = match path.as_encoded_bytes().contains(&b' ') {
            true => PRELOAD.into(),
            false => path,
        };
        Ok([
            ("LD_PRELOAD", before(&preload, env::var_os("LD_PRELOAD"))),
            ("LD_LIBRARY_PATH", before(self.0.as_os_str(), env::var_os("LD_LIBRARY_PATH"))),
            ("PINBUDDY_SIM_DEVICES", devices.to_string().into()),
        ])
    }

    /// A command that sees `devices` simulated GPUs.
    pub fn command(&self, program: impl AsRef<OsStr>, devices: u32) -> Result<Command> {
        let mut command = Command::new(program);
        command.envs(self.env(devices)?);
        Ok(command)
    }
}

/// `first:rest`, or `first` alone.
pub fn before(first: &OsStr, rest: Option<OsString>) -> OsString {
    let mut value = first.to_owned();
    if let Some(rest) = rest.filter(|it| !it.is_empty()) {
        value.push(":");
        value.push(rest);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_set_before_stays_behind() {
        assert_eq!(before(OsStr::new("/a"), None), "/a");
        assert_eq!(before(OsStr::new("/a"), Some("".into())), "/a");
        assert_eq!(before(OsStr::new("/a"), Some("/b:/c".into())), "/a:/b:/c");
    }

    #[test]
    fn the_library_is_found_in_a_folder_with_a_space() {
        let preload = |folder: &str| {
            let [(_, preload), (_, libraries), _] = Simulator(folder.into()).env(1).unwrap();
            assert!(libraries.to_string_lossy().starts_with(folder));
            preload.to_string_lossy().into_owned()
        };
        assert!(preload("/a b").starts_with(PRELOAD));
        assert!(preload("/a").starts_with(&format!("/a/{PRELOAD}")));
    }

    #[test]
    fn too_many_devices_are_refused() {
        let simulator = Simulator("/sim".into());
        let said = simulator.env(65).unwrap_err().to_string();
        assert!(said.contains("at most 64"), "{said}");
        assert_eq!(simulator.env(64).unwrap()[2].1, "64");
    }
}
