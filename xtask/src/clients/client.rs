//! The list of clients, and the choice by name.

use anyhow::Result;

use crate::support::refusal::{Refusal, refuse};

/// A program of `tests/clients`.
#[derive(Debug)]
pub struct Client {
    /// Its name on the command line and in the documents.
    pub name: &'static str,
    /// `tests/clients/FILE.py`.
    pub file: &'static str,
    pub arguments: &'static [&'static str],
    /// The library that it needs besides torch.
    pub library: Option<&'static str>,
    /// Whether `cargo xtask test` runs it, too.
    pub quick: bool,
}

const fn torch(
    name: &'static str,
    file: &'static str,
    arguments: &'static [&'static str],
) -> Client {
    Client {
        name,
        file,
        arguments,
        library: None,
        quick: false,
    }
}

/// A client named after its library.
const fn library(name: &'static str, file: &'static str) -> Client {
    Client {
        library: Some(name),
        ..torch(name, file, &[])
    }
}

const fn quick(client: Client) -> Client {
    Client {
        quick: true,
        ..client
    }
}

/// docs/clients.md says what each does.
pub const CLIENTS: [Client; 19] = [
    torch("loader-fork", "loader", &["fork"]),
    torch("loader-spawn", "loader", &["spawn"]),
    torch("loader-forkserver", "loader", &["forkserver"]),
    torch("loader-persistent", "loader", &["persistent"]),
    torch("loader-pinned-data", "loader_pinned_data", &[]),
    torch("forked-child-large", "forked_child", &["large"]),
    quick(torch("forked-child-small", "forked_child", &["small"])),
    torch("save-on-cpu", "save_on_cpu", &[]),
    torch("checkpoint-thread", "checkpoint", &["thread"]),
    torch("checkpoint-process", "checkpoint", &["process"]),
    quick(torch("fsdp-offload", "fsdp_offload", &[])),
    quick(torch("kv-pool", "kv_pool", &[])),
    library("accelerate", "accelerate_offload"),
    library("diffusers", "diffusers_offload"),
    library("lightning", "lightning_fit"),
    library("safetensors", "safetensors_load"),
    library("torchao", "torchao_optimizer"),
    library("torchdata", "torchdata_nodes"),
    library("transformers", "transformers_cache"),
];

/// The named clients, deduplicated, in the order of the list; all if none is named.
pub fn choose(names: &[String]) -> Result<Vec<&'static Client>> {
    if let Some(name) = names
        .iter()
        .find(|it| CLIENTS.iter().all(|client| client.name != **it))
    {
        return Err(unknown(name).into());
    }
    let chosen = |client: &&Client| names.is_empty() || names.iter().any(|it| it == client.name);
    Ok(CLIENTS.iter().filter(chosen).collect())
}

fn unknown(name: &str) -> Refusal {
    let distance = |client: &&Client| strsim::damerau_levenshtein(client.name, name);
    let nearest = CLIENTS.iter().min_by_key(distance).map_or("", |it| it.name);
    let all = CLIENTS.map(|it| it.name).join(", ");
    refuse(format!(
        "there is no client {name}, the nearest is {nearest}; there are {all}"
    ))
    .remedy(format!("cargo xtask test-clients {nearest}"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::support::paths;

    #[test]
    fn each_has_a_name_of_its_own_a_file_and_a_row_in_the_document() {
        let mut names = CLIENTS.map(|it| it.name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CLIENTS.len());
        let page = fs::read_to_string(paths::root().join("docs/clients.md")).unwrap();
        for client in &CLIENTS {
            let file = paths::root().join(format!("tests/clients/{}.py", client.file));
            assert!(file.is_file(), "{}", file.display());
            assert!(
                page.contains(&format!("| `{}`", client.name)),
                "docs/clients.md has no row of {}",
                client.name
            );
        }
    }

    #[test]
    fn libraries_are_pinned() {
        let folder = paths::root().join("tests/clients");
        let pins = fs::read_to_string(folder.join("requirements.txt")).unwrap();
        for library in CLIENTS.iter().filter_map(|it| it.library) {
            let pin = format!("{library}==");
            assert!(pins.lines().any(|it| it.starts_with(&pin)), "{library}");
        }
        let pinned = |line: &str| {
            line.starts_with('#')
                || line
                    .split_once("==")
                    .is_some_and(|(_, it)| !it.contains('*'))
        };
        assert!(pins.lines().all(pinned), "a version is not pinned");
        assert!(!pins.contains("torch=="), "torch is the environment's");
    }

    /// `cargo xtask test` has no libraries besides torch.
    #[test]
    fn three_are_quick_and_need_torch_alone() {
        let quick: Vec<_> = CLIENTS.iter().filter(|it| it.quick).collect();
        assert_eq!(quick.len(), 3);
        assert!(quick.iter().all(|it| it.library.is_none()));
    }

    #[test]
    fn all_or_those_named_in_their_order() {
        let named = |names: &[&str]| -> Vec<_> {
            let names: Vec<_> = names.iter().map(|it| (*it).to_owned()).collect();
            choose(&names).unwrap().iter().map(|it| it.name).collect()
        };
        assert_eq!(named(&[]).len(), CLIENTS.len());
        let two = ["kv-pool", "loader-fork", "kv-pool"];
        assert_eq!(named(&two), ["loader-fork", "kv-pool"]);
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_nearest() {
        let error = choose(&["kv-pol".to_owned()]).unwrap_err().to_string();
        let line = error.lines().next().unwrap();
        let start = "there is no client kv-pol, the nearest is kv-pool; there are loader-fork, ";
        assert!(line.starts_with(start), "{error}");
        assert!(error.ends_with("to do     cargo xtask test-clients kv-pool"));
    }
}
