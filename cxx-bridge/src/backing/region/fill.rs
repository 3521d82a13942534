//! Fills a mapped region: on its node, with its kind of pages, and with small pages where compaction
//! stalls.

use super::super::compaction::Filled;
use super::super::mapping::Mapping;
use super::super::pages::Pages;
use super::super::tally::Tally;
use super::super::touch::{self, Toucher, Unfilled};
use super::super::{Control, background, numa};
use super::Maker;
use crate::log::{self, Bytes};

impl Maker {
    pub(super) fn fill(
        &self,
        mapping: &Mapping,
        pages: Pages,
        node: Option<u32>,
        toucher: Toucher<'_>,
    ) -> Result<(), Unfilled> {
        if let Some(node) = node
            && let Err(why) = numa::bind(mapping, node)
        {
            self.said.misplaced(|| why);
        }
        match pages {
            Pages::Transparent | Pages::Collapsed => {
                self.fill_transparent(mapping, pages, toucher)?;
            }
            Pages::Giant | Pages::Large | Pages::Medium | Pages::Small => {
                toucher.touch(mapping, 0..mapping.len(), pages)?;
            }
        }
        if let Some(node) = node {
            self.see_where_it_lies(mapping, node);
        }
        Ok(())
    }

    /// How the calling thread fills regions.
    pub(super) fn toucher<'a>(&self, control: &'a dyn Control, tally: &'a Tally) -> Toucher<'a> {
        let behind = background::entered();
        Toucher {
            threads: self.threads(),
            populates: self.machine.populates,
            rests: touch::rests(self.machine.cores, self.machine.processes, behind),
            control,
            tally,
        }
    }

    /// How many threads fill a region for the calling thread.
    pub(in crate::backing) fn threads(&self) -> usize {
        touch::threads(
            self.settings.pin_threads.value,
            self.machine.cores,
            self.machine.processes,
            background::entered(),
        )
    }

    fn fill_transparent(&self, mapping: &Mapping, pages: Pages, toucher: Toucher<'_>) -> Result<(), Unfilled> {
        let filled = self.stalls.fill(mapping, pages, toucher)?;
        if let Some(it) = toucher.tally.in_small_pages() {
            self.said.scattered.say(self.is_asked_for(), || {
                let (bytes, all) = (Bytes(it.bytes as u64), Bytes(mapping.len() as u64));
                format!(
                    "BUDDY_HUGE_PAGES: {bytes} of a region of {all} have pages of 4 KiB: the kernel \
                     did not put them together to huge ones: {}",
                    it.why
                )
            });
        }
        if let Filled::Stalled { until, huge, small } = filled {
            self.said.stalls.say(self.is_asked_for(), || {
                let size = Bytes(touch::slice(pages) as u64);
                format!(
                    "BUDDY_HUGE_PAGES: {size} of transparent huge pages took {huge:.1?} where pages \
                     of 4 KiB take {small:.1?}: memory is in pieces, or a host has to give it. \
                     Pages of 4 KiB wherever that is so"
                )
            });
            mapping.only_small(until);
            toucher.touch(mapping, until..mapping.len(), Pages::Small)?;
        }
        Ok(())
    }

    fn see_where_it_lies(&self, mapping: &Mapping, wanted: u32) {
        let Some(lies) = numa::where_it_lies(mapping.base(), mapping.len()) else {
            return;
        };
        if lies.node != wanted || lies.percent < 100 {
            self.said.misplaced(|| {
                let size = Bytes(mapping.len() as u64);
                let (percent, node) = (lies.percent, lies.node);
                format!("{percent} % of a region of {size} came to lie on node {node}, not {wanted}")
            });
        } else {
            log::debug(|| format!("all of a region lies on node {wanted}"));
        }
    }
}
