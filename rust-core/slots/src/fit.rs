//! What part of the latest requests had their places in the plan.
//!
//! An average in which a request counts for the less, the longer ago it was. Knows neither sizes nor steps.

/// All had.
const ALL: u32 = 1 << 20;

/// So many requests are the latest, roughly.
const LATEST: u32 = 64;

/// A plan fits well where nine of ten requests have their places. Found by trial, as [`LATEST`] was: with 0.3, 0.6, 0.8 or 0.97 in its
/// place, or with 32 requests, more is reserved in runs that differ from the recorded one (`replay/tests/device_*`); 0.85 and 128
/// are as good.
const WELL: u32 = ALL / 10 * 9;

/// See the module's documentation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fit(u32);

impl Default for Fit {
    fn default() -> Self {
        Self(ALL)
    }
}

impl Fit {
    /// A request, and whether it had its place.
    #[inline]
    pub(crate) fn saw(&mut self, has_place: bool) {
        self.0 = match has_place {
            true => self.0 + (ALL - self.0) / LATEST,
            false => self.0 - self.0 / LATEST,
        };
    }

    /// Whether many had none.
    pub(crate) fn is_poor(self) -> bool {
        self.0 < WELL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_fits_until_more_than_one_of_ten_requests_has_no_place() {
        let mut fit = Fit::default();
        let ask = |fit: &mut Fit, one_in: u32| (1..=1000).for_each(|it| fit.saw(it % one_in != 0));
        ask(&mut fit, 20);
        assert!(!fit.is_poor());
        ask(&mut fit, 5);
        assert!(fit.is_poor());
        ask(&mut fit, 1001);
        assert!(!fit.is_poor());
        (0..6).for_each(|_| fit.saw(false));
        assert!(!fit.is_poor(), "a few in a row are not many");
    }
}
