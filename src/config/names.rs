//! The macro of names: an enum whose values have one name each, the same in TOML, on the command line and in the results.

/// An enum that [`names!`] declares.
pub trait Named: std::str::FromStr + serde::Serialize + Copy + 'static {
    /// Every value's name.
    const NAMES: &'static [&'static str];
    /// Meaning of each value, in the same order.
    const MEANINGS: &'static [&'static str];
}

/// Declares an enum as [`called!`](crate::readable::called) does, whose names are read and written too. `$none` matches nothing: a repetition in a
/// macro needs a variable, and `#[default]` has none.
macro_rules! names {
    ($(#[$doc:meta])* $kind:ident { $($(#[doc = $meaning:literal])+ $(#[default $($none:tt)?])? $value:ident = $name:literal),+ $(,)? }) => {
        $crate::readable::called! {
            $(#[$doc])*
            #[derive(Hash, serde::Serialize)]
            $kind { $($(#[doc = $meaning])+ $(#[default $($none)?])? #[serde(rename = $name)] $value = $name),+ }
        }

        impl $kind {
            /// Every value's name.
            pub const NAMES: &'static [&'static str] = &[$($name),+];
        }

        impl $crate::config::names::Named for $kind {
            const NAMES: &'static [&'static str] = $kind::NAMES;
            const MEANINGS: &'static [&'static str] = &[$(concat!($($meaning),+)),+];
        }

        impl clap::ValueEnum for $kind {
            fn value_variants<'a>() -> &'a [Self] {
                &Self::ALL
            }

            fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
                Some(clap::builder::PossibleValue::new(self.name()))
            }
        }

        impl std::fmt::Display for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl std::str::FromStr for $kind {
            type Err = $crate::Error;
            fn from_str(text: &str) -> $crate::Result<Self> {
                let problem = || format!("expected one of {}, found \"{text}\"", Self::NAMES.join(", "));
                let found = Self::ALL.into_iter().find(|value| value.name() == text);
                found.ok_or_else(|| $crate::Error::Configuration { path: "name".to_owned(), problems: vec![problem()] })
            }
        }
    };
}

pub(crate) use names;
