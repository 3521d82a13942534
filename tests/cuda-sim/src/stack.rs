//! Who is calling: the return addresses on the stack, and the libraries that they lie in.

use std::ffi::{CStr, c_void};

/// How many calls a report shows.
const DEPTH: usize = 24;

/// A stack of calls, the innermost first; those in this library left out.
#[derive(Clone, Debug)]
pub(crate) struct Stack(Vec<usize>);

/// Where an address lies.
struct Place {
    library: String,
    offset: usize,
    symbol: Option<String>,
}

impl Stack {
    /// The calls that led here. Neither symbols nor files are read for it.
    pub(crate) fn capture() -> Self {
        Self::of::<{ 2 * DEPTH }>()
    }

    /// The name of the library whose call into this one led here.
    pub(crate) fn caller() -> Option<String> {
        // Few of ours are on top of it.
        let Self(calls) = Self::of::<12>();
        Some(place(*calls.first()?)?.library)
    }

    fn of<const MOST: usize>() -> Self {
        let mut frames = [std::ptr::null_mut::<c_void>(); MOST];
        // SAFETY: there is room for as many addresses as are asked for.
        let found = unsafe { libc::backtrace(frames.as_mut_ptr(), MOST as i32) };
        let found = usize::try_from(found).unwrap_or(0).min(frames.len());
        let own = base_of(Self::capture as *const () as usize);
        let calls = frames[..found].iter().map(|it| it.addr());
        Self(calls.filter(|it| base_of(*it) != own).collect())
    }

    /// A line for each call.
    pub(crate) fn lines(&self) -> String {
        let mut text = String::new();
        for address in self.0.iter().take(DEPTH) {
            let line = match place(*address) {
                Some(it) => format!("{}+{:#x} {}", it.library, it.offset, it.symbol.unwrap_or_default()),
                None => format!("{address:#x}"),
            };
            text.push_str("\n    ");
            text.push_str(line.trim_end());
        }
        text
    }
}

/// Where the library that holds an address begins.
fn base_of(address: usize) -> Option<usize> {
    info(address).map(|it| it.dli_fbase.addr())
}

fn info(address: usize) -> Option<libc::Dl_info> {
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: the address is only looked up, and `info` is a valid place for the answer.
    let found = unsafe { libc::dladdr(std::ptr::without_provenance(address), &raw mut info) };
    (found != 0).then_some(info)
}

fn place(address: usize) -> Option<Place> {
    let info = info(address)?;
    let text = |name: *const libc::c_char| {
        if name.is_null() {
            return None;
        }
        // SAFETY: the loader's names are C strings that live as long as the library is loaded.
        let name = unsafe { CStr::from_ptr(name) };
        Some(name.to_string_lossy().into_owned())
    };
    let file = text(info.dli_fname)?;
    Some(Place {
        library: file.rsplit('/').next().unwrap_or_default().to_owned(),
        offset: address.wrapping_sub(info.dli_fbase.addr()),
        symbol: text(info.dli_sname),
    })
}
