//! `cargo xtask upstream-pr`: a proposal to PyTorch, as a branch, patches and a description.
//!
//! Invariants: the checkout gets a branch, and nothing else changes in it; everything is made, or nothing.

mod benchmark;
mod body;
mod checkout;
mod draft;
mod layout;
mod message;
mod proposal;
#[cfg(test)]
mod tests;
mod vendor;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cli::upstream_pr::{Kind, UpstreamPr};
use crate::python::Python;
use crate::support::paths;
use crate::support::progress::Progress;
use crate::support::refusal::refuse;
use crate::support::scratch::Scratch;
use body::Body;
use checkout::Checkout;
use draft::Draft;
use proposal::{Change, Proposal};
use xtask_patchkit::release::Versions;

/// The form that PyTorch's tree has for pull requests.
const FORM: &str = ".github/PULL_REQUEST_TEMPLATE.md";
/// The description's name beside the patches.
const BODY: &str = "PR_BODY.md";

/// The command.
pub fn run(args: &UpstreamPr) -> Result<()> {
    let root = paths::root();
    let python = Python::probe(Path::new("python3"))?;
    let versions = Versions::read(root)?;
    print!("{}", make(root, &versions, args, &python.executable)?);
    Ok(())
}

/// Where the branch starts, its name, and where the patches go.
struct Place {
    checkout: Checkout,
    /// The full name of the commit.
    base: String,
    branch: String,
    out: PathBuf,
}

/// Does it, or with `--dry-run` only tries. Returns a description for people.
fn make(root: &Path, versions: &Versions, args: &UpstreamPr, python: &Path) -> Result<String> {
    let progress = Progress::new(match (args.dry_run, args.kind) {
        (true, _) => 1,
        (false, Kind::Full) => 2,
        (false, Kind::Seam) => 3,
    });
    let place = Place::find(args)?;
    let Place {
        checkout,
        base,
        branch,
        out,
    } = &place;
    let read = |path: &str| checkout.read(base, path);
    let shown = checkout.root.display().to_string();
    let proposal = Proposal::make(root, versions, args.kind, &shown, &read)?;
    let results = match &args.bench {
        Some(file) => file.clone(),
        None => benchmark::newest(root)?,
    };
    let benchmark = benchmark::table(&results)?;
    let draft = progress.step("make the commits", |_| place.commit(&proposal))?;
    let mut said = place.describe(args, &proposal)?;
    if args.dry_run {
        let _ = writeln!(said, "  table     from {}", paths::show(&results));
        said += "nothing was changed (--dry-run)\n";
        return Ok(said);
    }
    let layout = match args.kind {
        Kind::Full => Vec::new(),
        Kind::Seam => progress.step("ask clang-format", |step| {
            layout::check(&draft, python, step)
        })?,
    };
    let layout: String = layout.iter().map(|it| format!("- {it}\n")).collect();
    let form = checkout.read(base, FORM)?;
    let form = form.map(|it| String::from_utf8_lossy(&it).into_owned());
    let tested = proposal.tested();
    let body = Body {
        proposal: &proposal,
        kind: args.kind,
        layout: &layout,
        tested: tested.as_ref(),
        benchmark: &benchmark,
        form: form.as_deref(),
    };
    progress.step("write the patches", |_| {
        let scratch = Scratch::folder(out)?;
        draft.format_patches(&std::path::absolute(scratch.path())?)?;
        fs::write(scratch.path().join(BODY), body.render()).context("writing PR_BODY.md")?;
        scratch.publish(out)?;
        // Last: if anything failed before, the checkout is as it was.
        checkout.make_branch(branch, &draft).inspect_err(|_| {
            let _ = fs::remove_dir_all(out);
        })
    })?;
    if args.kind == Kind::Seam {
        said += &format!("the layout of changed lines:\n{layout}");
        if tested.is_none() {
            said += "not tested: cargo xtask test-upstream --seam, then run this again\n";
        }
        said += "before it is opened: PyTorch takes pull requests for issues that are labelled actionable; see #181094\n";
    }
    Ok(said)
}

impl Place {
    /// Refuses names and folders that are taken, and a base that is not there.
    fn find(args: &UpstreamPr) -> Result<Self> {
        let checkout = Checkout::open(&args.source)?;
        let base = checkout.resolve(&args.base)?;
        let branch = args.branch.clone().unwrap_or_else(|| {
            let default = match args.kind {
                Kind::Seam => "host-allocator-subclass",
                Kind::Full => "pinbuddy",
            };
            default.to_owned()
        });
        if checkout.has_branch(&branch)? {
            let root = checkout.root.display();
            return Err(refuse(format!("{root} has a branch {branch} already"))
                .expected("a name that is free; nothing was changed")
                .remedy("pass another one with --branch, or remove that one if nobody needs it")
                .into());
        }
        let out = args.out.clone();
        let taken = match fs::read_dir(&out) {
            Ok(mut entries) => entries.next().is_some(),
            Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        };
        if taken {
            return Err(refuse(format!("{} is in the way", out.display()))
                .expected("an empty folder, or none; nothing was changed")
                .remedy("pass another one with --out, or remove it")
                .into());
        }
        Ok(Self {
            checkout,
            base,
            branch,
            out,
        })
    }

    /// Makes the commits, beside the checkout.
    fn commit(&self, proposal: &Proposal) -> Result<Draft> {
        let mut draft = Draft::new(&self.checkout, &self.base, &proposal.files())?;
        for step in &proposal.steps {
            match &step.change {
                Change::Patch(patch) => draft.apply(patch)?.map_err(|git| {
                    refuse(format!("{} does not apply", paths::show(patch)))
                        .found(git)
                        .expected("every hunk's context as the patch has it; nothing was changed")
                        .remedy("refresh that patch, or pass another --base")
                })?,
                Change::Add(vendored) => draft.add(vendored.root.path())?,
            }
            draft.commit(&step.message)?;
        }
        Ok(draft)
    }

    /// A description for people.
    fn describe(&self, args: &UpstreamPr, proposal: &Proposal) -> Result<String> {
        let files = proposal.files();
        let version = &proposal.release.version;
        let what = match args.kind {
            Kind::Seam => "the extension points",
            Kind::Full => "the whole fork",
        };
        let header = if proposal.drifted {
            ", for a header that is another than that release's"
        } else {
            ""
        };
        let mut text = format!("{what}, by the series for torch {version}{header}\n");
        let commits = proposal.steps.len();
        for (label, value) in [
            ("checkout", self.checkout.root.display().to_string()),
            ("base", format!("{} ({})", args.base, &self.base[..12])),
            ("branch", format!("{}, {commits} commits:", self.branch)),
        ] {
            let _ = writeln!(text, "  {label:<10}{value}");
        }
        for step in &proposal.steps {
            let _ = writeln!(text, "    {}", step.message.subject);
            match &step.change {
                Change::Patch(_) => {
                    for file in &step.files {
                        let _ = writeln!(text, "      {file}");
                    }
                }
                Change::Add(vendored) => {
                    let _ = writeln!(
                        text,
                        "      {} files below {}",
                        vendored.files.len(),
                        vendor::FOLDER
                    );
                }
            }
        }
        let _ = writeln!(
            text,
            "  patches   {0}/*.patch, {0}/{BODY}",
            self.out.display()
        );
        let changes = self.checkout.changes(&files)?;
        if !changes.trim().is_empty() {
            text += "  not in it, since no commit has them, and left as they are:\n";
            for line in changes.lines() {
                let _ = writeln!(text, "    {line}");
            }
        }
        Ok(text)
    }
}
