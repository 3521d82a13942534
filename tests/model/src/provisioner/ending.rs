//! The end of a case: all comes back, and nothing is lost.

use super::parties::Parties;
use crate::choices::Choices;

/// A request that nobody interferes with takes no more steps: as many as the bridge gives it.
const STEPS: usize = 32;

impl Parties {
    /// All comes to its end: pins fail or succeed, requests are answered, blocks come back. Then
    /// nothing is pinned, and nobody is left.
    pub(super) fn end(&mut self) {
        let mut choices = Choices::new(&[]);
        for _ in 0..100_000 {
            let Some(asking) = self.asking.first() else {
                break;
            };
            if asking.pins || !self.pinning.is_empty() {
                self.end_a_pin(Choices::new(&[]).pick(), &mut choices);
            } else if self.works {
                self.step_the_worker();
            } else {
                self.alone(&mut choices);
            }
        }
        assert!(self.asking.is_empty(), "requests that never end");
        for _ in 0..100_000 {
            if !self.pinning.is_empty() {
                self.end_a_pin(Choices::new(&[]).pick(), &mut choices);
            } else if self.works {
                self.step_the_worker();
            } else {
                break;
            }
        }
        assert!(!self.works, "a worker that is never done");
        while !self.world.blocks.is_empty() {
            self.release_nth(0);
        }
        self.compare();
        self.clear();
        self.compare();
        assert_eq!(self.world.pinned_bytes(), 0, "lost: {:?}", self.world);
        assert!(!self.provisioner.is_pinning() && !self.provisioner.is_at_work());
    }

    /// The first request to its end, while nobody else does anything.
    fn alone(&mut self, choices: &mut Choices<'_>) {
        let name = self.asking[0].name;
        for _ in 0..STEPS {
            let Some(n) = self.asking.iter().position(|it| it.name == name) else {
                return;
            };
            if self.asking[n].pins {
                self.end_a_pin(Choices::new(&[]).pick(), choices);
            } else if self.works {
                return;
            } else {
                self.step(n, choices);
            }
        }
        let ended = self.asking.iter().all(|it| it.name != name);
        assert!(ended, "a request that takes more than {STEPS} steps");
    }
}
