//! All that commands write: files, devices and pipes, standard output, and notes on standard error.
//!
//! A regular file is written whole, or left as it was: under a name that nobody can foretell, made anew, which then gets
//! the file's own name. A link stays, and its target is replaced. All else is written into. An output that is also an
//! input is refused. A reader that closes its pipe has what it wanted: that is no error. A full disk is one.

mod place;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use tempfile::Builder;

use place::{Identity, Place};

/// What commands write to.
pub(crate) type Out<'o> = BufWriter<&'o mut dyn Write>;

/// Where a command writes what was asked for with `--out`.
#[derive(Debug)]
pub(crate) struct Output {
    /// For messages.
    pub(crate) name: String,
    place: Place,
    mode: u32,
}

impl Output {
    /// The output that a user named, `-` for standard output. Writes nothing yet, so that what cannot be is said before
    /// the work.
    ///
    /// # Errors
    ///
    /// It is a folder, in no folder, or the same file as one of `inputs`.
    pub(crate) fn new(path: &Path, inputs: &[&Path]) -> Result<Self> {
        let place = Place::of(path).map_err(|why| unwritten(&path.display(), &why))?;
        let name = match place {
            Place::Stdout => "standard output".to_owned(),
            _ => path.display().to_string(),
        };
        let own = place.identity();
        let is_own = |it: &&&Path| own.is_some() && Identity::of_input(it) == own;
        if let Some(input) = inputs.iter().find(is_own) {
            let input = input.display();
            bail!("{name} is also an input ({input}), which would be lost: name another file to write to");
        }
        Ok(Self { name, place, mode: 0o666 })
    }

    /// For a file that only this user may read, as runs write their plans.
    pub(crate) fn private(self) -> Self {
        Self { mode: 0o600, ..self }
    }

    /// The same of a command whose output need not be named.
    pub(crate) fn asked_for(path: Option<&Path>, inputs: &[&Path]) -> Result<Option<Self>> {
        path.map(|path| Self::new(path, inputs)).transpose()
    }

    /// Its path, if it is a file of its own that others can read later.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        match self.place {
            Place::File(_) => Some(self.name.clone().into()),
            _ => None,
        }
    }

    /// Writes it.
    pub(crate) fn write(&self, write: impl FnOnce(&mut Out<'_>) -> io::Result<()>) -> Result<()> {
        let written = match &self.place {
            Place::Stdout => into(&mut io::stdout().lock(), write),
            Place::Stream(path) => {
                let opened = OpenOptions::new().append(true).open(path);
                opened.and_then(|mut it| into(&mut it, write))
            }
            Place::File(path) => self.replace(path, write).map(|()| true),
        };
        written.map(drop).map_err(|why| unwritten(&self.name, &why))
    }

    /// Writes a file beside its place and moves it there, so that nobody reads half of it.
    fn replace(&self, path: &Path, write: impl FnOnce(&mut Out<'_>) -> io::Result<()>) -> io::Result<()> {
        let mut part = Builder::new()
            .prefix(path.file_name().unwrap_or_default())
            .suffix(".part")
            // The user's mask takes its share.
            .permissions(Permissions::from_mode(self.mode))
            .tempfile_in(place::folder(path))?;
        let file: &mut File = part.as_file_mut();
        let mut to = BufWriter::new(file as &mut dyn Write);
        write(&mut to)?;
        to.flush()?;
        drop(to);
        part.as_file().sync_all()?;
        part.persist(path)?;
        Ok(())
    }
}

/// Prints what a command came to, for people or for programs: on standard error where standard output has its output.
pub(crate) fn answer(out: Option<&Output>, answer: &(impl fmt::Display + serde::Serialize), json: bool) -> Result<()> {
    if json {
        return summary(out, &pretty(answer)?);
    }
    summary(out, answer)
}

/// As JSON, for programs that read what a command prints, and for people who do.
pub(crate) fn pretty(answer: &impl serde::Serialize) -> Result<String> {
    Ok(serde_json::to_string_pretty(answer)? + "\n")
}

/// How a command ends that answers yes or no.
pub(crate) fn ends(yes: bool) -> ExitCode {
    ExitCode::from(u8::from(!yes))
}

/// The same of what is for people only.
pub(crate) fn summary(out: Option<&Output>, text: &impl fmt::Display) -> Result<()> {
    if out.is_some_and(|it| it.place == Place::Stdout) {
        say(format_args!("{text}"));
        return Ok(());
    }
    print(text)
}

/// Prints a text on standard output, as it is.
///
/// # Errors
///
/// A disk is full, for instance; a reader that closes its pipe is none.
pub fn print(text: &impl fmt::Display) -> Result<()> {
    print_with(|to| write!(to, "{text}")).map(drop)
}

/// The same of what is written in parts; returns whether anybody reads on.
pub(crate) fn print_with(write: impl FnOnce(&mut Out<'_>) -> io::Result<()>) -> Result<bool> {
    // Not as of a file: free space is all that helps, which needs no explanation.
    into(&mut io::stdout().lock(), write).map_err(|why| anyhow!("standard output takes no more: {why}"))
}

/// Says something on standard error. Nobody can be told if that fails.
pub fn say(text: fmt::Arguments<'_>) {
    let mut to = io::stderr().lock();
    let _ = to.write_fmt(text).and_then(|()| to.flush());
}

/// Writes into what is there; returns whether anybody reads on.
fn into(stream: &mut dyn Write, write: impl FnOnce(&mut Out<'_>) -> io::Result<()>) -> io::Result<bool> {
    let mut to = BufWriter::new(stream);
    let written = write(&mut to).and_then(|()| to.flush());
    if written.is_err() {
        // Or else it would be tried once more.
        drop(to.into_parts());
    }
    match written {
        Err(why) if why.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true),
    }
}

fn unwritten(name: &dyn fmt::Display, why: &io::Error) -> anyhow::Error {
    anyhow!("{name} cannot be written: {why}")
}

/// Whether an input has a folder in which its output may lie beside it: standard input and pipes have none.
pub(crate) fn has_a_folder(input: &Path) -> bool {
    let is_stream = ["/dev", "/proc"].iter().any(|it| input.starts_with(it));
    let is_file = fs::metadata(input).is_ok_and(|it| it.is_file());
    input != Path::new("-") && !is_stream && is_file
}
