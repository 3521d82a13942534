//! What is planned of which records, by hand-made programs.

use pinbuddy_device::replay::Replay;

use super::*;

const MIB: u64 = 1 << 20;

/// A program on one stream of device 0.
struct Program {
    record: DeviceRecord,
    next: u64,
}

impl Program {
    fn new() -> Self {
        Self { record: DeviceRecord::new(u32::MAX), next: 0 }
    }

    fn ask(&mut self, mib: u64) -> u64 {
        self.ask_on((0, 0), mib)
    }

    fn ask_on(&mut self, stream: (u32, u32), mib: u64) -> u64 {
        self.ask_bytes(stream, mib * MIB)
    }

    fn ask_kib(&mut self, kib: u64) -> u64 {
        self.ask_bytes((0, 0), kib << 10)
    }

    fn ask_bytes(&mut self, stream: (u32, u32), bytes: u64) -> u64 {
        self.next += 1;
        assert!(self.record.request(stream, self.next, bytes));
        self.next
    }

    fn ask_all(&mut self, mib: &[u64]) -> Vec<u64> {
        mib.iter().map(|it| self.ask(*it)).collect()
    }

    fn free(&mut self, ids: impl IntoIterator<Item = u64>) {
        ids.into_iter().for_each(|id| self.record.over(0, id));
    }

    /// Plans, and what is reserved without and with them.
    fn planned(&self) -> (DevicePlan, Reserved, Reserved) {
        let watch = Watch { stop: &|| false, seen: &|_| {} };
        let (plan, chosen) = self.record.plan_watched(&Options::default(), watch);
        let [(_, chosen)] = &*chosen else { panic!("one device") };
        (plan, chosen.without, chosen.with)
    }
}

#[test]
fn each_stream_whose_requests_repeat_has_a_plan() {
    let mut it = Program::new();
    for turn in 0..12 {
        for (stream, sizes) in [((0, 7), vec![4, 12, 9]), ((0, 3), vec![13, 4]), ((1, 0), vec![2 + turn * turn % 89])] {
            let ids: Vec<u64> = sizes.iter().map(|mib| it.ask_on(stream, *mib)).collect();
            ids.into_iter().for_each(|id| it.record.over(stream.0, id));
        }
        it.record.iteration();
    }
    let made = it.record.plan(&Options::default(), &|| false);
    let of_device_0 = made.plans.iter().filter(|it| it.0.device == 0);
    let planned: Vec<_> = of_device_0.map(|(it, plan)| (it.number, plan.reserved() / MIB)).collect();
    assert_eq!(planned, [(0, 25), (1, 17)]);
    assert_eq!(it.record.hits(&made) as usize, it.record.len());
}

#[test]
fn one_large_request_behind_the_steps_has_its_place_where_they_lay() {
    let mut it = Program::new();
    for sizes in std::iter::repeat_n(vec![30, 16, 24], 30).chain([vec![90]]) {
        let ids = it.ask_all(&sizes);
        it.free(ids);
    }
    let (plan, without, with) = it.planned();
    assert_eq!(plan.reserved(), 90 * MIB);
    assert_eq!((without.stock, with.stock), (160 * MIB, 90 * MIB));
}

#[test]
fn one_step_is_an_iteration_and_what_comes_again_in_it_is_none() {
    // Layers whose activations live until the backward pass, with a buffer of their own for a moment.
    let mut it = Program::new();
    let mut activations = Vec::new();
    for _ in 0..12 {
        let buffer = it.ask(70);
        activations.push(it.ask(22));
        it.free([buffer]);
        activations.push(it.ask(15));
    }
    for id in activations.into_iter().rev() {
        let gradient = it.ask(33);
        it.free([id, gradient]);
    }
    let (plan, without, with) = it.planned();
    let peak = 12 * (22 + 15) * MIB + 33 * MIB;
    assert!(plan.reserved() <= peak + 33 * MIB, "{}", plan.reserved() / MIB);
    assert!(with.stock < without.stock.min(without.expandable));
}

/// A training whose optimizer makes its state in the first step; at the end all is freed.
#[test]
fn the_end_of_a_program_does_not_end_what_it_kept() {
    let mut it = Program::new();
    let mut kept = it.ask_all(&[20; 6]);
    for step in 0..12 {
        let activations = it.ask_all(&[31; 6]);
        let gradients = it.ask_all(&[20; 6]);
        it.free(activations);
        if step == 0 {
            kept.extend(it.ask_all(&[20; 12]));
        }
        for _ in 0..6 {
            let one = it.ask(20);
            it.free([one]);
        }
        it.free(gradients);
    }
    for end in [vec![], kept] {
        it.free(end);
        let (plan, _, with) = it.planned();
        assert_eq!(it.record.hits(&plan) as usize, it.record.len());
        assert_eq!(with.stock, (6 * 20 + 6 * 31 + 6 * 20 + 12 * 20) * MIB);
    }
}

