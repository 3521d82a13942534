//! The places of one stream's plan, until a defect of ours: a panic in the slots retires them.
//!
//! Invariant: no panic leaves this file. Retired places serve nothing more and are never looked at again, since the panic may
//! have left them half changed. Blocks that were handed out stay valid, and regions are given back together, once the last of
//! these blocks is released. Knows neither C++ nor the allocator below.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pinbuddy_plan::device::LENT_FROM;
use pinbuddy_slots::{Borrowed, Counts, Lent, Slots, Taken};

/// What a request gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) address: usize,
    /// None: it lies in what the plan leaves idle.
    pub(crate) slot: Option<u32>,
}

/// What the slots answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Answer {
    /// There is no place.
    #[default]
    Nothing,
    /// This slot is free, or any place would do, but its region, the second number, is not there.
    Needs(Option<u32>, usize),
    /// A place.
    Has(Placed),
}

impl From<Taken> for Placed {
    fn from(taken: Taken) -> Self {
        let (address, slot) = (taken.address, Some(taken.slot));
        Self { address, slot }
    }
}

impl From<Borrowed> for Placed {
    fn from(lent: Borrowed) -> Self {
        let (address, slot) = (lent.address, None);
        Self { address, slot }
    }
}

/// Acts on the slots, or a model; the default answer if there are none, or they are retired, which a panic does.
#[inline]
pub(super) fn caught<S, T: Default>(retired: &Cell<bool>, of: Option<S>, act: impl FnOnce(S) -> T) -> T {
    let Some(of) = of.filter(|_| !retired.get()) else {
        return T::default();
    };
    // Unwind safety: they are never used again.
    catch_unwind(AssertUnwindSafe(|| act(of))).unwrap_or_else(|_| {
        retired.set(true);
        T::default()
    })
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Places {
    /// None where nothing is planned for the stream.
    slots: Option<Slots>,
    lengths: Vec<usize>,
    longest: usize,
    /// Whether each region has an address.
    is_reserved: Vec<bool>,
    /// Blocks that were handed out and are still used.
    used: usize,
    retired: Cell<bool>,
    /// Whether retirement was reported.
    reported: bool,
}

impl Places {
    pub(crate) fn new(slots: Option<Slots>) -> Self {
        let lengths = slots.as_ref().map_or(&[][..], Slots::lengths).to_vec();
        Self {
            is_reserved: vec![false; lengths.len()],
            longest: lengths.iter().copied().max().unwrap_or(0),
            slots,
            lengths,
            used: 0,
            retired: Cell::new(false),
            reported: false,
        }
    }

    /// The bytes of each region.
    pub(crate) fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// Whether the places were retired since this was last asked.
    pub(crate) fn take_retirement(&mut self) -> bool {
        let is_retired = self.retired.get();
        is_retired && !std::mem::replace(&mut self.reported, true)
    }

    #[cfg(test)]
    fn is_retired(&self) -> bool {
        self.retired.get()
    }

    /// Changes the slots. Without slots, or once they are retired, the answer is the default one.
    #[inline]
    fn change<T: Default>(&mut self, act: impl FnOnce(&mut Slots) -> T) -> T {
        caught(&self.retired, self.slots.as_mut(), act)
    }

    /// The same for what reads the slots.
    fn read<T: Default>(&self, act: impl FnOnce(&Slots) -> T) -> T {
        caught(&self.retired, self.slots.as_ref(), act)
    }

    /// The region lies at this address from now on.
    pub(crate) fn reserved(&mut self, region: usize, base: usize) {
        if let Some(is_reserved) = self.is_reserved.get_mut(region) {
            *is_reserved = true;
        }
        self.change(|it| it.pinned(region, base));
    }

    /// For how many requests an iteration has places.
    pub(crate) fn turn(&self) -> usize {
        self.read(|it| it.turn(0))
    }

    /// The regions in which nothing lies; they are the caller's.
    pub(crate) fn take_idle(&mut self) -> Vec<usize> {
        let mut idle = self.change(|it| {
            let idle = it.take_idle().into_iter();
            idle.map(|(region, _)| region).collect::<Vec<_>>()
        });
        if self.retired.get() {
            // Which region a block lies in is known to the slots alone.
            let all = 0..self.lengths.len();
            idle = all.filter(|&it| self.used == 0 && self.is_reserved[it]).collect();
        }
        for &region in &idle {
            self.is_reserved[region] = false;
        }
        idle
    }

    /// A place for a request.
    #[inline]
    pub(crate) fn request(&mut self, bytes: usize) -> Answer {
        let longest = self.longest;
        let answer = self.change(|slots| {
            panics_for_a_test();
            if let Some(taken) = slots.request(0, bytes) {
                return Answer::Has(taken.into());
            }
            if let Some((slot, region)) = slots.take_needed(bytes) {
                return Answer::Needs(Some(slot), region);
            }
            // It is short, or no place is long enough. The lane has seen the request all the same.
            let may_lend = (LENT_FROM as usize..=longest).contains(&bytes);
            match may_lend.then(|| slots.lend(0, bytes)).flatten() {
                Some(Lent::Slot(taken)) => Answer::Has(taken.into()),
                Some(Lent::Place(lent)) => Answer::Has(lent.into()),
                Some(Lent::Needs(slot, region)) => Answer::Needs(slot, region),
                None => Answer::Nothing,
            }
        });
        self.used += usize::from(matches!(answer, Answer::Has(_)));
        answer
    }

    /// A place for a request that needed this slot, once its region is there.
    pub(crate) fn serve_needed(&mut self, slot: u32) -> Option<Placed> {
        let taken = self.change(|it| it.serve_needed(slot))?;
        self.used += 1;
        Some(taken.into())
    }

    /// Whether a region has slots; else all of it is lent.
    pub(crate) fn has_slots(&self, region: usize) -> bool {
        self.read(|it| region < it.regions_with_slots())
    }

    /// What is idle, whoever wants it next: for a request that finds no other memory, or for which a region was taken.
    pub(crate) fn borrow(&mut self, bytes: usize) -> Option<Placed> {
        let lent = self.change(|it| it.lend_any(bytes))?;
        self.used += 1;
        Some(lent.into())
    }

    /// The block was freed, and other streams still use it.
    pub(crate) fn defer(&mut self, placed: Placed) {
        self.change(|it| match placed.slot {
            Some(slot) => it.set_pending(slot, true),
            None => it.set_pending_at(placed.address, true),
        });
    }

    /// Nobody uses the block any more.
    #[inline]
    pub(crate) fn release(&mut self, placed: Placed) {
        self.used = self.used.saturating_sub(1);
        self.change(|it| {
            let was_in_use = match placed.slot {
                Some(slot) => it.release(slot),
                None => it.give_back(placed.address),
            };
            debug_assert!(was_in_use, "{placed:?} was freed twice");
        });
    }

    pub(crate) fn iteration(&mut self) {
        self.change(|it| it.iteration(0));
    }

    pub(crate) fn counts(&self) -> Counts {
        // Also once retired: plain numbers, which no panic leaves wrong.
        let counts = || self.slots.as_ref().map(Slots::counts);
        catch_unwind(AssertUnwindSafe(counts)).ok().flatten().unwrap_or_default()
    }
}

/// For tests: the next requests of all plans panic.
#[cfg(debug_assertions)]
static BROKEN: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Has the next request of each plan panic, as a defect of ours would: for tests, in a debug build only.
#[cfg(all(debug_assertions, feature = "torch"))]
pub(crate) fn break_down() {
    BROKEN.store(true, std::sync::atomic::Ordering::Relaxed);
}

#[inline]
fn panics_for_a_test() {
    #[cfg(debug_assertions)]
    assert!(!BROKEN.load(std::sync::atomic::Ordering::Relaxed), "a test had the plan break down");
}

#[cfg(test)]
mod tests {
    use pinbuddy_slots::{Lane, Layout, Slot};

    use super::*;

    const MIB: usize = 1 << 20;
    const NO_SLOT: Placed = Placed { address: 0, slot: Some(1 << 20) };

    /// Two regions of a slot each, at 1 GiB and 2 GiB.
    fn places() -> Places {
        let slot = |region| Slot { region, offset: 0, bytes: 4 * MIB };
        let lane = Lane { prologue: Vec::new(), period: vec![0, 1], ..Lane::default() };
        let layout = Layout { regions: vec![4 * MIB, 4 * MIB], slots: vec![slot(0), slot(1)], lanes: vec![lane] };
        let mut places = Places::new(Slots::learning(&layout).ok());
        places.reserved(0, 1 << 30);
        places.reserved(1, 2 << 30);
        places
    }

    fn request(places: &mut Places) -> Option<Placed> {
        match places.request(4 * MIB) {
            Answer::Has(placed) => Some(placed),
            _ => None,
        }
    }

    #[test]
    fn a_panic_retires_the_plan_and_its_blocks_stay_valid() {
        let mut places = places();
        let [first, second] = [(); 2].map(|()| request(&mut places).unwrap());
        assert_eq!([first.address, second.address], [1 << 30, 2 << 30]);
        assert!(!places.take_retirement());
        places.release(second);
        places.defer(NO_SLOT);
        assert!(places.take_retirement() && places.is_retired());
        assert_eq!(places.counts().hits, 2);
        assert!(!places.take_retirement(), "it is said once");
        assert_eq!(request(&mut places), None);
        assert_eq!(places.borrow(MIB), None);
        assert_eq!(places.take_idle(), [0; 0], "a block lies in one of the regions");
        places.defer(first);
        places.release(first);
        assert_eq!(places.take_idle(), [0, 1]);
        assert_eq!(places.take_idle(), [0; 0], "they are the caller's");
    }

    #[test]
    fn a_region_that_was_given_back_before_is_not_given_back_again() {
        let mut places = places();
        let first = request(&mut places).unwrap();
        assert_eq!(places.take_idle(), [1]);
        places.defer(NO_SLOT);
        places.release(first);
        assert_eq!(places.take_idle(), [0]);
    }

    #[test]
    fn no_call_panics_whatever_it_is_asked() {
        let out_of_place = [
            |it: &mut Places| it.reserved(7, 0),
            |it: &mut Places| it.defer(NO_SLOT),
            #[cfg(debug_assertions)]
            |it: &mut Places| it.release(NO_SLOT),
        ];
        for call in out_of_place {
            let mut places = places();
            call(&mut places);
            assert!(places.is_retired());
            places.iteration();
            assert_eq!(places.turn(), 0);
            assert_eq!(places.take_idle(), [0, 1]);
        }
        let mut nothing = Places::new(None);
        nothing.iteration();
        assert_eq!(request(&mut nothing), None);
        assert!(!nothing.is_retired() && nothing.take_idle().is_empty());
    }
}
