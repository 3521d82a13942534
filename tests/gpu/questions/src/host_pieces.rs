//! Host memory in the driver's own pieces (cuMemCreate on a node of the host), side by side in one reserved range: what they cost,
//! whether copies cross their border, and whether a forked child reads them. Expandable segments do that with a GPU's memory.

use std::time::{Duration, Instant};

use crate::asking::{Asking, Told, seconds};
use crate::cuda::{Direction, Piece, Range, Result, unavailable};
use crate::driver::Driver;
use crate::memory::{GIB, Kind, MIB, Region, fill_with, read, room, write};

const ROUNDS: usize = 3;
const PATIENCE: Duration = Duration::from_secs(5);

/// A range of addresses that grows at its end.
struct Arena<'a> {
    cuda: &'a Driver,
    range: Range,
    pieces: Vec<(usize, usize, Piece)>,
}

impl<'a> Arena<'a> {
    fn reserve(cuda: &'a Driver, most: usize) -> Result<Self> {
        let range = cuda.reserve(most)?;
        Ok(Self {
            cuda,
            range,
            pieces: Vec::new(),
        })
    }

    /// Maps a piece behind the last one; its address.
    fn grow(&mut self, size: usize) -> Result<usize> {
        let least = self.range.granularity;
        if !size.is_multiple_of(least) {
            return unavailable(format!(
                "pieces are multiples of {least} bytes here, which {size} is not"
            ));
        }
        let at = self
            .pieces
            .last()
            .map_or(self.range.address, |(at, size, _)| at + size);
        let piece = self.cuda.add_piece(&self.range, at, size)?;
        self.pieces.push((at, size, piece));
        Ok(at)
    }

    /// Releases the last piece.
    fn shrink(&mut self) -> Result<()> {
        let last = self.pieces.pop();
        last.map_or(Ok(()), |(at, size, piece)| {
            self.cuda.remove_piece(at, size, piece)
        })
    }

    fn close(mut self) -> Result<()> {
        while !self.pieces.is_empty() {
            self.shrink()?;
        }
        self.cuda.give_back(&self.range)
    }
}

pub fn ask(it: &mut Asking, cuda: &Driver) {
    let most = 8 * GIB;
    let on = "cuMemCreate on a node of the host";
    let Some(mut arena) = it.need("host memory in the driver's own pieces", on, || {
        Arena::reserve(cuda, most)
    }) else {
        return;
    };
    side_by_side(it, cuda, &mut arena);
    for size in [64 * MIB, GIB] {
        costs(it, &mut arena, size);
    }
    it.need("giving the range back", on, || arena.close());
}

/// Two pieces that stay.
fn side_by_side(it: &mut Asking, cuda: &Driver, arena: &mut Arena<'_>) {
    let half = 32 * MIB;
    let on = format!("two pieces of {} MiB", half / MIB);
    let mut border = None;
    it.ask_whether("may two pieces lie side by side?", &on, || {
        let low = arena.grow(half)?;
        let high = arena.grow(half)?;
        fill_with(low, 1, 2 * half);
        border = Some(high);
        Ok(Told::said(
            high == low + half,
            "the host has written to both",
        ))
    });
    let Some(border) = border else { return };
    let middle = border - half / 2;
    for (direction, words) in Direction::BOTH {
        it.ask_whether(
            &format!("does a copy {words} cross their border?"),
            &on,
            || copy_arrives(cuda, middle, half, direction),
        );
    }
    let wanted = pattern(half, 7);
    write(middle, &wanted);
    it.ask("does a forked child read them?", &on, || {
        child_reads(middle, &wanted)
    });
}

fn costs(it: &mut Asking, arena: &mut Arena<'_>, size: usize) {
    let (mut make, mut touch, mut give_back) = (Vec::new(), Vec::new(), Vec::new());
    let on = format!("a piece of {} MiB", size / MIB);
    it.ask("making and mapping a piece", &on, || {
        for _ in 0..ROUNDS {
            if size > room() {
                return unavailable(format!("{} MiB is more than there is room for", size / MIB));
            }
            let scale = GIB as f64 / size as f64;
            let start = Instant::now();
            let at = arena.grow(size)?;
            let made = Instant::now();
            fill_with(at, 1, size);
            let touched = Instant::now();
            arena.shrink()?;
            make.push(seconds(made - start) * scale);
            touch.push(seconds(touched - made) * scale);
            give_back.push(seconds(touched.elapsed()) * scale);
        }
        Ok(Told::figure("s/GiB", make))
    });
    it.tell(
        "writing all of it the first time",
        &on,
        Ok(Told::figure("s/GiB", touch)),
    );
    it.tell("giving it back", &on, Ok(Told::figure("s/GiB", give_back)));
}

