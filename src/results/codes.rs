//! Types of columns: enumerations of how a trial and a start ended, hashes and texts.

use std::str::FromStr;

use hdf5::H5Type;
use hdf5::types::{EnumMember, EnumType, FixedUnicode, IntSize, TypeDescriptor};

use crate::records::{Ending, Status};

/// The variants of [`Ending`], those with a code with an empty one, in the order of their numbers in the file.
const ENDINGS: [Ending; 7] =
    [Ending::First, Ending::Finished, Ending::Stopped, Ending::RankLost, Ending::Killed(0), Ending::Failed(0), Ending::Unknown];

/// Declares an enumeration of the file: any byte, so that reading a damaged file is no undefined behaviour.
macro_rules! codes {
    ($($(#[$about:meta])* $name:ident of $kind:ident: $all:expr;)+) => { $(
        $(#[$about])*
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        pub struct $name(pub u8);

        impl $name {
            /// The code of a value.
            pub fn of(value: $kind) -> Self {
                let place = $all.iter().position(|known| known.name() == value.name());
                $name(place.expect("every value has a code") as u8)
            }

            /// The value of this code; none of a byte that is no value's.
            pub fn value(self) -> Option<$kind> {
                $all.get(usize::from(self.0)).copied()
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.value() {
                    Some(value) => f.write_str(value.name()),
                    None => write!(f, "{} {}", stringify!($kind).to_lowercase(), self.0),
                }
            }
        }

        // SAFETY: a transparent u8, described as an enumeration whose base is an unsigned byte.
        unsafe impl H5Type for $name {
            fn type_descriptor() -> TypeDescriptor {
                let member = |(value, known): (u64, $kind)| EnumMember { name: known.name().to_owned(), value };
                TypeDescriptor::Enum(EnumType { size: IntSize::U1, signed: false, members: (0..).zip($all).map(member).collect() })
            }
        }
    )+ };
}

codes! {
    /// [`Ending`] without its code, as the file has it.
    EndingCode of Ending: ENDINGS;
    /// [`Status`] as the file has it.
    StatusCode of Status: Status::ALL;
}

/// A hash, of which no column of 64-bit floats could hold every bit.
#[derive(Debug, Clone, Copy, H5Type)]
#[repr(transparent)]
pub struct MaskHash(pub u64);

/// Bytes of a text in a table.
const SHORT_BYTES: usize = 256;

/// A text in a table.
pub type ShortText = FixedUnicode<SHORT_BYTES>;

/// A text of at most N bytes; none where it has more, or a NUL character.
pub(super) fn exactly<const N: usize>(text: &str) -> Option<FixedUnicode<N>> {
    FixedUnicode::from_str(text).ok().filter(|fixed: &FixedUnicode<N>| fixed.as_bytes() == text.as_bytes())
}
