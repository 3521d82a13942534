//! Defects for tests that have to find them (`crate::seeded`). Knows what each breaks, and not who sees it.

use super::Slots;

impl Slots {
    /// As if no request had moved the first lane's cursor.
    pub(crate) fn corrupt_cursor(&mut self) {
        self.courses[0].corrupt_cursor();
    }

    /// As if its cells had not been taken.
    pub(crate) fn corrupt_to_free(&mut self, slot: u32) {
        let place = &self.places[slot as usize];
        self.cells.free(place.slot.region, place.cells.clone());
    }

    /// As if its cells had not been freed.
    pub(crate) fn corrupt_to_taken(&mut self, slot: u32) {
        let place = &self.places[slot as usize];
        self.cells.take(place.slot.region, place.cells.clone());
    }
}
