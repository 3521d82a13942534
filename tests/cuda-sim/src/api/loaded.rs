//! Which libcudart the process has loaded: some names mean different things in CUDA 12 and 13.

use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;

/// The major version whose meanings apply; CUDA 13 where no libcudart is loaded.
pub(crate) fn major() -> u32 {
    static MAJOR: OnceLock<u32> = OnceLock::new();
    *MAJOR.get_or_init(|| {
        let mut found: Option<u32> = None;
        // SAFETY: `note_library` has the signature that is asked for and `found` outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(note_library), (&raw mut found).cast()) };
        found.unwrap_or(13)
    })
}

/// Called with each loaded library; `found` is the `Option<u32>` of `major`.
unsafe extern "C" fn note_library(info: *mut libc::dl_phdr_info, _size: usize, found: *mut c_void) -> c_int {
    // SAFETY: the loader gives a valid entry, whose name is a C string or null.
    let name = unsafe {
        let name = (*info).dlpi_name;
        if name.is_null() {
            return 0;
        }
        CStr::from_ptr(name)
    };
    let Some(major) = major_of(&name.to_string_lossy()) else {
        return 0;
    };
    // SAFETY: `found` is the option that `major` passed.
    unsafe { *found.cast::<Option<u32>>() = Some(major) };
    1
}

/// The major version in a library's path, if it is a libcudart.
fn major_of(path: &str) -> Option<u32> {
    let (_, name) = path.rsplit_once('/').unwrap_or(("", path));
    let version = name.strip_prefix("libcudart.so.")?;
    version.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::major_of;

    #[test]
    fn the_version_is_in_the_name() {
        assert_eq!(major_of("/x/nvidia/cu13/lib/libcudart.so.13"), Some(13));
        assert_eq!(major_of("libcudart.so.12.8.90"), Some(12));
        assert_eq!(major_of("/x/libcuda.so.1"), None);
        assert_eq!(major_of("/libcudart.so.13/libc.so.6"), None);
    }
}
