//! `cargo xtask upstream-pr`: a proposal to PyTorch, as a branch, patches and a description.
//!
//! Invariants: the checkout gets a branch, and nothing else changes in it; a series is only proposed for a header that it
//! fits exactly; every result in the description is of a run of the tests or of a file of results.

mod benchmark;
mod checkout;
mod tested;
#[cfg(test)]
mod tests;
mod vendor;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::cli::upstream_pr::{Kind, UpstreamPr};
use crate::support::paths;
use crate::support::refusal::refuse;
use crate::support::scratch::Scratch;
use checkout::Checkout;
use tested::Tested;
use xtask_patchkit::fit::{self, Fit};
use xtask_patchkit::form;
use xtask_patchkit::release::{Release, Versions};
use xtask_patchkit::series::{self, Patch};
use xtask_patchkit::tree::Tree;

/// The form that PyTorch's tree has for pull requests.
const FORM: &str = ".github/PULL_REQUEST_TEMPLATE.md";
/// The description's name beside the patches.
const BODY: &str = "PR_BODY.md";

/// The command.
pub fn run(args: &UpstreamPr) -> Result<()> {
    let root = paths::root();
    print!("{}", make(root, &Versions::read(root)?, args)?);
    Ok(())
}

/// Does it, or with `--dry-run` only tries. `root` is our own checkout. Returns a description for people.
fn make(root: &Path, versions: &Versions, args: &UpstreamPr) -> Result<String> {
    let mut checkout = Checkout::open(&args.source, &args.base, args.dry_run)?;
    let branch = args.branch.as_deref().unwrap_or(match args.kind {
        Kind::Seam => "host-allocator-subclass",
        Kind::Full => "pinbuddy",
    });
    checkout.require_free(branch)?;
    require_empty(&args.out)?;
    let release = release(versions, args.kind, &checkout)?;
    let patches = patches(root, versions, args.kind, release)?;
    let drifted = require_fit(root, versions, release, &checkout)?;
    let results = args
        .bench
        .clone()
        .map_or_else(|| benchmark::newest(root), Ok)?;
    let benchmark = benchmark::table(&results)?;
    let messages = commit(root, args.kind, &patches, &mut checkout)?;
    let mut said = describe(args, branch, &checkout, release, drifted, &messages);
    let files: BTreeSet<&str> = patches
        .iter()
        .flat_map(|it| it.files.keys().map(String::as_str))
        .collect();
    let changes = checkout.changes(&files.into_iter().collect::<Vec<_>>())?;
    if !changes.is_empty() {
        let lines: String = changes.lines().map(|it| format!("    {it}\n")).collect();
        said += &format!("  not in it, since no commit has them, and left as they are:\n{lines}");
    }
    if args.dry_run {
        said += &format!(
            "  table     from {}\nnothing was changed (--dry-run)\n",
            paths::show(&results)
        );
        return Ok(said);
    }
    let tested = Tested::read(&patches);
    let scratch = Scratch::folder(&args.out)?;
    checkout.format_patches(&std::path::absolute(scratch.path())?)?;
    let body = body(
        args.kind,
        &messages,
        tested.as_ref(),
        &benchmark,
        checkout.read(FORM)?,
    );
    fs::write(scratch.path().join(BODY), body).context("writing PR_BODY.md")?;
    scratch.publish(&args.out)?;
    // Last: if anything failed before, the checkout is as it was.
    checkout.make_branch(branch).inspect_err(|_| {
        let _ = fs::remove_dir_all(&args.out);
    })?;
    if args.kind == Kind::Seam {
        if tested.is_none() {
            said += "not tested: cargo xtask test --only seam, then run this again\n";
        }
        said += "before it is opened: PyTorch takes pull requests for issues that are labelled actionable; see #181094\n";
    }
    Ok(said)
}

/// Makes a commit of each patch, and one of our own files where all of the fork is proposed. Returns their messages.
fn commit(
    root: &Path,
    kind: Kind,
    patches: &[Patch],
    checkout: &mut Checkout,
) -> Result<Vec<(String, String)>> {
    let mut messages = Vec::new();
    for patch in patches {
        let text = series::text(&patch.path)?;
        let (subject, body) = (form::subject(&text), form::body(&text));
        checkout.apply(&patch.path, &format!("{subject}\n\n{body}\n"))?;
        messages.push((subject, body));
    }
    if kind == Kind::Full {
        let (folder, subject, body) = vendor::gather(root)?;
        checkout.add(folder.path(), &format!("{subject}\n\n{body}\n"))?;
        messages.push((subject, body));
    }
    Ok(messages)
}

fn require_empty(out: &Path) -> Result<()> {
    let taken = match fs::read_dir(out) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    };
    if !taken {
        return Ok(());
    }
    Err(refuse(format!("{} is in the way", out.display()))
        .expected("an empty folder, or none; nothing was changed")
        .remedy("pass another one with --out, or remove it")
        .into())
}

