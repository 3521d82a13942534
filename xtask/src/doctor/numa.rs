//! The machine's memory nodes: their processors, their memory, and the GPUs beside them.

use serde::Serialize;

use super::files::{Files, kib_field, size};
use super::finding::Finding;
use super::gpu::Gpus;
use super::pages::is_node;

const FOLDER: &str = "sys/devices/system/node";

/// One node.
#[derive(Debug, Serialize)]
pub struct Node {
    /// As the kernel counts them.
    pub id: u32,
    /// `0-55,112-167`.
    pub cpus: String,
    /// In bytes.
    pub total: u64,
    /// In bytes; without the cache, which `MemAvailable` counts and a node does not.
    pub free: u64,
}

/// All of them; none where the kernel knows of none.
pub fn read(files: &Files) -> Vec<Node> {
    let names = files.names(FOLDER).into_iter().filter(|it| is_node(it));
    names
        .filter_map(|name| {
            let id = name.trim_start_matches("node").parse().ok()?;
            let info = files.text(&format!("{FOLDER}/{name}/meminfo"))?;
            let kib = |label| kib_field(&info, &format!("Node {id} {label}:")).unwrap_or(0);
            Some(Node {
                id,
                cpus: files
                    .text(&format!("{FOLDER}/{name}/cpulist"))
                    .unwrap_or_default(),
                total: kib("MemTotal"),
                free: kib("MemFree"),
            })
        })
        .collect()
}

/// A line for each node.
pub fn findings(nodes: &[Node], gpus: &Gpus) -> Vec<Finding> {
    if nodes.is_empty() {
        return vec![Finding::ok("node 0", "all there is")];
    }
    nodes
        .iter()
        .map(|node| {
            let cpus = match node.cpus.as_str() {
                "" => "no CPUs".to_owned(),
                one if one.bytes().all(|it| it.is_ascii_digit()) => format!("CPU {one}"),
                several => format!("CPUs {several}"),
            };
            let mut value = format!("{cpus}, {}, {} free", size(node.total), size(node.free));
            let beside = gpus.beside(node.id);
            match beside.as_slice() {
                [] => {}
                [one] => value += &format!(", GPU {one}"),
                several => value += &format!(", GPUs {}", ranges(several)),
            }
            Finding::ok(format!("node {}", node.id), value)
        })
        .collect()
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
