//! Settings that are one of a few words.

/// An enum of the words that a variable takes, in any case, and that reports say.
macro_rules! words {
    ($(#[$of:meta])* pub enum $name:ident { $($(#[$doc:meta])* $value:ident = $word:literal,)+ }) => {
        $(#[$of])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $value,)+
        }

        impl $name {
            pub(crate) const WORDS: &[(&str, Self)] = &[$(($word, Self::$value)),+];
        }
    };
}
