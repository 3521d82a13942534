//! Until when blocks may live that other streams use. When those are done is chance, and a record has most blocks of its beginning
//! once: each may be as late as any was, and is behind the next request at least.

use pinbuddy_device::Act;

/// A block that other streams used. Acts are numbers in the record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Late {
    /// The first act after its free.
    pub(super) freed: u32,
    /// With this act it was over.
    pub(super) over: u32,
}

/// By acts with which blocks were over, in order: the first acts for which each may be over, if it is as late as any was, or is
/// behind the next request.
pub(super) fn ends(acts: impl Iterator<Item = Act>, late: &[Late]) -> Vec<(u32, [u32; 2])> {
    if late.is_empty() {
        return Vec::new();
    }
    let requests = (0..).zip(acts);
    let requests = requests.filter(|it| matches!(it.1, Act::Alloc { .. }));
    let requests: Vec<u32> = requests.map(|it| it.0).collect();
    let behind_one = |it: &Late| {
        let next = requests.partition_point(|request| *request < it.freed);
        let next = requests.get(next).map_or(it.over, |request| request + 1);
        it.over.max(next)
    };
    let latest = late.iter().map(|it| behind_one(it) - it.freed).max();
    let end = |it: &Late| (it.over, [it.freed + latest.unwrap_or(0), behind_one(it)]);
    late.iter().map(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_as_late_as_any_or_behind_the_next_request() {
        let request = |block| Act::Alloc { block, bytes: 1, stream: 0 };
        let over = |block| Act::Free { block };
        let acts = [request(0), over(0), request(1), request(2), request(3), over(1), over(2), over(3)];
        let late = [(1, 1), (3, 5), (5, 6), (7, 7)].map(|(freed, over)| Late { freed, over });
        assert_eq!(ends(acts.into_iter(), &late), [(1, [3, 3]), (5, [5, 5]), (6, [7, 6]), (7, [9, 7])]);
        assert_eq!(ends(acts.into_iter(), &[]), []);
    }
}