/// Bytes whose period is not a power of two, so that a page that is missing or copied twice is detected.
fn pattern(size: usize, step: usize) -> Vec<u8> {
    (0..size).map(|at| (at % 251 * step % 251) as u8).collect()
}

/// Whether all bytes are as expected, or which is the first that is not.
fn compare(seen: &[u8], wanted: &[u8]) -> Told {
    let length = wanted.len();
    match seen
        .iter()
        .zip(wanted)
        .position(|(one, other)| one != other)
    {
        None => Told::said(true, format!("each of {length} bytes is right")),
        Some(at) => {
            let (found, expected) = (seen[at], wanted[at]);
            Told::said(
                false,
                format!(
                    "byte {at} of {length} is {found}, expected {expected}; the border is in the middle"
                ),
            )
        }
    }
}

/// The other side is ordinary memory that CUDA does not know.
fn copy_arrives(cuda: &Driver, host: usize, size: usize, direction: Direction) -> Result<Told> {
    let (stream, device) = (cuda.stream()?, cuda.device_alloc(size)?);
    let wanted = pattern(size, 3);
    let plain = Region::new(Kind::Small, size)?;
    let there_and_back = || {
        let (from, to) = if direction == Direction::ToDevice {
            (host, plain.address)
        } else {
            (plain.address, host)
        };
        fill_with(to, 0, size);
        write(from, &wanted);
        cuda.copy(Direction::ToDevice, from, device, size, stream)?;
        cuda.finish(stream)?;
        cuda.copy(Direction::ToHost, to, device, size, stream)?;
        cuda.finish(stream)?;
        Ok(compare(&read(to, size), &wanted))
    };
    let told = there_and_back();
    cuda.device_free(device)?;
    told
}

/// Whether a newly forked child reads these bytes. It may crash or hang.
fn child_reads(address: usize, wanted: &[u8]) -> Result<Told> {
    // SAFETY: the child only reads, compares and ends: it takes no lock that another thread, the driver's included, may hold.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: the parent has mapped so many bytes there and writes none meanwhile.
        let seen = unsafe {
            std::slice::from_raw_parts(
                std::ptr::with_exposed_provenance::<u8>(address),
                wanted.len(),
            )
        };
        let same = seen == wanted;
        // SAFETY: ends the child, without anything of its parent's.
        unsafe { libc::_exit(i32::from(!same)) };
    }
    if child < 0 {
        return unavailable(format!(
            "no child can be made: {}",
            std::io::Error::last_os_error()
        ));
    }
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let mut status = 0;
        // SAFETY: the child is this process's, and the place for its status a variable.
        if unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == child {
            return Ok(if libc::WIFSIGNALED(status) {
                Told::said(
                    false,
                    format!("the child died of signal {}", libc::WTERMSIG(status)),
                )
            } else if libc::WEXITSTATUS(status) == 0 {
                Told::said(true, "the child reads what its parent wrote")
            } else {
                Told::said(false, "the child reads something else")
            });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // SAFETY: the child has not ended, so that its number is no other's.
    unsafe { libc::kill(child, libc::SIGKILL) };
    // SAFETY: it is this process's child still.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    Ok(Told::said(
        false,
        format!("the child did not end within {} s", PATIENCE.as_secs()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_cannot_read_is_no_answer_yes() {
        let Told::Said { yes, why, .. } = child_reads(8, b"abc").unwrap() else {
            panic!()
        };
        assert!(!yes && why == "the child died of signal 11", "{why}");
    }

    #[test]
    fn a_byte_that_is_wrong_is_found() {
        let Told::Said { yes, why, .. } = compare(b"abcd", b"abxd") else {
            panic!()
        };
        assert!(
            !yes && why.starts_with("byte 2 of 4 is 99, expected 120"),
            "{why}"
        );
    }
}
