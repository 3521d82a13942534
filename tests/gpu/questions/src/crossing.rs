//! May one copy, and one kernel's access, cross two registrations that lie side by side in one mapping?
//!
//! Every byte is compared, since a driver might copy only a part. The copy is also timed against one within a registration, since a
//! driver might stage it like pageable memory.

use crate::asking::{Asking, Told, timed};
use crate::cuda::{Cuda, Direction, Failure, Kernel, Result, unavailable};
use crate::memory::{Kind, MIB, Region, fill_with, on, read, write};

const COPIES: usize = 8;
const ROUNDS: usize = 5;

pub fn ask(it: &mut Asking, cuda: &dyn Cuda) {
    let size = it.size(32, 4) * MIB;
    // All of them stay: CUDA has them registered, and what is mapped in their place would be taken for them.
    let mut regions = Vec::new();
    for kind in [Kind::SharedHuge, Kind::Small] {
        let mut made = None;
        it.ask_whether(
            "may two registrations lie side by side?",
            kind.name(),
            || {
                let (region, about) = register_two(cuda, kind, 2 * size)?;
                made = Some(region);
                Ok(Told::said(true, about))
            },
        );
        let Some(region) = made else { continue };
        let each = on(size, kind);
        for (direction, words) in Direction::BOTH {
            it.ask_whether(
                &format!("does a copy {words} cross their border?"),
                &each,
                || copy_arrives(cuda, middle(&region, size), size, direction),
            );
        }
        it.ask("a copy across, over one beside the border", &each, || {
            price(cuda, &region, size)
        });
        regions.push(region);
    }
    // Last, since a refused access destroys the context.
    if let Some(region) = regions.first() {
        it.ask(
            "does a kernel's access cross their border?",
            &on(size, region.kind),
            || kernels_reach(cuda, middle(region, size), size),
        );
    }
}

/// Two registrations that meet in the middle of one region.
fn register_two(cuda: &dyn Cuda, kind: Kind, size: usize) -> Result<(Region, String)> {
    let region = Region::new(kind, size)?;
    cuda.register(region.address, size / 2)?;
    if let Err(refused) = cuda.register(region.address + size / 2, size / 2) {
        cuda.unregister(region.address)?;
        return Err(refused);
    }
    let about = region.about();
    Ok((region, about))
}

/// The start of so many bytes with the border in their middle.
fn middle(region: &Region, size: usize) -> usize {
    region.address + region.size / 2 - size / 2
}

/// Bytes whose period is not a power of two, so that a page that is missing or copied twice is detected.
pub fn pattern(size: usize, step: usize) -> Vec<u8> {
    (0..size).map(|at| (at % 251 * step % 251) as u8).collect()
}

/// Whether all bytes are as expected, or which is the first that is not.
pub fn compare(seen: &[u8], wanted: &[u8]) -> Told {
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
pub fn copy_arrives(
    cuda: &dyn Cuda,
    host: usize,
    size: usize,
    direction: Direction,
) -> Result<Told> {
    let (stream, device) = (cuda.stream()?, cuda.device_alloc(size)?);
    let wanted = pattern(size, 3);
    let plain = Region::untouched(size)?;
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

/// Time of copies across the border, relative to copies of the same size beside it.
fn price(cuda: &dyn Cuda, region: &Region, size: usize) -> Result<Told> {
    let (stream, device) = (cuda.stream()?, cuda.device_alloc(size)?);
    let seconds = |host: usize| {
        timed(|| {
            (0..COPIES)
                .try_for_each(|_| cuda.copy(Direction::ToDevice, host, device, size, stream))?;
            cuda.finish(stream)
        })
    };
    let (across, beside) = (middle(region, size), region.address);
    let ratios = || {
        seconds(across)?;
        seconds(beside)?;
        (0..ROUNDS)
            .map(|_| Ok(seconds(across)? / seconds(beside)?))
            .collect()
    };
    let ratios: Result<Vec<f64>> = ratios();
    cuda.device_free(device)?;
    Ok(Told::figure("times as long", ratios?))
}

/// One kernel reads both sides of the border, and one writes them.
fn kernels_reach(cuda: &dyn Cuda, host: usize, size: usize) -> Result<Told> {
    for side in [host, host + size / 2 - 1, host + size / 2] {
        let seen = cuda.seen_by_device(side)?;
        if seen != side {
            return unavailable(format!(
                "the device sees {side:#x} at {seen:#x}, elsewhere than the host does"
            ));
        }
    }
    let (stream, device) = (cuda.stream()?, cuda.device_alloc(size)?);
    let (bytes, there) = (pattern(size, 5), Region::untouched(size)?);
    let turned: Vec<u8> = bytes.iter().map(|it| !it).collect();
    write(host, &bytes);
    cuda.launch(
        Kernel::Turn {
            to: device,
            source: host,
            size,
        },
        stream,
    )?;
    let access = || {
        cuda.copy(Direction::ToHost, there.address, device, size, stream)?;
        cuda.finish(stream)?;
        cuda.launch(
            Kernel::Turn {
                to: host,
                source: host,
                size,
            },
            stream,
        )?;
        cuda.finish(stream)
    };
    match access() {
        // The driver's words for an access without a mapping.
        Err(Failure::Refused(why)) => return Ok(Told::said(false, why)),
        other => other?,
    }
    let seen = compare(&read(there.address, size), &turned);
    let arrived = matches!(seen, Told::Said { yes: true, .. });
    Ok(if arrived {
        compare(&read(host, size), &turned)
    } else {
        seen
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asking::tests::answers_of;

    #[test]
    fn all_of_it_is_asked() {
        let answers = answers_of(|it, cuda| ask(it, cuda));
        let small = answers
            .iter()
            .filter(|(of, answer)| of.contains("cross their border?") && answer == "yes");
        // Shared huge pages cannot be had on every kernel; 4 KiB pages can.
        assert!(small.count() >= 3, "{answers:?}");
        assert!(
            answers
                .iter()
                .any(|(of, answer)| of.starts_with("a copy across") && answer == "figure")
        );
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
