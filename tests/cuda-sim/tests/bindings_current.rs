//! The checked-in CUDA types are what bindgen makes of the CUDA headers of the nvidia wheels.
//!
//! The simulator builds without libclang and without CUDA headers because `src/bindings.rs` and
//! `src/bindings_cuda12.rs` are checked in; these tests regenerate them and compare. They need
//!
//! - `LIBCLANG_PATH`: the folder of `libclang.so` (PyPI package `libclang`);
//! - `PINBUDDY_CUDA_INCLUDE`: the CUDA 13 header folders, separated by `:` (`nvidia/cu13/include`
//!   with the package nvidia-cuda-crt in it or beside it);
//! - `PINBUDDY_CUDA12_INCLUDE`: the same of CUDA 12 (package nvidia-cuda-runtime-cu12).
//!
//! They are ignored by default, so that a machine without these does not look green by skipping;
//! once asked for, a missing variable fails. `UPDATE_BINDINGS=1` rewrites the files.
//!
//! Of enums only those variants are kept whose name is in the simulator's sources: to use another one, name it in a
//! comment first, and rewrite.

use std::path::{Path, PathBuf};
use std::process::Command;

use bindgen::callbacks::{EnumVariantCustomBehavior, EnumVariantValue, ParseCallbacks};

/// What to take from the headers, by kind: names, between spaces.
struct Selection {
    newtype_enums: &'static str,
    types: &'static str,
    constants: &'static str,
}

const CUDA13: Selection = Selection {
    newtype_enums: "cudaDeviceAttr cudaDriverEntryPointQueryResult cudaError cudaMemcpyKind cudaMemoryType \
                    cudaStreamCaptureMode cudaStreamCaptureStatus",
    types: "cudaDeviceProp cudaFuncAttributes cudaLaunchConfig_st dim3",
    constants: "CUDART_VERSION cudaEvent(DisableTiming|Interprocess) cudaEventRecordExternal cudaEventWaitExternal \
                cudaStreamNonBlocking",
};

const CUDA12: Selection = Selection { newtype_enums: "", types: "cudaDeviceProp", constants: "CUDART_VERSION" };

#[test]
#[ignore = "needs LIBCLANG_PATH, PINBUDDY_CUDA_INCLUDE and PINBUDDY_CUDA12_INCLUDE, which `cargo xtask test` sets"]
fn bindings_are_current() {
    check("src/bindings.rs", "PINBUDDY_CUDA_INCLUDE", &CUDA13);
    check("src/bindings_cuda12.rs", "PINBUDDY_CUDA12_INCLUDE", &CUDA12);
}

fn check(file: &str, variable: &str, selection: &Selection) {
    assert!(
        std::env::var_os("LIBCLANG_PATH").is_some(),
        "LIBCLANG_PATH is not set: pip install libclang, and name the folder of its libclang.so"
    );
    let include =
        std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set: name the CUDA header folders"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let generated = generate(&include, selection);
    if std::env::var("UPDATE_BINDINGS").as_deref() == Ok("1") {
        std::fs::write(&path, &generated).expect("the bindings file can be written");
        return;
    }
    let checked_in = std::fs::read_to_string(&path).expect("the bindings are checked in");
    assert!(
        checked_in == generated,
        "{file} is not what the headers in {include} give; \
         look at the difference after running this test with UPDATE_BINDINGS=1"
    );
}

fn generate(include: &str, selection: &Selection) -> String {
    let mut builder = bindgen::Builder::default()
        .header_contents("selection.h", "#include <cuda_runtime_api.h>\n")
        .clang_args(include.split(':').map(|folder| format!("-I{folder}")))
        .clang_arg(format!("-isystem{}", compiler_headers().display()))
        .formatter(bindgen::Formatter::Prettyplease)
        .disable_header_comment()
        .raw_line("//! CUDA's types as bindgen reads them; `tests/bindings_current.rs` keeps them so.")
        .opaque_type("cudaLaunchAttribute_st")
        .blocklist_type("cudaMemLocation.*")
        .generate_comments(false)
        .layout_tests(false)
        .merge_extern_blocks(true)
        .prepend_enum_name(false)
        .allowlist_recursively(true);
    for name in selection.newtype_enums.split_whitespace() {
        builder = builder.newtype_enum(name).allowlist_type(name);
    }
    for name in selection.types.split_whitespace() {
        builder = builder.allowlist_type(name);
    }
    for name in selection.constants.split_whitespace() {
        builder = builder.allowlist_var(name);
    }
    builder
        .parse_callbacks(Box::new(Used(sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")))))
        .generate()
        .expect("bindgen reads the headers")
        .to_string()
}

/// Hides variants of enums that the simulator's sources do not name.
#[derive(Debug)]
struct Used(String);

impl ParseCallbacks for Used {
    fn enum_variant_behavior(
        &self,
        _enum: Option<&str>,
        name: &str,
        _value: EnumVariantValue,
    ) -> Option<EnumVariantCustomBehavior> {
        let is_word_end = |at: usize| {
            let next = self.0[at..].chars().next();
            !next.is_some_and(|it| it.is_alphanumeric() || it == '_')
        };
        let is_named = self.0.match_indices(name).any(|(at, _)| is_word_end(at + name.len()));
        (!is_named).then_some(EnumVariantCustomBehavior::Hide)
    }
}

/// The text of the simulator's sources but for the bindings themselves.
fn sources(folder: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).expect("the simulator's sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            text += &sources(&path);
        } else if !path.file_name().is_some_and(|it| it.to_string_lossy().starts_with("bindings")) {
            text += &std::fs::read_to_string(&path).expect("a source");
        }
    }
    text
}

/// The compiler's own headers (`stddef.h` and such), which the libclang package does not bring.
fn compiler_headers() -> PathBuf {
    let output = Command::new("gcc")
        .arg("-print-file-name=include")
        .output()
        .expect("gcc runs: it names the folder of the compiler's headers");
    let text = String::from_utf8(output.stdout).expect("a folder name");
    PathBuf::from(text.trim())
}
