//! Options of `plans`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Options of `plans`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "The folder is BUDDY_PLAN_DIR, or pinbuddy/plans in the user's cache. A KEY is a name that `ls` lists, or how it \
                  begins or ends, if no other does."
)]
pub struct Plans {
    /// The library of the wheel in use, whose folder may have settings
    #[arg(long, value_name = "FILE", hide = true)]
    pub library: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub action: PlansAction,
}

/// What `plans` does.
#[derive(Clone, Debug, Subcommand)]
pub enum PlansAction {
    /// List the plans, the most recently used first
    Ls {
        /// Print them as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what a plan is of: its program, and what else decides its memory
    Show {
        /// Which plan
        key: String,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove plans, damaged ones by whole names: the next run of their programs is recorded
    Rm {
        /// Which plans
        #[arg(value_name = "KEY", required = true)]
        keys: Vec<String>,
    },
    /// Copy a plan to a file, which `import` takes, and BUDDY_PLAN of a program of one process
    Export {
        /// Which plan
        key: String,
        /// The file
        file: PathBuf,
    },
    /// Put an exported plan into the folder
    Import {
        /// The file
        file: PathBuf,
    },
    /// Say which plans a command line has under the present environment, and if there is none, which are near
    Why(Why),
}

/// Options of `plans why`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "COMMAND is what a process of the run is: of a program that torchrun starts, `python train.py ...` with \
                  WORLD_SIZE and LOCAL_RANK set. Exit status 1 if there is no plan."
)]
pub struct Why {
    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
    /// The version of torch [default: the one that is installed beside this command]
    #[arg(long, value_name = "VERSION", overrides_with = "torch", value_parser = super::version)]
    pub torch: Option<String>,
    /// The command line
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<String>,
}
