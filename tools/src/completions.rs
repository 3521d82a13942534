//! `completions`: a script for a shell, which completes the commands, options and values of `pinbuddy`.
//!
//! The Python package has commands of its own, which are completed too; a test compares them with it.

use anyhow::Result;
use clap::{Arg, ArgAction, Command, CommandFactory as _, ValueHint};
use clap_complete::generate;

use crate::cli::{self, Cli};
use crate::output;

/// The command.
pub fn run(args: &cli::Completions) -> Result<()> {
    let mut script = Vec::new();
    generate(args.shell, &mut whole(), "pinbuddy", &mut script);
    output::print_with(|to| std::io::Write::write_all(to, &script)).map(drop)
}

/// What users call `pinbuddy`: this program's commands, and those of the Python package that starts it.
fn whole() -> Command {
    let flag = |name: &'static str, help: &'static str| {
        let arg = Arg::new(name).long(name).help(help);
        arg.action(ArgAction::SetTrue)
    };
    let path = |name: &'static str, hint| Arg::new(name).long(name).value_hint(hint);
    let json = || flag("json", "Print one line of JSON");
    let library = Command::new("library").about("Print the library for a C++ program to load");
    let verify = Command::new("verify-wheel")
        .about("Verify every byte of a wheel, and name the file that differs");
    let example = Command::new("try")
        .about("Run a small program that offloads activations, with stock and with pinbuddy, and see when memory is pinned");
    Cli::command()
        .arg(json())
        .subcommand(
            verify
                .arg(Arg::new("sha256").long("sha256"))
                .arg(path("like", ValueHint::FilePath)),
        )
        .subcommand(library.arg(path("torch", ValueHint::DirPath)))
        .subcommand(example.arg(path("plan", ValueHint::FilePath)))
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn commands_of_the_python_package_are_completed_as_it_explains_them() {
        let package = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../cxx-bridge/python/pinbuddy/"
        );
        let text = |file: &str| std::fs::read_to_string(format!("{package}{file}")).unwrap();
        let (main, example, verify) = (text("__main__.py"), text("_try.py"), text("_verify.py"));
        let whole = whole();
        let about = |name: &str| {
            let command = whole.find_subcommand(name).unwrap();
            let about = command.get_about().unwrap().to_string();
            let (first, rest) = about.split_at(1);
            format!("\"{}{rest}\"", first.to_lowercase())
        };
        let mut parsers = 0;
        for line in main.lines().filter_map(|it| it.split_once("add_parser(\"")) {
            let name = line.1.split('"').next().unwrap();
            let told = match name {
                "try" => &example,
                "verify-wheel" => &verify,
                _ => &main,
            };
            assert!(told.contains(&about(name)), "{name}: {}", about(name));
            parsers += 1;
        }
        assert_eq!(parsers, 4);
    }
}
