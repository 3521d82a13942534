//! Workloads: synthetic programs, generated from a seed and modelled on real ones.
//!
//! There is a file for each kind of program, which says where its sizes come from. A workload is
//! generated a step at a time, so that one of any length takes little memory. The same seed gives the
//! same events, to the byte.
//!
//! Every program ends with a `clear` while its long-lived blocks are still live, and then frees them.

mod checkpoint;
mod fixed;
mod kv_cache;
mod loader;
mod mixed;
mod random;
mod script;
mod tensors;
mod training;
mod varying;
mod zero;

pub use random::Random;

use pinbuddy_events::Event;
use script::Script;

/// Whether sizes are the same in every step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// The same in every step.
    Fixed,
    /// Different.
    Vary,
}

/// A workload, by its name.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its description, in a line.
    pub about: &'static str,
    /// Whether its sizes change from step to step.
    pub sizes: Sizes,
    /// How many steps it has by default.
    pub steps: u32,
    make: fn(u64) -> Box<dyn Program>,
}

/// All of them.
pub const WORKLOADS: [Workload; 11] = [
    Workload {
        name: "training-1f1b",
        about: "activations offloaded in a 1F1B pipeline, stage 4 of 8",
        sizes: Sizes::Fixed,
        steps: 10,
        make: |_| Box::new(training::Training::of_chunks(1)),
    },
    Workload {
        name: "training-interleaved",
        about: "the same stage in an interleaved pipeline of two chunks",
        sizes: Sizes::Fixed,
        steps: 10,
        make: |_| Box::new(training::Training::of_chunks(2)),
    },
    Workload {
        name: "zero-offload",
        about: "optimizer states kept on the host, gradients in buckets (ZeRO-offload)",
        sizes: Sizes::Fixed,
        steps: 20,
        make: |_| Box::new(zero::Zero::default()),
    },
    Workload {
        name: "data-loader",
        about: "batches of images pinned by a DataLoader's thread, the last of an epoch smaller",
        sizes: Sizes::Fixed,
        steps: 1_300,
        make: |_| Box::new(loader::Loader::default()),
    },
    Workload {
        name: "kv-cache",
        about: "a server that keeps the KV cache of finished requests on the host",
        sizes: Sizes::Vary,
        steps: 2_000,
        make: |seed| Box::new(kv_cache::KvCache::new(seed)),
    },
    Workload {
        name: "checkpoint",
        about: "a sharded state staged for writing every fifth step, then empty_cache",
        sizes: Sizes::Fixed,
        steps: 25,
        make: |_| Box::new(checkpoint::Checkpoint::default()),
    },
    Workload {
        name: "variable-lengths",
        about: "nine pairs of 3 to 200 MiB, each scaled at random each step",
        sizes: Sizes::Vary,
        steps: 40,
        make: |seed| Box::new(varying::Varying::new(seed)),
    },
    Workload {
        name: "tensors-155",
        about: "155 activations offloaded each step, as in pytorch/pytorch#186162",
        sizes: Sizes::Fixed,
        steps: 20,
        make: |_| Box::new(tensors::Tensors),
    },
    Workload {
        name: "clear-181094",
        about: "small buffers that live on among large ones that do not, then empty_cache",
        sizes: Sizes::Vary,
        steps: 10,
        make: |seed| Box::new(mixed::Mixed::new(seed)),
    },
    Workload {
        name: "fixed-129.5mib",
        about: "40 buffers of 129.5 MiB, kept",
        sizes: Sizes::Fixed,
        steps: 1,
        make: |_| Box::new(fixed::Fixed::mebibytes(129.5, 40)),
    },
    Workload {
        name: "fixed-2.083gib",
        about: "three buffers of 2.083 GiB, kept",
        sizes: Sizes::Fixed,
        steps: 1,
        make: |_| Box::new(fixed::Fixed::mebibytes(2.083 * 1024.0, 3)),
    },
];

impl Workload {
    /// The workload of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        WORKLOADS.iter().find(|it| it.name == name)
    }

    /// Its events, `steps` steps of them.
    pub fn events(&self, seed: u64, steps: u32) -> impl Iterator<Item = Event> + use<> {
        let mut program = (self.make)(seed);
        let mut script = Script::default();
        let mut step = 0;
        std::iter::from_fn(move || {
            if step < steps {
                program.step(&mut script, step);
                script.iter();
            } else if step == steps {
                script.clear();
                script.end();
            } else {
                return None;
            }
            step = step.saturating_add(1);
            Some(script.take())
        })
        .flatten()
    }
}

/// A program, generated step by step.
trait Program {
    fn step(&mut self, script: &mut Script, number: u32);
}

/// Bytes of so many MiB.
const fn mib(mebibytes: f64) -> u64 {
    (mebibytes * (1 << 20) as f64) as u64
}

#[cfg(test)]
mod tests;
