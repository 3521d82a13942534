//! The runs that are kept beside a look at all runs.

use proptest::prelude::*;

use super::*;
use crate::layout::Slot;

proptest! {
    /// Cells of one to three granules in two regions, between which a number lies.
    #[test]
    fn runs_that_are_kept_answer_as_a_look_at_all_of_them(
        lengths in prop::collection::vec(1..4_usize, 1..300),
        split in 0..300_usize,
        acts in prop::collection::vec((0..8_u8, 0..2_u32, 1..12_usize, 12..16_usize), 1..400),
    ) {
        let split = split.min(lengths.len());
        let mut layout = Layout::default();
        for (region, lengths) in (0_u32..).zip([&lengths[..split], &lengths[split..]]) {
            let mut offset = 0;
            for bytes in lengths.iter().map(|it| it * GRANULE) {
                layout.slots.push(Slot { bytes, region, offset });
                offset += bytes;
            }
            layout.regions.push(offset);
        }
        let mut cells = Cells::new(&layout, false);
        let mut taken: Vec<(u32, Range<u32>)> = Vec::new();
        for (act, region, granules, most) in acts {
            if act < 3 && !taken.is_empty() {
                let (region, run) = taken.swap_remove(granules % taken.len());
                cells.free(region, run);
                continue;
            }
            cells.looked();
            let mut looks = cells.clone();
            looks.gaps = Gaps::default();
            let (bytes, most) = (granules * GRANULE, most * GRANULE);
            let found = cells.best_fit(region, bytes, most, None);
            prop_assert_eq!(&found, &looks.best_fit(region, bytes, most, None));
            if let Some((_, run)) = found {
                prop_assert!(cells.take(region, run.clone()));
                // Now and then nobody looks for a while.
                for _ in 0..if act == 7 { 40 } else { 0 } {
                    cells.free(region, run.clone());
                    prop_assert!(cells.take(region, run.clone()));
                }
                taken.push((region, run));
            }
        }
    }
}
