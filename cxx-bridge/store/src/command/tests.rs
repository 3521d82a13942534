//! What counts of a command line, and what does not.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

/// Files with their content.
#[derive(Default)]
struct Files(HashMap<String, String>);

impl Files {
    fn with(files: &[(&str, &str)]) -> Self {
        let own = |(path, content): &(&str, &str)| (path.to_string(), content.to_string());
        Self(files.iter().map(own).collect())
    }
}

impl Look for Files {
    fn content(&self, path: &Path) -> Option<String> {
        Some(hash(&[self.0.get(path.to_str()?)?.as_bytes()]))
    }
}

fn of(line: &str, look: &Files) -> Option<Command> {
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    Command::of(&words, look)
}

/// What counts of these arguments.
fn counts(line: &str) -> String {
    let files = Files::with(&[("train.py", ""), ("cfg.yaml", "batch: 8"), ("8", "")]);
    let command = of(&format!("python train.py {line}"), &files).unwrap();
    command.arguments.join(" ")
}

/// Each of these counts as it stands.
fn all_count(lines: &[&str]) {
    lines.iter().for_each(|line| assert_eq!(counts(line), *line));
}

#[test]
fn the_program_is_found_behind_pythons_own_options() {
    let files = Files::with(&[
        ("a/train.py", "one"),
        ("pkg/train/__main__.py", "two"),
        ("./serve", "three"),
        ("/bin/ipykernel_launcher.py", "four"),
        ("/bin/ipython3", "five"),
    ]);
    let program = |line: &str| of(line, &files).map(|it| it.program);
    let train = Some("train.py".to_owned());
    for line in [
        "python a/train.py",
        "/usr/bin/python3.11 -u a/train.py",
        "python -X dev -Werror -W ignore a/train.py",
        "python -OO --check-hash-based-pycs never a/train.py",
    ] {
        assert_eq!(program(line), train, "{line}");
    }
    for line in ["python -m pkg.train", "python -um pkg.train", "python -mpkg.train"] {
        let command = of(line, &files).unwrap();
        assert_eq!(command.program, "pkg.train", "{line}");
        assert!(command.content.is_some(), "{line}");
    }
    assert_eq!(program("./serve --batch 8").as_deref(), Some("serve"));
    assert_eq!(of("python -c pass", &files).unwrap().program, "-c");
    for unknown in [
        "python",
        "python -",
        "python -i",
        "python -m",
        "python -W",
        "python none.py",
        "ray::train",
        "python -m ipykernel_launcher -f /run/kernel-1.json",
        "python /bin/ipykernel_launcher.py",
        "python -m IPython",
        "python /bin/ipython3",
    ] {
        assert_eq!(of(unknown, &files), None, "{unknown}");
    }
    let spawned = ["python", "-c", "from multiprocessing.spawn import spawn_main"];
    assert_eq!(Command::of(&spawned.map(str::to_owned), &files), None);
}

#[test]
fn a_script_is_named_and_its_interpreter_where_there_is_none() {
    for (words, expected) in [
        ("python\0/home/me/train.py\0--steps\x005\0", "train.py"),
        ("/usr/bin/python3.11\0-u\0-W\0ignore\0train.py\0", "train.py"),
        ("python3\0-m\0my.module\0x\0", "my.module"),
        ("python3\0-c\0import torch\0", "python3"),
        ("python3\0", "python3"),
        ("python3\0\0", "python3"),
        ("./serve\0--port\x001\0", "serve"),
        ("", ""),
    ] {
        assert_eq!(name(&split(words.as_bytes())), expected, "{words:?}");
    }
}

#[test]
fn programs_with_one_name_differ_and_one_program_on_two_machines_does_not() {
    let files = Files::with(&[("a/train.py", "one"), ("b/train.py", "two"), ("/n/train.py", "one")]);
    let of = |line| of(line, &files).unwrap();
    assert_ne!(of("python a/train.py"), of("python b/train.py"));
    assert_eq!(of("python a/train.py"), of("python3 /n/train.py"));
    assert_ne!(of("python -c one"), of("python -c two"));
}

#[test]
fn seeds_ranks_and_ports_do_not_count() {
    for line in [
        "--batch 8 --seed 7",
        "--batch 8 --seed=7",
        "--seed -1 --batch 8",
        "--data-seed 3 --batch 8 --local_rank=3",
        "--batch 8 --local-rank 1 --master_addr 10.0.0.1",
        "--global_rank=7 --world-rank 7 --batch 8",
        "--port 8001 --batch 8 --server.http-port=80 --master_port 1",
        "--batch 8 trainer.seed=4",
    ] {
        assert_eq!(counts(line), "--batch 8", "{line}");
    }
    // Not a seed's value.
    assert_eq!(counts("--use-seed train"), "train");
    all_count(&["--lora-rank 8 --rank 4 --max-tokens 9", "--world-size 8 --export_every 5 --portable 1"]);
}

