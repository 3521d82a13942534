//! Small numbers for blocks, used again once a replay has freed them, so that it looks blocks up in arrays.

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    used: u32,
    vacant: Vec<u32>,
}

impl Numbers {
    pub(crate) fn take(&mut self) -> u32 {
        self.vacant.pop().unwrap_or_else(|| {
            let number = self.used;
            // No machine has room for as many blocks as a `u32` counts.
            self.used = self.used.saturating_add(1);
            number
        })
    }

    pub(crate) fn give_back(&mut self, number: u32) {
        self.vacant.push(number);
    }
}
