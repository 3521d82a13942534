//! The reader of live pages, which `pinbuddy top` finds in other processes.

use pinbuddy_live::{MOST_BYTES, Page};

/// Reads `bytes` as a page: its numbers agree and are in their ranges, its name does nothing to a terminal, and what was
/// read is written and read again, the same.
pub fn run(bytes: &[u8]) {
    let page = match Page::read(bytes) {
        Ok(page) => page,
        Err(why) => {
            assert!(!why.to_string().is_empty());
            return;
        }
    };
    let of = &page.counters;
    assert!(of.live + of.pending <= of.pinned && of.pinned <= MOST_BYTES);
    assert_eq!(of.idle() + of.live + of.pending, of.pinned);
    assert!(of.budget.bytes().is_none_or(|it| it <= MOST_BYTES));
    assert!(of.hit_rate().is_none_or(|it| (0.0..=1.0).contains(&it)));
    assert!(page.process.rank.is_none_or(|(rank, of)| rank < of));
    assert!(!page.process.program.chars().any(char::is_control));
    assert!(page.nodes.iter().all(|it| it.used <= it.pinned && it.pinned <= MOST_BYTES));
    let words = page.words().map(u64::to_ne_bytes).concat();
    let mut again = Page::read(&words).unwrap();
    // A byte that is no text was replaced by three, for which there may be no room.
    assert!(page.process.program.starts_with(&again.process.program));
    again.process.program.clone_from(&page.process.program);
    assert_eq!(again, page);
}
