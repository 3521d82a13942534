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
    let verify = Command::new("verify-wheel").about("Verify every byte of a wheel, and name the file that differs");
    let example = Command::new("try").about(
        "Run a small program that offloads activations, with stock and with pinbuddy, and see when memory is pinned",
    );
    Cli::command()
        .arg(json())
        .subcommand(verify.arg(Arg::new("sha256").long("sha256")).arg(path("like", ValueHint::FilePath)))
        .subcommand(library.arg(path("torch", ValueHint::DirPath)))
        .subcommand(example.arg(path("plan", ValueHint::FilePath)))
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn the_page_and_the_python_package_know_every_command() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../");
        let text = |path: &str| std::fs::read_to_string(format!("{root}{path}")).unwrap();
        let page = text("docs/commands.md");
        let package = ["_tools.py", "__main__.py", "_try.py", "_verify.py"];
        let package = package.map(|it| text(&format!("cxx-bridge/python/pinbuddy/{it}")));
        let whole = whole();
        for command in whole.get_subcommands() {
            let (name, about) = (command.get_name(), command.get_about().unwrap().to_string());
            let (first, rest) = about.split_at(1);
            let told = format!("\"{}{rest}\"", first.to_lowercase());
            let row = format!("| `pinbuddy {name}` | {about} |");
            assert!(page.contains(&row), "docs/commands.md should have {row}");
            let is_told = package.iter().any(|it| it.contains(&told));
            assert!(is_told, "the Python package should have {told}");
        }
        let added = package[1].lines().filter_map(|it| it.split_once("add_parser(\""));
        let added: Vec<&str> = added.map(|it| it.1.split('"').next().unwrap()).collect();
        assert_eq!(added, ["doctor", "try", "verify-wheel", "library"]);
        assert!(added.iter().all(|it| whole.find_subcommand(it).is_some()));
    }
}