#[test]
fn there_is_no_plan_where_nothing_is_better_than_pytorchs_allocator() {
    let mut it = Program::new();
    for _ in 0..20 {
        let ids = it.ask_all(&[20, 30]);
        it.free(ids);
    }
    let (plan, without, with) = it.planned();
    assert!(plan.plans.is_empty());
    assert_eq!((without.stock, with), (50 * MIB, without));
}

/// Short blocks live where long ones do not.
fn in_turns(short: usize) -> Program {
    let mut it = Program::new();
    for _ in 0..4 {
        let long = it.ask_all(&[40, 40]);
        it.free(long);
        let short: Vec<u64> = (0..short).map(|_| it.ask_kib(96)).collect();
        it.free(short);
    }
    it
}

#[test]
fn short_requests_are_planned_where_they_would_take_much() {
    let (plan, without, with) = in_turns(600).planned();
    assert_eq!(plan.threshold(), THRESHOLDS[1]);
    assert!(without.stock > 136 * MIB && with.stock == 80 * MIB, "{with:?}");
    // So does a process, unless too many live at once.
    for (short, is_planned) in [(600, true), (MOST_PACKED + 1, false)] {
        let mut it = in_turns(short);
        it.record.behind(Kind::Torch);
        assert_eq!(it.planned().0.plans.is_empty(), !is_planned);
    }
}

/// A training that fails before its last iteration, and goes on behind it as far as `goes_on` says.
fn failing(goes_on: impl Fn(&mut Program)) -> Program {
    let mut it = Program::new();
    for _ in 0..12 {
        let ids = it.ask_all(&[30, 16, 24]);
        it.free(ids);
        let ids = it.ask_all(&[60]);
        it.free(ids);
    }
    it.record.failed();
    goes_on(&mut it);
    it
}

#[test]
fn a_program_that_makes_room_after_a_failed_request_has_no_plan() {
    let empties = |it: &mut Program| {
        it.record.emptied();
        it.ask(10);
    };
    let frees = |it: &mut Program| {
        let id = it.ask(10);
        it.record.failed();
        it.free([id]);
        it.ask(10);
    };
    for searching in [failing(empties), failing(frees), failing(|it| it.record.failed_late())] {
        assert!(searching.record.searches());
        let plan = searching.record.plan(&Options::default(), &|| false);
        assert_eq!(plan, DevicePlan::default());
    }
}

#[test]
fn a_program_that_ends_with_a_failed_request_or_asks_for_less_has_a_plan() {
    let short = |it: &mut Program| {
        it.ask_bytes((0, 0), LENT_FROM - 1);
    };
    // Workspace of a library.
    let less = |it: &mut Program| {
        let id = it.ask(2);
        it.free([id]);
    };
    for ended in [failing(|_| {}), failing(short), failing(less)] {
        let (plan, without, with) = ended.planned();
        assert!(!ended.record.searches() && !plan.plans.is_empty());
        assert!(with.stock < without.stock);
    }
}

#[test]
fn the_limit_is_for_all_streams_together() {
    let mut record = DeviceRecord::new(4);
    for id in 0..10 {
        record.request((0, id as u32 % 2), id, MIB);
    }
    assert_eq!(record.len(), 4);
    assert!(record.is_full());
}

/// A server that sizes a pool by what is free behind a clear, serves, and frees the pool before its last request: plans, and what
/// is reserved behind the clear without and with them.
fn server(pool: &[u64], serve: impl Fn(&mut Program, u64), ends: bool) -> (DevicePlan, [u64; 2]) {
    let mut it = Program::new();
    it.record.behind(Kind::Torch);
    let load = |it: &mut Program| {
        let staged = it.ask(20);
        let weight = it.ask(37);
        it.free([staged]);
        weight
    };
    let weights: Vec<u64> = (0..24).map(|_| load(&mut it)).collect();
    forward(&mut it, 16);
    it.record.emptied();
    let until_it_looks = it.record.acts(0).count();
    let pool = it.ask_all(pool);
    (0..200).for_each(|turn| serve(&mut it, turn));
    it.free(pool);
    it.free(weights);
    it.ask(3);
    let plans = it.record.plan(&Options::default(), &|| ends);
    let held = [&DevicePlan::default(), &plans].map(|plans| {
        let mut replay = Replay::new(plans.before(0, Kind::Torch.model()).unwrap());
        it.record.acts(0).take(until_it_looks).for_each(|act| replay.step(act));
        replay.outcome().reserved_at_end / MIB
    });
    (plans, held)
}

