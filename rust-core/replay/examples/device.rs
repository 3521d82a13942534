//! A snapshot of PyTorch's on the model of its device allocator: what each reserved.
//!
//! usage: device SNAPSHOT [expandable]

use std::fs::File;
use std::io::{BufReader, Write as _};

use pinbuddy_events::Whose;
use pinbuddy_replay::device::history::History;
use pinbuddy_replay::device::replay::Replay;
use pinbuddy_replay::device::{Kind, Settings, Torch};
use pinbuddy_snapshot::Snapshot;

fn main() -> Result<(), String> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: device SNAPSHOT [expandable]")?;
    let expandable = args.next().is_some_and(|it| it == "expandable");
    let file = File::open(&path).map_err(|why| format!("{path}: {why}"))?;
    let snapshot = Snapshot::read(BufReader::new(file)).map_err(|why| format!("{path}: {why}"))?;
    let history = History::of(snapshot.entries(Whose::Device(0)));
    let settings = Settings {
        expandable,
        ..Settings::default()
    };
    let mut text = format!("{} acts\n", history.acts.len());
    text += &format!(
        "{:?}
",
        history.compare(settings)
    );
    for kind in Kind::ALL {
        let mut replay: Replay<Torch> = Replay::new(kind.model());
        history.acts.iter().for_each(|act| replay.step(*act));
        text += &format!("{}: {:?}\n", kind.name(), replay.outcome());
    }
    // A pipe that closes early is no error.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(())
}
