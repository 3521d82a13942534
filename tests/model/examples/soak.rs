//! `soak [MODEL] [--first SEED] [--actions N]`: models on cases at random, a line of JSON for each.

use std::process::ExitCode;
use std::time::Instant;

use pinbuddy_model::soak::{self, MODELS, Tried};

fn main() -> ExitCode {
    match asked() {
        Ok((model, first, actions)) => {
            let chosen = |it: &&soak::Model| model.as_ref().is_none_or(|name| name == it.0);
            for model in MODELS.iter().filter(chosen) {
                let start = Instant::now();
                let Tried { cases, actions } = on_all_cores(*model, first, actions);
                let seconds = start.elapsed().as_secs_f64();
                println!(r#"{{"model":"{}","cases":{cases},"actions":{actions},"seconds":{seconds:.1}}}"#, model.0);
            }
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}; expected: soak [engine|provisioner] [--first SEED] [--actions N]");
            ExitCode::FAILURE
        }
    }
}

/// A part of the actions for each core, with seeds far apart.
fn on_all_cores(model: soak::Model, first: u64, actions: u64) -> Tried {
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let cores = if actions < 1000 { 1 } else { cores };
    std::thread::scope(|scope| {
        let part = |core| scope.spawn(move || soak::run(model, first + (core << 40), actions / cores));
        let parts: Vec<_> = (0..cores).map(part).collect();
        let mut all = Tried::default();
        for part in parts {
            let Ok(tried) = part.join() else {
                std::process::exit(1);
            };
            all.cases += tried.cases;
            all.actions += tried.actions;
        }
        all
    })
}

/// Which model, if one; the first seed; how many actions of each.
fn asked() -> Result<(Option<String>, u64, u64), String> {
    let (mut model, mut first, mut actions) = (None, 0, 1_000_000);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || -> Result<u64, String> {
            let text = words.next().unwrap_or_default();
            text.parse().map_err(|_| format!("{word} is followed by {text:?}, not by a number"))
        };
        match word.as_str() {
            "--first" => first = number()?,
            "--actions" => actions = number()?,
            name if MODELS.iter().any(|it| it.0 == name) => model = Some(word),
            _ => return Err(format!("{word:?} is no model and no option")),
        }
    }
    Ok((model, first, actions))
}