/// Two layers.
fn forward(it: &mut Program, scale: u64) {
    let mut hidden = it.ask(8 * scale);
    for _ in 0..2 {
        let attention = it.ask(5 * scale);
        let wide = it.ask_all(&[28 * scale, 3 * scale]);
        it.free([attention]);
        let next = it.ask(8 * scale);
        it.free([std::mem::replace(&mut hidden, next)]);
        it.free(wide);
    }
    it.free([hidden]);
}

#[test]
fn a_pool_that_ends_before_the_record_leaves_as_much_to_be_found() {
    let steps = |it: &mut Program, turn| forward(it, [1, 3, 2, 1][turn as usize % 4]);
    for pool in [&[6000][..], &[250; 24]] {
        let (plans, [without, with]) = server(pool, steps, false);
        assert!(!plans.plans.is_empty());
        assert!(with <= without, "{with} MiB, {without} without");
        // A process that ends has no time for more than one try, which may give no plan.
        let (_, [without, with]) = server(pool, steps, true);
        assert!(with <= without, "{with} MiB, {without} without");
    }
}

#[test]
fn a_pool_behind_an_emptied_cache_has_a_region_of_its_own() {
    let mut it = Program::new();
    let _weights = it.ask_all(&[21, 33, 27]);
    let forward = |it: &mut Program| {
        let wide = it.ask_all(&[60, 32]);
        it.free(wide);
        let narrow = it.ask_all(&[90]);
        it.free(narrow);
    };
    forward(&mut it);
    it.record.emptied();
    let _pool = it.ask_all(&[70, 70]);
    (0..12).for_each(|_| forward(&mut it));
    let (plan, without, with) = it.planned();
    assert!(with.stock < without.stock);
    let plan = &plan.plans[0].1;
    let regions = |mib: u64| {
        let own = plan.slots.iter().filter(|it| it.bytes == mib * MIB);
        own.map(|it| it.region).collect::<Vec<_>>()
    };
    // Where the cache is emptied, only the weights' region has blocks.
    let weights = [21, 33, 27].map(regions).concat();
    let others = [60, 32, 90, 70].map(regions).concat();
    assert!(weights.iter().all(|it| !others.contains(it)));
    assert_eq!(plan.regions[weights[0] as usize], 81 * MIB);
}

/// One training after the other in a process, as a search for hyperparameters does: of each only the last batch is left when the
/// cache is emptied. Rows of a batch, steps; and at which acts each has ended.
fn trainings(it: &mut Program, width: u64, sizes: &[(u64, u64)]) -> Vec<usize> {
    let square = width * width / 256;
    let weights: Vec<u64> = [3, 1, 4, 4].repeat(5).iter().map(|by| square * by).collect();
    let mut batch = it.ask_kib(16);
    let mut ends = Vec::new();
    for &(rows, steps) in sizes {
        let mut kept: Vec<u64> = weights.iter().map(|kib| it.ask_kib(*kib)).collect();
        let hidden = rows * width / 2;
        for step in 0..steps {
            let next = it.ask_kib(16);
            it.free([std::mem::replace(&mut batch, next)]);
            let small: Vec<u64> = (0..60).map(|_| it.ask_kib(90)).collect();
            it.free(small);
            let layer = [1, 3, 1, 4, 4, 1].map(|by| hidden * by).repeat(5);
            let mut saved: Vec<u64> = layer.iter().map(|kib| it.ask_kib(*kib)).collect();
            let mut gradients = Vec::new();
            for &kib in weights.iter().rev() {
                let own = it.ask_kib(hidden);
                gradients.push(it.ask_kib(kib));
                let done = saved.split_off(saved.len().saturating_sub(2));
                it.free(done.into_iter().chain([own]));
            }
            if step == 0 {
                let states = weights.iter().chain(&weights);
                kept.extend(states.map(|kib| it.ask_kib(*kib)));
            }
            it.free(gradients);
        }
        it.free(kept);
        it.record.emptied();
        ends.push(it.record.acts(0).count());
    }
    ends
}

#[test]
fn a_model_that_is_gone_leaves_no_region_to_a_batch_that_stays() {
    let mut it = Program::new();
    it.record.behind(Kind::Torch);
    let ends = trainings(&mut it, 384, &[(4, 5), (16, 8), (8, 4), (8, 6), (16, 5)]);
    let plans = it.record.plan(&Options::default(), &|| false);
    assert_eq!(plans.plans.len(), 1, "one stream has a plan");
    let mut replay = Replay::new(plans.before(0, Kind::Torch.model()).unwrap());
    for (at, act) in (1..).zip(it.record.acts(0)) {
        replay.step(act);
        let held = replay.outcome().reserved_at_end;
        // PyTorch's own segment of small requests.
        assert!(!ends.contains(&at) || held <= 2 * MIB, "{held} B");
    }
}
