//! The opcodes of Python's pickles, protocols 2 to 5, by their names in `pickletools`.

use crate::error::What;

macro_rules! opcodes {
    ($($name:ident = $code:literal),* $(,)?) => {
        $(pub(super) const $name: u8 = $code;)*

        /// The name of an opcode that is read here.
        pub(super) fn name(code: u8) -> Option<&'static str> {
            match code {
                $($code => Some(stringify!($name)),)*
                _ => REFUSED.iter().find(|it| it.0 == code).map(|it| it.1),
            }
        }
    };
}

opcodes! {
    PROTO = 0x80, FRAME = 0x95, STOP = b'.', MARK = b'(',
    NONE = b'N', NEWTRUE = 0x88, NEWFALSE = 0x89,
    BININT = b'J', BININT1 = b'K', BININT2 = b'M', LONG1 = 0x8a, LONG4 = 0x8b, BINFLOAT = b'G',
    SHORT_BINUNICODE = 0x8c, BINUNICODE = b'X', BINUNICODE8 = 0x8d,
    SHORT_BINBYTES = b'C', BINBYTES = b'B', BINBYTES8 = 0x8e, BYTEARRAY8 = 0x96,
    EMPTY_TUPLE = b')', TUPLE = b't', TUPLE1 = 0x85, TUPLE2 = 0x86, TUPLE3 = 0x87,
    EMPTY_LIST = b']', APPEND = b'a', APPENDS = b'e',
    EMPTY_DICT = b'}', SETITEM = b's', SETITEMS = b'u',
    BINGET = b'h', LONG_BINGET = b'j', BINPUT = b'q', LONG_BINPUT = b'r', MEMOIZE = 0x94,
}

/// Opcodes of classes and calls: code, name, in words.
const REFUSED: [(u8, &str, &str); 16] = [
    (b'c', "GLOBAL", "the name of a class or function"),
    (0x93, "STACK_GLOBAL", "the name of a class or function"),
    (b'R', "REDUCE", "a call"),
    (b'b', "BUILD", "an object's state"),
    (b'i', "INST", "an object of a class"),
    (b'o', "OBJ", "an object of a class"),
    (0x81, "NEWOBJ", "an object of a class"),
    (0x92, "NEWOBJ_EX", "an object of a class"),
    (b'P', "PERSID", "an object outside of the pickle"),
    (b'Q', "BINPERSID", "an object outside of the pickle"),
    (0x82, "EXT1", "a class of the extension registry"),
    (0x83, "EXT2", "a class of the extension registry"),
    (0x84, "EXT4", "a class of the extension registry"),
    (0x97, "NEXT_BUFFER", "a buffer outside of the pickle"),
    (0x98, "READONLY_BUFFER", "a buffer outside of the pickle"),
    (0x8f, "EMPTY_SET", "a set"),
];

/// Why an opcode is not read.
pub(super) fn refusal(code: u8) -> What {
    let found = REFUSED.iter().find(|it| it.0 == code);
    found.map_or(What::Opcode(code), |it| What::Class(it.2))
}
