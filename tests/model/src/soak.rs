//! As many actions as one wants, of cases at random.

use crate::choices::random_bytes;
use crate::{engine, provisioner};

/// A model, by its name.
pub type Model = (&'static str, fn(&[u8]) -> u64);

/// All of them.
pub const MODELS: [Model; 2] = [("engine", engine::run), ("provisioner", provisioner::run)];

/// What was tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// How many cases.
    pub cases: u64,
    /// How many actions these had, each audited.
    pub actions: u64,
}

/// Runs cases until there were `actions` actions. Case `n` has the seed `first + n`; where one fails,
/// that is said before the panic goes on.
pub fn run((name, model): Model, first: u64, actions: u64) -> Tried {
    let mut tried = Tried::default();
    while tried.actions < actions {
        let case = Case { name, seed: first + tried.cases };
        tried.actions += model(&case.bytes());
        tried.cases += 1;
    }
    tried
}

/// Says which case it is, should it fail.
struct Case {
    name: &'static str,
    seed: u64,
}

impl Case {
    /// Most cases are short, so that they begin anew often; some go far.
    fn bytes(&self) -> Vec<u8> {
        let length = match self.seed % 32 {
            0 => 2000,
            1..4 => 800,
            _ => 250,
        };
        random_bytes(self.seed, length)
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "the model {name} failed; the same case again: \
                 cargo run -p pinbuddy-model --example soak -- {name} --first {seed} --actions 1",
                name = self.name,
                seed = self.seed
            );
        }
    }
}
