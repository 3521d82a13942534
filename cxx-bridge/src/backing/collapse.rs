//! Fills shared memory with huge pages where a touch brings small ones.
//!
//! That is usual: `shmem_enabled` is `never`. So one small page of each huge one is touched, and the kernel is
//! told to collapse them into huge pages (`MADV_COLLAPSE`, Linux 6.1 and later), which it does with any
//! setting but `deny`. It can refuse, temporarily or because memory is fragmented. Knows what the
//! kernel's answers mean, and makes no calls. Invariant: on success every page is present.

use std::io;
use std::ops::Range;

use super::pages::Sizes;

/// The kernel's calls on offsets in one mapping.
pub(super) trait Kernel {
    /// Fills this part with pages of any size.
    fn fill(&self, part: Range<usize>) -> io::Result<()>;
    /// Collapses this part into huge pages; each has a page that is present.
    fn collapse(&self, part: Range<usize>) -> io::Result<()>;
}

/// Memory that stayed in small pages instead of huge ones.
#[derive(Debug)]
pub(super) struct Scattered {
    pub(super) bytes: usize,
    /// The kernel's last answer.
    pub(super) why: io::Error,
}

/// Fills `part`, which begins at a huge-page boundary; a shorter end gets small pages. `None` if all
/// whole huge pages were collapsed.
pub(super) fn fill(kernel: &impl Kernel, part: Range<usize>, sizes: Sizes) -> io::Result<Option<Scattered>> {
    let whole = part.start..part.end - part.len() % sizes.large;
    for at in whole.clone().step_by(sizes.large) {
        kernel.fill(at..at + sizes.page)?;
    }
    let scattered = put_together(kernel, whole.clone(), sizes.large);
    if scattered.is_some() {
        kernel.fill(part)?;
    } else if whole.end < part.end {
        kernel.fill(whole.end..part.end)?;
    }
    Ok(scattered)
}

/// Collapses all at once, then what is left one by one: the kernel stops at the first that fails.
fn put_together(kernel: &impl Kernel, whole: Range<usize>, large: usize) -> Option<Scattered> {
    if whole.is_empty() {
        return None;
    }
    let why = kernel.collapse(whole.clone()).err()?;
    if !is_of_the_moment(&why) {
        let bytes = whole.len();
        return Some(Scattered { bytes, why });
    }
    let mut scattered: Option<Scattered> = None;
    for at in whole.step_by(large) {
        if let Err(why) = kernel.collapse(at..at + large) {
            let bytes = scattered.map_or(0, |it| it.bytes) + large;
            scattered = Some(Scattered { bytes, why });
        }
    }
    scattered
}

/// Whether a refusal may be temporary: there was no free huge page and the kernel has compacted memory
/// since, or a page or the control group's last charge was held elsewhere.
fn is_of_the_moment(why: &io::Error) -> bool {
    matches!(why.raw_os_error(), Some(libc::EAGAIN | libc::ENOMEM | libc::EBUSY))
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::super::pages::tests::KERNELS;
    use super::*;

    /// Answers calls to `collapse` in turn, then succeeds.
    struct MadeUp {
        answers: RefCell<Vec<Option<i32>>>,
        asked: RefCell<Vec<Range<usize>>>,
        filled: RefCell<Vec<Range<usize>>>,
        fills: Cell<bool>,
    }

    fn made_up(answers: &[Option<i32>]) -> MadeUp {
        MadeUp {
            answers: answers.iter().rev().copied().collect::<Vec<_>>().into(),
            asked: RefCell::default(),
            filled: RefCell::default(),
            fills: Cell::new(true),
        }
    }

    impl Kernel for MadeUp {
        fn fill(&self, part: Range<usize>) -> io::Result<()> {
            self.filled.borrow_mut().push(part);
            let refused = io::Error::from_raw_os_error(libc::ENOMEM);
            self.fills.get().then_some(()).ok_or(refused)
        }

        fn collapse(&self, part: Range<usize>) -> io::Result<()> {
            self.asked.borrow_mut().push(part);
            match self.answers.borrow_mut().pop().flatten() {
                None => Ok(()),
                Some(number) => Err(io::Error::from_raw_os_error(number)),
            }
        }
    }

    const M: usize = 1 << 20;
    const HERE: Sizes = KERNELS[0];

    fn are(parts: &RefCell<Vec<Range<usize>>>, expected: &[(usize, usize)]) -> bool {
        let parts = parts.borrow();
        let parts: Vec<_> = parts.iter().map(|it| (it.start, it.end)).collect();
        parts == expected
    }

    /// What is filled; what the kernel answers; what is put together, and what is touched or filled with small pages.
    #[test]
    fn a_page_of_each_is_touched_all_are_put_together_at_once_and_an_end_that_is_none_is_filled_with_small_ones() {
        for sizes in KERNELS {
            let Sizes { page, large } = sizes;
            let touched = [2, 3].map(|it| (it * large, it * large + page));
            for (what, range, answers, together, filled) in [
                ("whole ones", 2 * large..4 * large, &[][..], &[(2 * large, 4 * large)][..], &touched[..]),
                ("one and an end", 0..large + page, &[], &[(0, large)], &[(0, page), (large, large + page)]),
                ("no whole one", 0..large / 2, &[Some(libc::EINVAL)], &[], &[(0, large / 2)]),
            ] {
                let kernel = made_up(answers);
                assert!(fill(&kernel, range, sizes).unwrap().is_none(), "{what}");
                assert!(are(&kernel.asked, together), "{what}: {:?}", kernel.asked);
                assert!(are(&kernel.filled, filled), "{what}: {:?}", kernel.filled);
            }
        }
    }

    #[test]
    fn what_was_refused_for_a_moment_is_tried_again_one_by_one_and_small_pages_fill_what_is_left() {
        let (refused, never) = (Some(libc::ENOMEM), Some(libc::EINVAL));
        let one_by_one = &[(0, 4 * M), (0, 2 * M), (2 * M, 4 * M)][..];
        for (answers, asked, left) in [
            (&[Some(libc::EAGAIN), None, None][..], one_by_one, None),
            (&[refused, None, None], one_by_one, None),
            (&[Some(libc::EBUSY), None, None], one_by_one, None),
            (&[refused, None, refused], one_by_one, Some((2 * M, refused))),
            // A kernel that never does it is asked once.
            (&[never], &one_by_one[..1], Some((4 * M, never))),
        ] {
            let kernel = made_up(answers);
            let scattered = fill(&kernel, 0..4 * M, HERE).unwrap();
            assert_eq!(scattered.map(|it| (it.bytes, it.why.raw_os_error())), left, "{answers:?}");
            assert!(are(&kernel.asked, asked), "{answers:?}");
            let all = kernel.filled.borrow().last() == Some(&(0..4 * M));
            assert_eq!(all, left.is_some(), "{answers:?}");
        }
    }

    #[test]
    fn a_page_that_does_not_come_is_an_error() {
        let kernel = made_up(&[]);
        kernel.fills.set(false);
        assert!(fill(&kernel, 0..4 * M, HERE).is_err());
        assert_eq!(kernel.asked.borrow().len(), 0);
    }
}
