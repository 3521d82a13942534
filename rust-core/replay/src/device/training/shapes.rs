//! What the layers of known models make, in bytes, as their authors published the dimensions.
//!
//! A layer is a sequence of operations. Each makes a tensor, which its backward pass or the next one's may need, and
//! perhaps masks or statistics beside it. Activations and weights are bfloat16.

/// The dimensions of a transformer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) hidden: u64,
    pub(super) heads: u64,
    /// The width of the feed-forward part.
    pub(super) inner: u64,
    pub(super) vocabulary: u64,
    /// The gated unit has two projections up; no dropout, and attention that keeps no scores.
    pub(super) modern: bool,
    pub(super) experts: Option<Experts>,
}

/// A mixture of experts in place of the feed-forward part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Experts {
    /// How many serve each token.
    pub(super) of_a_token: u64,
    pub(super) inner: u64,
    /// On this rank.
    pub(super) local: u64,
}

/// GPT-2 medium, 345 million parameters.
pub(super) const GPT_2: Shape =
    Shape { hidden: 1024, heads: 16, inner: 4096, vocabulary: 50_304, modern: false, experts: None };

pub(super) const LLAMA_2_7B: Shape =
    Shape { hidden: 4096, heads: 32, inner: 11_008, vocabulary: 32_000, modern: true, experts: None };

pub(super) const QWEN_14B: Shape =
    Shape { hidden: 5120, heads: 40, inner: 13_696, vocabulary: 152_064, modern: true, experts: None };

/// Qwen1.5-MoE-A2.7B, 60 experts on four ranks.
pub(super) const QWEN_MOE: Shape = Shape {
    hidden: 2048,
    heads: 16,
    inner: 5632,
    vocabulary: 151_936,
    modern: true,
    experts: Some(Experts { of_a_token: 4, inner: 1408, local: 15 }),
};

/// The tokens of a micro-batch on this rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    pub(super) sequences: u64,
    pub(super) length: u64,
}

impl Batch {
    pub(super) const fn of(sequences: u64, length: u64) -> Self {
        Self { sequences, length }
    }

    fn tokens(self) -> u64 {
        self.sequences * self.length
    }
}

/// An operation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Op {
    /// Bytes that it makes.
    pub(super) out: u64,
    /// Whether a backward pass needs these.
    pub(super) kept: bool,
    /// Bytes that its backward pass needs besides.
    pub(super) beside: u64,
    /// Bytes that its backward pass needs for itself.
    pub(super) scratch: u64,
    /// Elements of its weights.
    pub(super) weights: u64,
    /// The residual is added: its gradient goes on beside that of the branch.
    pub(super) adds: bool,
    /// The branch begins behind it: both gradients are added.
    pub(super) branches: bool,
    /// Its length depends on which tokens the experts get.
    pub(super) routed: bool,
}

const BFLOAT16: u64 = 2;
const FLOAT32: u64 = 4;

/// The operations of a layer, split over `ranks` by tensor parallelism.
pub(super) fn layer(shape: Shape, batch: Batch, ranks: u64) -> Vec<Op> {
    let tokens = batch.tokens();
    let wide = tokens * shape.hidden * BFLOAT16;
    let mut norm = kept(wide).with(shape.hidden, tokens * FLOAT32);
    norm.branches = true;
    let mut add = kept(wide);
    add.adds = true;
    let dropout = (!shape.modern).then(|| passed(wide).with(0, wide / 2));
    let mut ops = vec![norm];
    ops.extend(attention(shape, batch, ranks));
    ops.extend(dropout);
    ops.extend([add, norm]);
    match shape.experts {
        Some(experts) => ops.extend(mixture(shape, experts, tokens)),
        None => ops.extend(dense(shape, tokens, ranks)),
    }
    ops.extend(dropout);
    ops.push(add);
    ops
}

impl Op {
    /// The same with weights, and with bytes that its backward pass needs besides.
    fn with(self, weights: u64, beside: u64) -> Self {
        Self { weights, beside, ..self }
    }
}

fn passed(out: u64) -> Op {
    Op { out, ..Op::default() }
}

fn kept(out: u64) -> Op {
    Op { kept: true, ..passed(out) }
}

/// Queries, keys and values, what comes of them, and its projection.
fn attention(shape: Shape, batch: Batch, ranks: u64) -> Vec<Op> {
    let tokens = batch.tokens();
    let wide = tokens * shape.hidden * BFLOAT16;
    let own = wide / ranks;
    let square = shape.hidden * shape.hidden / ranks;
    let heads = shape.heads / ranks;
    let mut ops = vec![kept(3 * own).with(3 * square, 0)];
    if shape.modern {
        ops.push(kept(2 * own)); // rotated queries and keys
        let mut softmax = kept(own).with(0, tokens * heads * FLOAT32);
        softmax.scratch = 2 * own;
        ops.push(softmax);
    } else {
        let scores = tokens * batch.length * heads * BFLOAT16;
        let dropout = kept(scores).with(0, scores / 2);
        ops.extend([passed(scores), kept(scores), dropout, kept(own)]);
    }
    ops.push(passed(wide).with(square, 0));
    ops
}

/// The two or three matrices between the norms.
fn dense(shape: Shape, tokens: u64, ranks: u64) -> [Op; 3] {
    let inner = tokens * shape.inner / ranks * BFLOAT16;
    let up = if shape.modern { 2 } else { 1 };
    let weights = shape.hidden * shape.inner / ranks;
    [kept(up * inner).with(up * weights, 0), kept(inner), passed(tokens * shape.hidden * BFLOAT16).with(weights, 0)]
}

/// Tokens go to the ranks of their experts and back.
fn mixture(shape: Shape, experts: Experts, tokens: u64) -> [Op; 6] {
    let count = tokens * experts.of_a_token;
    let weights = experts.local * shape.hidden * experts.inner;
    let wide = count * shape.hidden * BFLOAT16;
    let inner = count * experts.inner * BFLOAT16;
    let routed = |op: Op, weights| Op { routed: true, ..op.with(weights, 0) };
    [
        kept(tokens * 60 * FLOAT32), // the router
        routed(kept(wide), 0),
        routed(kept(2 * inner), 2 * weights),
        routed(kept(inner), 0),
        routed(passed(wide), weights),
        kept(wide),
    ]
}

/// What follows the last layer: a norm, logits, and the loss in float32.
pub(super) fn head(shape: Shape, batch: Batch, ranks: u64) -> Vec<Op> {
    let tokens = batch.tokens();
    let words = shape.vocabulary / ranks;
    vec![
        kept(tokens * shape.hidden * BFLOAT16),
        passed(tokens * words * BFLOAT16).with(shape.hidden * words, 0),
        passed(tokens * words * FLOAT32),
        kept(tokens * words * FLOAT32),
        passed(512),
    ]
}
