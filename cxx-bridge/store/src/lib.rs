//! The folder in which plans are kept by what decides a program's memory: `BUDDY_PLAN=auto`, `BUDDY_DEVICE_PLAN=auto`.
//!
//! ```text
//!   command  a command line in: the program, and the arguments that decide its memory
//!   launcher what the launcher says of this process: how many processes, its rank, and its role among those of its machine
//!   devices  the models of GPUs
//!   key      all of that, the versions and the device: one file's name, and the first line of the file
//!   folder   which folder; its files, the least recently used of which go
//!   mark     what the last run with a file found: that its plan does not fit
//! ```
//!
//! A running program and `pinbuddy plans` both read here, so that they see the same. Knows no plan: what follows a file's first line is
//! text to it.
#![forbid(unsafe_code)]

mod command;
mod devices;
mod folder;
mod key;
pub mod launcher;
mod mark;

pub use command::{Command, Disk, Look, name, words};
pub use devices::devices;
pub use folder::{Folder, Kept, MOST_BYTES};
pub use key::{Key, MOST_HEAD, Memory, body};
pub use launcher::{Launch, Role};
pub use mark::{is_marked, mark};

/// What a variable is set to that has a plan's file chosen here.
pub const AUTO: &str = "auto";
