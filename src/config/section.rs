//! The macro of sections: a section of the configuration, its keys and their defaults, declared once.

/// Declares a section. A key is its meaning (its doc comment: the first paragraph is shown to users), its name, the type of its value, its
/// default where it has one, and what it may be. Of that are made:
///
/// - the struct of the section, of whose fields each is a key, and with `: Default` (where every key has a default) its `Default`;
/// - `Draft`, the section as it is read: each value, or `None` where it has a problem;
/// - `keys`, with a function for each key that returns its definition;
/// - `help`, all that is said of the section and its keys.
macro_rules! section {
    (
        $(#[doc = $comment:literal])+ #[derive($($derive:ident),+)]
        $path:literal $kind:ident: Default {
            $($(#[doc = $meaning:literal])+ $(#[serde $serde:tt])? $field:ident: $type:ty = $default:expr => $definition:expr),+ $(,)?
        }
    ) => {
        section! {
            $(#[doc = $comment])+ #[derive($($derive),+)]
            $path $kind { $($(#[doc = $meaning])+ $(#[serde $serde])? $field: $type = $default => $definition),+ }
        }

        impl Default for $kind {
            fn default() -> Self {
                $kind { $($field: $default),+ }
            }
        }
    };
    (
        $(#[doc = $comment:literal])+ #[derive($($derive:ident),+)]
        $path:literal $kind:ident {
            $($(#[doc = $meaning:literal])+ $(#[serde $serde:tt])? $field:ident: $type:ty $(= $default:expr)? => $definition:expr),+ $(,)?
        }
    ) => {
        $(#[doc = $comment])+
        #[derive($($derive),+, serde::Serialize)]
        pub struct $kind { $($(#[doc = $meaning])+ $(#[serde $serde])? pub $field: $type),+ }

        /// The section as it is read; `None` for a key with a problem.
        pub(crate) struct Draft { $(pub $field: Option<$type>),+ }

        impl Draft {
            /// Reads every key, and adds their problems to the section's.
            pub(crate) fn read(section: &mut $crate::config::reader::Section<'_, '_>) -> Draft {
                Draft { $($field: keys::$field().read(section)),+ }
            }

            /// The section, where no key has a problem.
            pub(crate) fn complete(self) -> Option<$kind> {
                Some($kind { $($field: self.$field?),+ })
            }
        }

        /// The definitions of the keys.
        pub(crate) mod keys {
            use super::*;

            $(
                pub fn $field() -> $crate::config::key::Key<impl $crate::config::kind::Kind<Value = $type>> {
                    let comment = concat!($($meaning, "\n"),+);
                    $crate::config::key::Key::new($path, stringify!($field), comment, section!(@default $($default)?), $definition)
                }
            )+
        }

        /// All that is said of the section and its keys.
        pub(crate) fn help(is_optional: bool) -> $crate::config::key::SectionHelp {
            $crate::config::key::SectionHelp {
                name: $path,
                meaning: $crate::config::key::paragraph(concat!($($comment, "\n"),+)),
                is_optional,
                keys: vec![$(keys::$field().help()),+],
            }
        }
    };
    (@default) => { None };
    (@default $default:expr) => { Some($default) };
}

pub(crate) use section;
