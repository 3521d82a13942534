//! PyTorch's own settings for pinned memory that do not mean for blocks what they mean for stock's.
//!
//! The C++ side obeys all others (`cpp/settings.h`). Knows the settings' text alone, since PyTorch may refuse it only
//! later, and an error of ours would come first.

use std::ffi::OsString;

use super::{Config, MIB, Setting};

/// Where PyTorch looks for its settings: the first that is set counts.
const VARIABLES: [&str; 2] = ["PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"];

impl Config {
    /// Compares with PyTorch's settings; returns the warnings to show. What is set as well by a variable of ours says
    /// nothing: the user has chosen.
    pub fn compare_with_pytorch(&mut self, lookup: impl Fn(&str) -> Option<OsString>) -> Vec<String> {
        let text = VARIABLES.iter().find_map(|name| lookup(name));
        let text = text.and_then(|it| it.into_string().ok());
        let text = text.unwrap_or_default();
        let value = |name| value(&text, name);
        let is_on = |name| value(name).is_some_and(|it| it.eq_ignore_ascii_case("true"));
        let is_more_than = |name, most| {
            let number = value(name).and_then(|it| it.parse::<usize>().ok());
            number.is_some_and(|it| it > most)
        };
        let threshold = self.threshold_bytes() / MIB;
        let mut warnings = Vec::new();
        if is_on("pinned_use_cuda_host_register")
            && is_more_than("pinned_num_register_threads", 1)
            && !self.memory.pin_threads.origin.is_set()
        {
            let remark = format!(
                "pinned_num_register_threads holds for requests below {threshold} MiB \
                 (BUDDY_THRESHOLD_MB) alone; BUDDY_PIN_THREADS sets how many threads fill blocks"
            );
            warnings.push(note(&mut self.memory.pin_threads, remark));
        }
        if self.guard.value && is_more_than("pinned_reserve_segment_size_mb", 0) {
            let remark = "pinned_reserve_segment_size_mb has no effect with BUDDY_GUARD=1, which serves \
                          all requests from blocks"
                .to_owned();
            warnings.push(note(&mut self.guard, remark));
        } else if is_on("pinned_use_background_threads") {
            let remark = format!(
                "pinned_use_background_threads holds for requests below {threshold} MiB \
                 (BUDDY_THRESHOLD_MB) alone; whether streams are done with blocks is asked by requests, \
                 one stream each"
            );
            warnings.push(note(&mut self.threshold_mb, remark));
        }
        warnings
    }
}

/// Adds a remark to a setting of ours, and returns it.
fn note<T>(setting: &mut Setting<T>, remark: String) -> String {
    let before = setting.remark.take().map(|it| it + "; ");
    setting.remark = Some(before.unwrap_or_default() + &remark);
    remark
}

/// What a setting is set to, as PyTorch reads the text: `name:value` pairs with commas between them. The last one counts.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once(':'));
    let mut of_name = pairs.filter(|(key, _)| key.trim() == name);
    of_name.next_back().map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::super::of_pairs as read;

    /// What is said with these settings of PyTorch's and ours: a part of the only line, or nothing.
    #[test]
    fn what_cannot_be_meant_is_said_once_with_what_to_do() {
        let threads = "pinned_use_cuda_host_register:True, pinned_num_register_threads: 8";
        let background = "pinned_use_background_threads:true";
        let reserved = "pinned_reserve_segment_size_mb:512";
        let same = "pinned_reserve_segment_size_mb:512,pinned_max_cached_size_mb:2,\
                    pinned_max_round_threshold_mb:1,pinned_free_catch_all:True,pinned_use_cuda_host_register:True,\
                    pinned_num_register_threads:1,roundup_power2_divisions:[256:1,512:2,>:8]";
        let none = ("BUDDY_LIVE", "0");
        let part = |text, ours, part| (text, ours, Some(part));
        for (text, ours, expected) in [
            ("", none, None),
            ("nonsense", none, None),
            ("pinned_use_background_threads:False", none, None),
            ("pinned_num_register_threads:8", none, None),
            (same, none, None),
            part(threads, none, "BUDDY_PIN_THREADS sets"),
            (threads, ("BUDDY_PIN_THREADS", "8"), None),
            part(background, ("BUDDY_THRESHOLD_MB", "7"), "below 7 MiB"),
            part(reserved, ("BUDDY_GUARD", "1"), "no effect with BUDDY_GUARD=1"),
        ] {
            let lookup = |name: &str| (name == "PYTORCH_CUDA_ALLOC_CONF").then(|| text.into());
            let said = read(&[ours]).0.compare_with_pytorch(lookup);
            assert_eq!(said.len(), usize::from(expected.is_some()), "{said:?}");
            assert!(said.concat().contains(expected.unwrap_or_default()), "{said:?}");
        }
    }

    #[test]
    fn the_newer_name_counts_and_reports_have_the_remark() {
        let mut config = read(&[]).0;
        let warnings = config.compare_with_pytorch(|name| {
            let on = name == "PYTORCH_ALLOC_CONF";
            Some(format!("pinned_use_background_threads:{on}").into())
        });
        assert_eq!(config.threshold_mb.remark.as_ref(), warnings.first());
        assert_eq!(warnings.len(), 1);
    }
}
