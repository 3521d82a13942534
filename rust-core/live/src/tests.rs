//! Pages written and read, and bytes that are none.

use proptest::prelude::*;

use super::*;

fn node(node: u32, pinned: u64) -> NodeUse {
    let used = pinned / 2;
    NodeUse { node, pinned, used }
}

fn page() -> Page {
    Page {
        process: Process { pid: 4711, rank: Some((3, 8)), device: Some(1), program: "train.py".to_owned(), since: 1 },
        updated: 2,
        counters: Counters {
            retired: false,
            pinned: 100,
            peak_pinned: 200,
            live: 60,
            pending: 30,
            budget: Budget::Bytes(1000),
            segments: 4,
            served: 200,
            misses: 2,
            planned: 5,
            unplanned: 6,
            waits: 7,
            waited: 8,
        },
        nodes: vec![node(0, 70), node(u32::MAX, 30)],
    }
}

fn bytes(page: &Page) -> Vec<u8> {
    let mut bytes: Vec<u8> = page.words().into_iter().flat_map(u64::to_ne_bytes).collect();
    bytes.resize(LENGTH, 0);
    bytes
}

/// The page with one word changed.
fn with(index: usize, word: u64) -> Result<Page, Fault> {
    let mut bytes = bytes(&page());
    bytes[index * 8..index * 8 + 8].copy_from_slice(&word.to_ne_bytes());
    Page::read(&bytes)
}

#[test]
fn what_is_written_is_read() {
    let mut page = page();
    assert_eq!(Page::read(&bytes(&page)), Ok(page.clone()));
    page.process = Process { pid: 1, ..Process::default() };
    for budget in [Budget::Unknown, Budget::Unlimited] {
        page.counters.budget = budget;
        assert_eq!(Page::read(&bytes(&page)), Ok(page.clone()));
    }
    page.nodes = (0..17).map(|it| node(it, 4)).collect();
    assert_eq!(Page::read(&bytes(&page)).unwrap().nodes, page.nodes[..MOST_NODES]);
    assert_eq!(page.counters.idle(), 10);
    assert_eq!(page.counters.hit_rate(), Some(0.99));
}

#[test]
fn what_is_no_page_is_refused_by_name() {
    assert_eq!(Page::read(&[]), Err(Fault::Short(0)));
    assert_eq!(Page::read(&bytes(&page())[..WORDS * 8 - 1]), Err(Fault::Short(WORDS * 8 - 1)));
    assert_eq!(Page::read(&[0; LENGTH]), Err(Fault::Foreign));
    assert_eq!(with(1, 2), Err(Fault::Version(2)));
    assert_eq!(with(SEQUENCE, 7), Err(Fault::Torn));
    for (index, word) in [
        (3, 1 << 32),
        (6, 8),
        (10, 1 << 60),
        (10, 80),
        (12, u64::MAX),
        (14, 3),
        (40, (1 << 32) + 1),
        (41, 1 << 60),
        (42, 71),
    ] {
        assert!(matches!(with(index, word), Err(Fault::Absurd { .. })), "{index} {word}");
    }
}

#[test]
fn a_name_is_shortened_between_characters_and_tells_a_terminal_nothing() {
    let mut page = page();
    page.process.program = "ä".repeat(100);
    assert_eq!(Page::read(&bytes(&page)).unwrap().process.program, "ä".repeat(32));
    page.process.program = "\x1b[2Jtrain\n".to_owned();
    assert_eq!(Page::read(&bytes(&page)).unwrap().process.program, "?[2Jtrain?");
}

proptest! {
    /// Bytes of anybody's, behind a beginning that is right.
    #[test]
    fn no_bytes_make_it_panic(mut bytes in prop::collection::vec(any::<u8>(), WORDS * 8), begins: bool) {
        if begins {
            let right: Vec<u8> = page().words()[..3].iter().flat_map(|it| it.to_ne_bytes()).collect();
            bytes[..24].copy_from_slice(&right);
        }
        if let Ok(page) = Page::read(&bytes) {
            let of = page.counters;
            prop_assert!(of.live + of.pending <= of.pinned && of.idle() <= of.pinned);
        }
    }
}
