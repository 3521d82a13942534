//! Which kinds of GPUs there are, as the driver's files say: asking CUDA would initialise it, after which a program cannot fork.

use std::fs;
use std::path::Path;

/// The models of the GPUs, each once; `None` where the driver's files say nothing.
pub fn devices() -> Option<String> {
    devices_in(Path::new("/proc/driver/nvidia/gpus"))
}

fn devices_in(folder: &Path) -> Option<String> {
    let model = |entry: fs::DirEntry| {
        let text = fs::read_to_string(entry.path().join("information")).ok()?;
        let line = text.lines().find_map(|it| it.strip_prefix("Model:"))?;
        Some(line.trim().to_owned())
    };
    let gpus = fs::read_dir(folder).ok()?;
    let mut models: Vec<String> = gpus.flatten().filter_map(model).collect();
    models.sort_unstable();
    models.dedup();
    (!models.is_empty()).then(|| models.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_models_of_devices_are_read_from_the_drivers_files() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(devices_in(folder.path()), None);
        for (bus, model) in
            [("0000:01:00.0", "NVIDIA H100"), ("0000:02:00.0", "NVIDIA A100"), ("0000:03:00.0", "NVIDIA H100")]
        {
            let gpu = folder.path().join(bus);
            fs::create_dir(&gpu).unwrap();
            fs::write(gpu.join("information"), format!("Model: \t\t {model}\nIRQ:   \t\t 11\n")).unwrap();
        }
        assert_eq!(devices_in(folder.path()).as_deref(), Some("NVIDIA A100, NVIDIA H100"));
        assert_eq!(devices_in(&folder.path().join("none")), None);
    }
}
