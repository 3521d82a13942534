//! Do copies from and to registered pages of each kind run at the bandwidth of the driver's own memory (cudaHostAlloc)?

use crate::asking::{Asking, Told, timed};
use crate::cuda::{Cuda, Direction, Result, Stream};
use crate::memory::{Kind, MIB, Region};

const OWN: &str = "cudaHostAlloc";
const COPIES: usize = 8;
const ROUNDS: usize = 5;

struct Sides<'a> {
    cuda: &'a dyn Cuda,
    size: usize,
    /// Of the driver's own memory, and on the device.
    own: usize,
    device: usize,
    stream: Stream,
}

pub fn ask(it: &mut Asking, cuda: &dyn Cuda) {
    let size = it.size(256, 16) * MIB;
    let sides = it.need("memory to compare with", OWN, || {
        let (own, device, stream) = (
            cuda.host_alloc(size)?,
            cuda.device_alloc(size)?,
            cuda.stream()?,
        );
        Ok(Sides {
            cuda,
            size,
            own,
            device,
            stream,
        })
    });
    let Some(sides) = sides else { return };
    for kind in Kind::ALL {
        let region = it.need("memory to copy from", kind.name(), || {
            let region = Region::new(kind, size)?;
            cuda.register(region.address, size)?;
            Ok(region)
        });
        if let Some(region) = region {
            compare(it, &sides, &region);
            it.need("unregistering it", kind.name(), || {
                cuda.unregister(region.address)
            });
        }
    }
}

/// Both directions, in turns with the driver's own memory.
fn compare(it: &mut Asking, sides: &Sides<'_>, region: &Region) {
    for (direction, words) in Direction::BOTH {
        let (mut registered, mut own) = (Vec::new(), Vec::new());
        let told = it.ask(
            &format!("copies {words}, over cudaHostAlloc's bandwidth"),
            &region.about(),
            || {
                // The first round is not counted.
                for number in 0..=ROUNDS {
                    let turn = |host: usize, seen: &mut Vec<f64>| {
                        let speed = sides.gb_per_s(host, direction)?;
                        seen.extend((number > 0).then_some(speed));
                        Ok(())
                    };
                    if number % 2 == 0 {
                        turn(region.address, &mut registered)?;
                    }
                    turn(sides.own, &mut own)?;
                    if number % 2 == 1 {
                        turn(region.address, &mut registered)?;
                    }
                }
                let ratios = registered.iter().zip(&own).map(|(one, other)| one / other);
                Ok(Told::figure("times cudaHostAlloc's", ratios.collect()))
            },
        );
        if told {
            let on = |name: &str| format!("{} MiB of {name}", sides.size / MIB);
            it.tell(
                &format!("copies {words}"),
                &on(OWN),
                Ok(Told::figure("GB/s", own)),
            );
            it.tell(
                &format!("copies {words}"),
                &on(region.kind.name()),
                Ok(Told::figure("GB/s", registered)),
            );
        }
    }
}

impl Sides<'_> {
    fn gb_per_s(&self, host: usize, direction: Direction) -> Result<f64> {
        let taken = timed(|| {
            (0..COPIES).try_for_each(|_| {
                self.cuda
                    .copy(direction, host, self.device, self.size, self.stream)
            })?;
            self.cuda.finish(self.stream)
        })?;
        Ok((COPIES * self.size) as f64 / taken / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asking::tests::answers_of;

    #[test]
    fn all_of_it_is_asked() {
        let answers = answers_of(|it, cuda| ask(it, cuda));
        let ratios = answers
            .iter()
            .filter(|it| it.0.ends_with("bandwidth") && it.1 == "figure")
            .count();
        let speeds = answers
            .iter()
            .filter(|it| it.0.starts_with("copies to the") && it.1 == "figure")
            .count()
            - ratios;
        assert!(ratios >= 4 && speeds == 2 * ratios, "{answers:?}");
    }
}
