//! libFuzzer on the target that `PINBUDDY_FUZZ_TARGET` names. `ci/explore.sh fuzz` compiles it with
//! `cfg(fuzzing)` and LLVM's counters; without them it only says so.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    static RUN: std::sync::OnceLock<fn(&[u8])> = std::sync::OnceLock::new();
    RUN.get_or_init(|| {
        let name = std::env::var("PINBUDDY_FUZZ_TARGET").unwrap_or_default();
        let found = pinbuddy_fuzz::TARGETS.iter().find(|it| it.0 == name);
        found.unwrap_or_else(|| panic!("PINBUDDY_FUZZ_TARGET={name:?} is no target")).1
    })(bytes);
});

#[cfg(not(fuzzing))]
fn main() {
    eprintln!("compiled without libFuzzer; ci/explore.sh fuzz compiles it with");
}
