//! KV-cache offload in serving: the caches of finished requests stay on the host.
//!
//! Llama-3-8B in bfloat16: a token takes 128 KiB (32 layers, 8 heads of 128, keys and values). The cache
//! is copied to the host in chunks of 256 tokens (32 MiB), as in LMCache; the last chunk of a
//! conversation is shorter, from 128 KiB on. A step is a request. One in three continues a conversation,
//! whose chunks are copied to the device; the others begin one. Each adds 50 to 6,000 tokens, short ones
//! more often. The host keeps 6 GiB, and evicts the least recently used conversation.

use std::collections::VecDeque;

use super::Program;
use super::random::Random;
use super::script::{Handle, Script};

const TOKEN: u64 = 128 << 10;
const CHUNK: u64 = 256;
const KEPT: u64 = 6 << 30;
const OUT: u32 = 1;
const BACK: u32 = 2;

/// A conversation, on the host.
#[derive(Debug, Default)]
struct Conversation {
    chunks: Vec<Handle>,
    tokens: u64,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct KvCache {
    random: Random,
    /// The one used last is the last.
    kept: VecDeque<Conversation>,
}

impl KvCache {
    pub(super) fn new(seed: u64) -> Self {
        Self { random: Random::new(seed), kept: VecDeque::new() }
    }
}

impl Program for KvCache {
    fn step(&mut self, script: &mut Script, _: u32) {
        let back = !self.kept.is_empty() && self.random.below(3) == 0;
        let mut conversation = if back {
            let place = self.random.below(self.kept.len());
            self.kept.remove(place).unwrap_or_default()
        } else {
            Conversation::default()
        };
        for chunk in &conversation.chunks {
            script.copy(chunk, BACK);
        }
        let (one, other) = (self.random.unit(), self.random.unit());
        let tokens = 50 + (one.min(other) * 5_950.0) as u64;
        script.wait(20_000 + 50 * tokens);
        // Its last chunk grows, and so do the chunks.
        let whole = conversation.tokens / CHUNK;
        conversation.tokens += tokens;
        let grown = conversation.tokens;
        let tail = conversation.chunks.split_off(whole as usize);
        let sizes = (whole..grown.div_ceil(CHUNK)).map(|n| CHUNK.min(grown - n * CHUNK) * TOKEN);
        let sizes: Vec<u64> = sizes.collect();
        let mut held: u64 = self.kept.iter().map(|it| it.tokens * TOKEN).sum();
        while held + grown * TOKEN > KEPT {
            let Some(given_up) = self.kept.pop_front() else {
                break;
            };
            held -= given_up.tokens * TOKEN;
            script.free_all(given_up.chunks);
        }
        script.free_all(tail);
        for bytes in sizes {
            let chunk = script.alloc(bytes);
            script.copy(&chunk, OUT);
            conversation.chunks.push(chunk);
        }
        self.kept.push_back(conversation);
    }
}
