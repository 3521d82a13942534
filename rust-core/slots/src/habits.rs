//! What a lane has done at its steps so far: how much was live when it came to each, and for how long its blocks lived.
//!
//! A plan says neither. A lane that does as planned once knows both, and then they tell where it is when sizes do not, and
//! for how long a place is needed. Where the least was live, the program is between two iterations: a *rest*. Time is
//! the number of the lane's requests.

use crate::layout::GRANULE;

const UNKNOWN: u32 = u32::MAX;

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(crate) struct Habits {
    now: u32,
    /// Granules that were live, by step.
    live: Vec<u32>,
    /// The longest life, by step; 0 is not known.
    lives: Vec<u32>,
    /// Until the step's place is used again.
    most: Vec<u32>,
    /// No more granules than this are live at a rest; none before the first period is over.
    rest: Option<u32>,
    /// The fewest that were live since the period began. The prologue's count, too, when a program has just begun: so rests
    /// are known one period later. Knowing them earlier gained nothing in `simulate --device`, and lost places where
    /// requests differ at random.
    least: u32,
    slack: u32,
}

/// What a lane has learned about rests by coming to a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    None,
    /// This step did not rest and does now, or the other way round.
    Step,
    /// How much may be live at a rest.
    Rest,
}

/// As much as a region's so manieth part may be live at a rest beyond what was at others.
const SLACK: usize = 256;

/// So many times that may be more or less live at the same step.
const COARSE: u32 = 8;

impl Habits {
    /// Of so many steps in so many bytes of regions.
    pub(crate) fn new(steps: usize, bytes: usize) -> Self {
        Self {
            rest: None,
            least: UNKNOWN,
            slack: (bytes / GRANULE / SLACK) as u32,
            now: 0,
            live: vec![UNKNOWN; steps],
            lives: vec![0; steps],
            most: vec![UNKNOWN; steps],
        }
    }

    #[inline]
    pub(crate) fn asked(&mut self) {
        self.now = self.now.wrapping_add(1);
    }

    pub(crate) fn now(&self) -> u32 {
        self.now
    }

    /// The lane, which knows its place, comes to a step; with `is_over` it is the last one of the period.
    #[inline]
    pub(crate) fn saw(&mut self, step: usize, live: usize, is_over: bool) -> News {
        let live = (live / GRANULE) as u32;
        let before = std::mem::replace(&mut self.live[step], live);
        self.least = self.least.min(live);
        if is_over {
            let rest = Some(self.least.saturating_add(self.slack));
            self.least = UNKNOWN;
            if std::mem::replace(&mut self.rest, rest) != rest {
                return News::Rest;
            }
        }
        let rests = |live| self.rest.is_some_and(|rest| live <= rest);
        match rests(before) == rests(live) {
            true => News::None,
            false => News::Step,
        }
    }

    /// Whether the program is between two iterations, if as much is live.
    #[inline]
    pub(crate) fn is_resting(&self, live: usize) -> bool {
        self.rest.is_some_and(|it| live / GRANULE <= it as usize)
    }

    /// Whether it is elsewhere at this step, as far as is known.
    #[inline]
    pub(crate) fn works_at(&self, step: usize) -> bool {
        self.live.get(step).is_none_or(|it| *it != UNKNOWN) && !self.is_resting_at(step)
    }

    /// Whether it is at this step.
    pub(crate) fn is_resting_at(&self, step: usize) -> bool {
        let live = self.live.get(step);
        live.zip(self.rest).is_some_and(|(live, rest)| *live <= rest)
    }

    #[inline]
    pub(crate) fn over(&mut self, step: usize, since: u32) {
        let life = self.now.wrapping_sub(since).max(1);
        self.lives[step] = self.lives[step].max(life);
    }

    /// A block of this step lives for so many requests at most.
    pub(crate) fn at_most(&mut self, step: usize, requests: u32) {
        self.most[step] = self.most[step].min(requests);
    }

    pub(crate) fn life(&self, step: usize) -> Option<usize> {
        let (&life, &most) = (self.lives.get(step)?, self.most.get(step)?);
        let life = if life > 0 { life } else { most };
        (life != UNKNOWN).then_some(life as usize)
    }

    /// Whether much less is live than at this step at other times: the lane is elsewhere.
    pub(crate) fn strayed(&self, step: usize, live: usize) -> bool {
        let known = self.live.get(step).filter(|it| **it != UNKNOWN);
        known.is_some_and(|&it| live / GRANULE < it as usize / 8 * 7)
    }

    /// By how much what was live at this step differs, in units that leave out what comes by chance.
    pub(crate) fn differs(&self, step: usize, live: usize) -> u32 {
        let known = self.live.get(step).copied().unwrap_or(UNKNOWN);
        let unit = (self.slack * COARSE).max(1);
        known.abs_diff((live / GRANULE) as u32) / unit
    }
}
