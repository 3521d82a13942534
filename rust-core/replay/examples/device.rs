//! A snapshot of PyTorch's on the model of its device allocator: what each reserved, as a line of JSON. `peak` and `end` are
//! the model's bytes and the snapshot's. `cargo xtask bench --only trainings` asks this.
//!
//! usage: device SNAPSHOT [expandable]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Write as _};

use pinbuddy_events::Whose;
use pinbuddy_replay::device::history::History;
use pinbuddy_replay::device::replay::Replay;
use pinbuddy_replay::device::{Kind, Torch};
use pinbuddy_snapshot::Snapshot;
use serde_json::json;

fn main() -> Result<(), String> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: device SNAPSHOT [expandable]")?;
    let expandable = args.next().is_some_and(|it| it == "expandable");
    let file = File::open(&path).map_err(|why| format!("{path}: {why}"))?;
    let snapshot = Snapshot::read(BufReader::new(file)).map_err(|why| format!("{path}: {why}"))?;
    let history = History::of(snapshot.entries(Whose::Device(0)));
    let kind = if expandable { Kind::TorchExpandable } else { Kind::Torch };
    let agreement = history.compare(kind);
    let mut models = BTreeMap::new();
    for kind in Kind::ALL {
        let mut replay: Replay<Torch> = Replay::new(kind.model());
        history.acts.iter().for_each(|act| replay.step(*act));
        models.insert(kind.name(), format!("{:?}", replay.outcome()));
    }
    let text = json!({
        "acts": history.acts.len(),
        "differs": agreement.differs,
        "peak": agreement.peak,
        "end": agreement.end,
        "models": models,
    });
    // A pipe that closes early is no error.
    let _ = std::io::stdout().write_all(format!("{text}\n").as_bytes());
    Ok(())
}
