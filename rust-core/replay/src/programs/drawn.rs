//! Cases drawn from a seed: the same on every machine, so that a table can name the worst ones.

use crate::GIB;
use crate::workload::Random;
use crate::world::Machine;

use super::{Case, Cell, Setting, Shape, Sizes};

/// The case of that number.
pub fn drawn(number: u64) -> Case {
    Draws(Random::new(number.wrapping_mul(7919))).case()
}

struct Draws(Random);

impl Draws {
    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[(self.0.draw() % of.len() as u64) as usize]
    }

    fn cell(&mut self) -> Cell {
        let it = self.0.draw();
        let (size, rest) = (it as u16, it >> 16);
        (size, rest as u8, (rest >> 8) as u8, (rest >> 16) as u8)
    }

    fn case(&mut self) -> Case {
        let shape = Shape {
            sizes: self.one(&Sizes::ALL),
            live: self.one(&[GIB / 2, 2 * GIB, 8 * GIB, 16 * GIB]),
            threads: self.one(&[1, 1, 1, 2, 4]),
            holders: self.one(&[0, 0, 10, 50]),
            clears: self.one(&[0, 0, 0, 100, 10]),
            computes: self.one(&[0, 100, 3000, 20000]),
            streams: self.one(&[0, 0, 1, 4]),
            stuck: self.one(&[0, 0, 60, 10]),
            captures: self.one(&[0, 0, 0, 100, 10]),
        };
        let length = self.0.draw() % 800 + 1;
        let tape = (0..length).map(|_| self.cell()).collect();
        // Nanoseconds a mebibyte, of a fast machine and of a slow one.
        let pace = self.one(&[100_000, 500_000]);
        let mut machine = Machine::paced(pace, self.one(&[1, 3, 10, 100]));
        let plenty = u64::MAX;
        machine.budget = self.one(&[plenty, plenty, plenty, shape.live, shape.live / 2, 0]);
        Case { shape, tape, machine, setting: self.one(&Setting::ALL) }
    }
}
