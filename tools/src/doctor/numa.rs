//! NUMA nodes: their processors, memory and GPUs.

use super::finding::Finding;
use super::gpu::Gpus;
use crate::show::size;
use pinbuddy_machine::Node;

/// A line for each node.
pub(super) fn findings(nodes: &[Node], gpus: &Gpus) -> Vec<Finding> {
    if nodes.is_empty() {
        return vec![Finding::ok("node 0", "all there is")];
    }
    let one = |node: &Node| {
        let cpus = match node.cpus.as_str() {
            "" => "no CPUs".to_owned(),
            one if one.bytes().all(|it| it.is_ascii_digit()) => format!("CPU {one}"),
            several => format!("CPUs {several}"),
        };
        let beside = match gpus.beside(node.id).as_slice() {
            [] => String::new(),
            [one] => format!(", GPU {one}"),
            several => format!(", GPUs {}", ranges(several)),
        };
        let (total, free) = (size(node.total), size(node.free));
        let value = format!("{cpus}, {total}, {free} free{beside}");
        Finding::ok(format!("node {}", node.id), value)
    };
    nodes.iter().map(one).collect()
}

/// `0-3,6`.
fn ranges(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let shown: Vec<_> = runs
        .map(|run| match run {
            [only] => only.to_string(),
            [first, .., last] => format!("{first}-{last}"),
            [] => String::new(),
        })
        .collect();
    shown.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_numbers() {
        assert_eq!(ranges(&[0, 1, 2, 3]), "0-3");
        assert_eq!(ranges(&[0, 2, 3, 7]), "0,2-3,7");
    }
}
