//! A DataLoader with `pin_memory=True`.
//!
//! ImageNet, as in PyTorch's own example: batches of 256 images of 3 x 224 x 224 in float32 (147 MiB)
//! with their labels (2 KiB). A thread pins two batches ahead while a third trains (`prefetch_factor`);
//! the program copies a batch to the device and frees it. An epoch has 1,281,167 images on eight ranks:
//! 626 batches, the last one of 146 images (83.8 MiB). A step is a batch. Every 250 steps there is an
//! evaluation, which ends in `empty_cache`, as in fairseq.

use std::collections::VecDeque;

use super::Program;
use super::script::{Handle, Script};

const IMAGE: u64 = 3 * 224 * 224 * 4;
const LABEL: u64 = 8;
const BATCH: u64 = 256;
const IMAGES: u64 = 1_281_167 / 8;
const AHEAD: usize = 2;
const COPIES: u32 = 0;
const PINNING: u32 = 1;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Loader {
    queue: VecDeque<[Handle; 2]>,
    loaded: u64,
}

impl Loader {
    fn load(&mut self, script: &mut Script) {
        let batch = BATCH.min(IMAGES - self.loaded);
        self.loaded = (self.loaded + batch) % IMAGES;
        script.on_thread(PINNING);
        let pinned = [batch * IMAGE, batch * LABEL].map(|bytes| script.alloc(bytes));
        script.on_thread(0);
        self.queue.push_back(pinned);
    }
}

impl Program for Loader {
    fn step(&mut self, script: &mut Script, number: u32) {
        while self.queue.len() <= AHEAD {
            self.load(script);
        }
        if let Some(batch) = self.queue.pop_front() {
            batch.iter().for_each(|it| script.copy(it, COPIES));
            script.wait(180_000);
            script.free_all(batch);
        }
        if number % 250 == 249 {
            script.clear();
        }
    }
}
