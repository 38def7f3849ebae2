//! Types of columns: enumerations of how a trial and a start ended, hashes and texts.

use std::str::FromStr;

use hdf5::H5Type;
use hdf5::types::{EnumMember, EnumType, FixedUnicode, IntSize, TypeDescriptor};

use crate::records::{Ending, Status};

/// The variants of [`Ending`], those with a code with an empty one, in the order of their numbers in the file.
const ENDINGS: [Ending; 7] =
    [Ending::First, Ending::Finished, Ending::Stopped, Ending::RankLost, Ending::Killed(0), Ending::Failed(0), Ending::Unknown];

/// [`Ending`] without its code, as the file has it: any byte, as of [`StatusCode`].
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct EndingCode(pub u8);

impl EndingCode {
    /// The code of an ending.
    pub fn of(ending: Ending) -> Self {
        let place = ENDINGS.iter().position(|known| known.name() == ending.name());
        EndingCode(place.expect("ENDINGS has every ending") as u8)
    }

    /// The ending of this code, with 0 for a code of its own; none of a byte that is no ending's.
    pub fn ending(self) -> Option<Ending> {
        ENDINGS.get(usize::from(self.0)).copied()
    }
}

impl std::fmt::Debug for EndingCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.ending() {
            Some(ending) => f.write_str(ending.name()),
            None => write!(f, "ending {}", self.0),
        }
    }
}

// SAFETY: a transparent u8, described as an enumeration whose base is an unsigned byte.
unsafe impl H5Type for EndingCode {
    fn type_descriptor() -> TypeDescriptor {
        let member = |(value, ending): (u64, Ending)| EnumMember { name: ending.name().to_owned(), value };
        TypeDescriptor::Enum(EnumType { size: IntSize::U1, signed: false, members: (0..).zip(ENDINGS).map(member).collect() })
    }
}

/// [`Status`] as the file has it: any byte, so that reading a damaged file is no undefined behaviour.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct StatusCode(pub u8);

impl std::fmt::Debug for StatusCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.status() {
            Some(status) => f.write_str(status.name()),
            None => write!(f, "status {}", self.0),
        }
    }
}

impl StatusCode {
    /// The status of this code; none of a byte that is no status's.
    pub fn status(self) -> Option<Status> {
        Status::ALL.into_iter().find(|&status| status as u8 == self.0)
    }
}

// SAFETY: a transparent u8, described as an enumeration whose base is an unsigned byte.
unsafe impl H5Type for StatusCode {
    fn type_descriptor() -> TypeDescriptor {
        let member = |status: Status| EnumMember { name: status.name().to_owned(), value: status as u64 };
        TypeDescriptor::Enum(EnumType { size: IntSize::U1, signed: false, members: Status::ALL.map(member).to_vec() })
    }
}

/// A hash, of which no column of 64-bit floats could hold every bit.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct MaskHash(pub u64);

// SAFETY: a transparent u64, described as one.
unsafe impl H5Type for MaskHash {
    fn type_descriptor() -> TypeDescriptor {
        u64::type_descriptor()
    }
}

/// Bytes of a text in a table.
const SHORT_BYTES: usize = 256;

/// A text in a table.
pub type ShortText = FixedUnicode<SHORT_BYTES>;

/// A text of at most N bytes; none where it has more, or a NUL character.
pub(super) fn exactly<const N: usize>(text: &str) -> Option<FixedUnicode<N>> {
    FixedUnicode::from_str(text).ok().filter(|fixed: &FixedUnicode<N>| fixed.as_bytes() == text.as_bytes())
}
