//! PR_BODY.md: the description of the pull request, in the form that PyTorch's pull requests have.
//!
//! Invariant: every result in it is of this run or of a file of results.

use std::fmt::Write as _;

use super::proposal::Proposal;
use crate::cli::upstream_pr::Kind;
use crate::upstream::tested::Tested;

/// The parts of the description.
pub struct Body<'a> {
    /// The commits.
    pub proposal: &'a Proposal,
    /// For PyTorch, or for a mainline of one's own.
    pub kind: Kind,
    /// What clang-format says, as a list; empty where it was not asked.
    pub layout: &'a str,
    /// The results of the tests, if they were run on these patches.
    pub tested: Option<&'a Tested>,
    /// The table, and where it was measured.
    pub benchmark: &'a str,
    /// The tree's own form, where it has one.
    pub form: Option<&'a str>,
}

const WHY_SEAM: &str = "\
Related to #181094.

## Why

Programs differ in what they need of pinned memory: no rounding to powers of two (#150517, #95823, #106606),
memory pinned ahead of the first iteration (#124456, #97432, #186162), memory given back (#134051), memory
near a device (#160420). Each of them as a mode of the built-in allocator is a knob more, and new code on
everybody's path. At present the alternative is to replace the host allocator as a whole, with its
events, graph pools, statistics and traces.

This adds no policy and no knob. It opens the points where a subclass of `CachingHostAllocatorImpl`, in the
tree or outside of it, can serve *some* requests from memory of its own, and leave everything else to the
mechanism that is there.
";

const WHAT_STAYS: &str = "\
## What stays as it is

- No backend in the tree overrides any of it, so none behaves differently. `allocate`, `free`,
  `record_event` and `process_events` are not touched: nothing is added to a path that allocates or frees.
- Three reports that nobody calls in a loop become virtual (`getStats`, `resetAccumulatedStats`,
  `resetPeakStats`), and so does `getSegments`. `at::HostAllocator`, which crosses libraries, is as it was.
- The constructor of `CachingHostAllocatorInterface` that is there stays; there is one more.

## Questions that came up before

| question | answer |
|---|---|
| New behaviour by default? (#181217) | None: without a subclass there is nothing to turn on. |
| Rounding and caching are separate knobs (#171662), NUMA is opt-in (#160420) | Neither is touched; a subclass decides for its own blocks only. |
| Graph capture | `serves_default_pool()` says whether a request belongs to the default pool and to no capture. A private pool still owns every block that it hands out; tested. |
| Driver calls under a lock | None is added, and the hooks are called under no lock of the allocator. |
| Background thread | Untouched: it processes the default pool's events as before. |
| Statistics, snapshot, trace | A subclass adds its own to what this class counts; tested. |
| Other backends | The hooks are in the class that all of them share, and the test runs with a backend of no device. |
| Cost where nobody uses it | A virtual call for each statistics report. Only a subclass calls `serves_default_pool()`, which is one relaxed load while nobody captures. |

Left out on purpose: any allocator that uses this, any setting, and Python API.
";

const WHY_FULL: &str = "\
## Why

The fork of PyTorch's pinned-memory allocator as a series for a mainline of our own: blocks pinned ahead and
split by a buddy engine, exact fit, nothing of it on with `BUDDY_DISABLE=1`.
";

impl Body<'_> {
    /// The text.
    pub fn render(&self) -> String {
        let mut text = match self.kind {
            Kind::Seam => WHY_SEAM.to_owned(),
            Kind::Full => WHY_FULL.to_owned(),
        };
        text += "\n## What\n";
        for step in &self.proposal.steps {
            let _ = write!(
                text,
                "\n**{}**\n\n{}\n",
                step.message.subject, step.message.body
            );
        }
        if self.kind == Kind::Seam {
            let _ = write!(text, "\n{WHAT_STAYS}");
        }
        let _ = write!(text, "\n## Test plan\n\n{}", self.test_plan());
        if !self.layout.is_empty() {
            let layout = self.layout;
            let _ = write!(
                text,
                "\nThe layout of the lines that this changes:\n\n{layout}"
            );
        }
        let what = match self.kind {
            Kind::Seam => {
                "A subclass outside of the tree that uses these hooks, beside the built-in allocator."
            }
            Kind::Full => "This allocator beside the built-in one.",
        };
        let _ = write!(text, "\n## Benchmark\n\n{what} {}", self.benchmark);
        text += "\ncc\n";
        if self.kind == Kind::Seam {
            text += "\n@pytorchbot label \"release notes: cuda\"\n";
        }
        if let Some(form) = self.form {
            let lines = form.lines().filter(|it| !it.starts_with("Fixes #"));
            let lines: Vec<_> = lines.collect();
            let _ = write!(text, "\n{}\n", lines.join("\n").trim());
        }
        text
    }

    fn test_plan(&self) -> String {
        let mut text = match self.kind {
            Kind::Seam => "\
```
cmake --build build --target host_allocator_subclass_test cuda_caching_host_allocator_test
build/bin/host_allocator_subclass_test
build/bin/cuda_caching_host_allocator_test
python test/test_cuda.py -k pinned_memory
```

"
            .to_owned(),
            Kind::Full => {
                "```\ncargo test --locked --manifest-path third_party/pinbuddy/Cargo.toml\n```\n\n"
                    .to_owned()
            }
        };
        match (self.tested, self.kind) {
            (Some(tested), _) => {
                let _ = writeln!(
                    text,
                    "Run without a build of the tree: the tests compiled against an official wheel's headers with \
                     this change, and linked with its libraries ({}; the simulator is a CUDA runtime with real \
                     streams and page-locked memory and no GPU).\n",
                    tested.on
                );
                for line in &tested.results {
                    let _ = writeln!(text, "- {line}");
                }
            }
            (None, Kind::Seam) => {
                text += "Not run on these patches yet: `cargo xtask test-upstream --seam`.\n";
            }
            (None, Kind::Full) => text += "Not run in this tree.\n",
        }
        text
    }
}