#[test]
fn secrets_do_not_count_and_what_only_sounds_like_one_does() {
    for line in [
        "--hf-token abc --batch 8 --api_key=x",
        "--apikey x --wandb_apikey=x --batch 8 --passwd 1234",
        "--hf_api_keys x --batch 8 --access-token-path /x --credentials x",
        "--batch 8 --db.passphrase x --secret_name x hub.auth_tokens=x",
        "--batch 8 --use_auth_token",
    ] {
        assert_eq!(counts(line), "--batch 8", "{line}");
    }
    all_count(&[
        "--num_key_value_heads 8 --model.num_key_value_heads=32",
        "--key_dim 64 --key_norm rms",
        "--max_token 4096 --max_token=4096 --keys=2 --batch 8",
        "--max_tokens auto --monkey no",
    ]);
    assert_ne!(counts("--max_token 1024"), counts("--max_token 4096"));
}

#[test]
fn what_looks_like_a_secret_is_not_in_clear_and_two_of_them_differ() {
    let token = "hf_aB3dE6gH9jK2mN5pQ8sT1vW4";
    let other = token.replace('3', "4");
    for line in ["TOKEN", "--hub TOKEN", "--model org/TOKEN", "hub=TOKEN", "--header Bearer:TOKEN", "--TOKEN"] {
        let of = |it: &str| counts(&line.replace("TOKEN", it));
        assert!(!of(token).contains(&token[3..]), "{}", of(token));
        assert_ne!(of(token), of(&other), "{line}");
    }
    all_count(&[
        "--model Qwen3-235B-A22B-Instruct-2507-FP8",
        "--attention scaled_dot_product_attention2",
        "--steps 100000000000000000000000",
        "--block internationalization",
    ]);
}

#[test]
fn paths_are_all_alike_and_numbers_and_truths_are_none() {
    assert_eq!(counts("/d/imagenet --out runs"), "PATH --out PATH");
    assert_eq!(counts("./data --log-dir=new --run exp"), "PATH --log-dir=PATH --run exp");
    all_count(&[
        "--layout last --dropout none",
        "--batch 8 --out 8 --lr 1e-4",
        "--output_hidden_states True --save_only_model=false",
    ]);
}

#[test]
fn what_a_run_leaves_behind_does_not_change_the_key_of_the_next() {
    for options in [
        "--output FILE",
        "--out=FILE --run exp",
        "--save_json FILE",
        "--logfile FILE",
        "--results-path FILE",
        "--model_metrics FILE",
        "--trainer.outputs=FILE",
        "--run exp",
    ] {
        let line = options.replace("FILE", "metrics.json");
        let line = format!("python train.py {line}");
        let run = |content: Option<&str>| {
            let mut files = vec![("train.py", "")];
            let left = content.map(|it| [("metrics.json", it), ("exp", "")]);
            files.extend(left.into_iter().flatten());
            of(&line, &Files::with(&files)).unwrap()
        };
        assert_eq!(run(None), run(Some("one")), "{line}");
        assert_eq!(run(None), run(Some("two")), "{line}");
    }
}

#[test]
fn a_model_counts_by_its_name_and_settings_by_their_content() {
    assert_eq!(counts("--model org/llama-7b"), "--model llama-7b");
    assert_eq!(counts("--model_name_or_path /m/llama-7b/"), counts("--model_name_or_path org/llama-7b"));
    assert_eq!(counts("--model_dir /m/x --output-model y"), "--model_dir PATH --output-model PATH");
    for option in ["--config", "--config-file", "--model_config", ""] {
        let of = |content| {
            let files = Files::with(&[("train.py", ""), ("/c/cfg.yaml", content)]);
            let words = ["python", "train.py", option, "/c/cfg.yaml"].map(str::to_owned);
            Command::of(&words, &files).unwrap()
        };
        assert_ne!(of("batch: 8"), of("batch: 16"), "{option}");
    }
    assert_eq!(counts("--config /none.yaml"), "--config PATH");
}

#[test]
fn a_file_on_disk_counts_by_its_content_and_a_folder_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("a"), "one").unwrap();
    fs::write(at("b"), "one").unwrap();
    fs::write(at("c"), "two").unwrap();
    assert_eq!(Disk.content(&at("a")), Disk.content(&at("b")));
    assert_ne!(Disk.content(&at("a")), Disk.content(&at("c")));
    assert_eq!([Disk.content(folder.path()), Disk.content(&at("none"))], [None, None]);
    // What is beyond the part that is read shows in the length.
    let long = |bytes: u64| {
        File::create(at("long")).unwrap().set_len(bytes).unwrap();
        Disk.content(&at("long"))
    };
    assert_ne!(long(MOST_CONTENT + 1), long(MOST_CONTENT + 2));
}

proptest! {
    #[test]
    fn no_words_are_too_much(words in prop::collection::vec("(-{0,2}[a-zA-Z=/._é-]{0,6}|python|--seed|-m|-c|-X)", 0..8)) {
        let _ = Command::of(&words, &Files::default());
        let mut python = vec!["python".to_owned()];
        python.extend(words);
        let _ = Command::of(&python, &Files::default());
    }

    #[test]
    fn a_seed_anywhere_makes_no_difference(words in prop::collection::vec("(--[a-d]{1,3}|[0-9]{1,3}|[a-d]{1,3})", 0..8), at in 0usize..9, seed: i32) {
        let at = at.min(words.len());
        // Not between an option and its value, which would be no value any more.
        prop_assume!(at == 0 || !words[at - 1].starts_with('-'));
        let mut with = words.clone();
        with.insert(at, format!("--seed={seed}"));
        let of = |words: &[String]| arguments(words, &Files::default());
        prop_assert_eq!(of(&words), of(&with));
    }
}