/// The release whose series is proposed.
fn release<'a>(versions: &'a Versions, kind: Kind, checkout: &Checkout) -> Result<&'a Release> {
    let tree = Tree::read_by(&checkout.root, versions, &|path| checkout.read(path))?;
    // The tree's main branch is no supported release; the newest series is for it.
    let newest = versions.find(None)?;
    let release = tree.release(versions).unwrap_or(newest);
    if kind == Kind::Full || release.series == newest.series {
        return Ok(release);
    }
    let version = &release.version;
    Err(refuse(format!(
        "PyTorch takes pull requests for its main branch, not for {version}"
    ))
    .found(format!(
        "{}, with the header of torch {version}",
        checkout.root.display()
    ))
    .expected(format!(
        "main, or a tree that the series for torch {} fits",
        newest.version
    ))
    .remedy("pass --base origin/main, or --kind full")
    .into())
}

/// The release's series, and the one that follows it.
fn patches(root: &Path, versions: &Versions, kind: Kind, release: &Release) -> Result<Vec<Patch>> {
    let more = match kind {
        Kind::Seam => versions.pull_request.as_slice(),
        Kind::Full => &release.source_series,
    };
    let folders = [&release.series].into_iter().chain(more);
    let read = folders.map(|name| series::read(&root.join("patches").join(name)));
    Ok(read.collect::<Result<Vec<_>>>()?.concat())
}

/// Whether the header is another than the release's; the series fits it exactly all the same.
fn require_fit(
    root: &Path,
    versions: &Versions,
    release: &Release,
    checkout: &Checkout,
) -> Result<bool> {
    let series = series::read(&root.join("patches").join(&release.series))?;
    let (shown, version) = (checkout.root.display(), &release.version);
    let what = || format!("the series for torch {version} is not proposed for {shown}");
    let fit = fit::fit(&versions.header, release, &series, &|path| {
        checkout.read(path)
    });
    match fit.with_context(what)? {
        Fit::Clean(_) => Ok(false),
        Fit::Drifted(..) => Ok(true),
        Fit::Applied => Err(refuse(format!("there is nothing to propose for {shown}"))
            .found(format!(
                "a header that has the series for torch {version} already"
            ))
            .expected("a header that the series fits; nothing was changed")
            .remedy("pass --base with a commit from before the series")
            .into()),
    }
}

fn describe(
    args: &UpstreamPr,
    branch: &str,
    checkout: &Checkout,
    release: &Release,
    drifted: bool,
    messages: &[(String, String)],
) -> String {
    let what = match args.kind {
        Kind::Seam => "the extension points",
        Kind::Full => "the whole fork",
    };
    let header = match drifted {
        true => ", for a header that is another than that release's",
        false => "",
    };
    let subjects = messages.iter().map(|it| format!("    {}\n", it.0));
    format!(
        "{what}, by the series for torch {}{header}\n  checkout  {}\n  base      {} ({})\n  \
         branch    {branch}, {} commits:\n{}  patches   {out}/*.patch, {out}/{BODY}\n",
        release.version,
        checkout.root.display(),
        args.base,
        &checkout.base[..12],
        messages.len(),
        subjects.collect::<String>(),
        out = args.out.display(),
    )
}

/// PR_BODY.md, in the form that PyTorch's pull requests have.
fn body(
    kind: Kind,
    messages: &[(String, String)],
    tested: Option<&Tested>,
    benchmark: &str,
    form: Option<Vec<u8>>,
) -> String {
    let template = match kind {
        Kind::Seam => include_str!("seam.md"),
        Kind::Full => include_str!("full.md"),
    };
    let commits = messages.iter();
    let commits = commits.map(|(subject, body)| format!("**{subject}**\n\n{body}\n\n"));
    let results = match (tested, kind) {
        (Some(Tested { on, results, .. }), _) => {
            let lines: String = results.iter().map(|it| format!("- {it}\n")).collect();
            format!(
                "Run without a build of the tree: the tests compiled against an official wheel's headers with \
                 this change, and linked with its libraries ({on}; the simulator is a CUDA runtime with real \
                 streams and page-locked memory and no GPU).\n\n{lines}"
            )
        }
        (None, Kind::Seam) => {
            "Not run on these patches yet: `cargo xtask test --only seam`.\n".to_owned()
        }
        (None, Kind::Full) => "Not run in this tree.\n".to_owned(),
    };
    let form = String::from_utf8_lossy(&form.unwrap_or_default()).into_owned();
    let kept = form.lines().filter(|it| !it.starts_with("Fixes #"));
    let form = match kept.collect::<Vec<_>>().join("\n").trim() {
        "" => String::new(),
        form => format!("\n{form}\n"),
    };
    template
        .replace("{commits}\n", &commits.collect::<String>())
        .replace("{tested}\n", &format!("{results}\n"))
        .replace("{benchmark}\n", &format!("{benchmark}\n"))
        .replace("{form}\n", &form)
}
