//! How a trial and a start ended, as enumerations of the file.

use hdf5::H5Type;
use hdf5::types::{EnumMember, EnumType, IntSize, TypeDescriptor};

use crate::records::{Ending, Status};

/// The variants of [`Ending`], those with a code with an empty one, in the order of their numbers in the file.
pub(super) const ENDINGS: [Ending; 7] =
    [Ending::First, Ending::Finished, Ending::Stopped, Ending::RankLost, Ending::Killed(0), Ending::Failed(0), Ending::Unknown];

/// [`Ending`] without its code, as the file has it: any byte, as of [`StatusCode`].
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct EndingCode(pub u8);

impl std::fmt::Debug for EndingCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match ENDINGS.get(usize::from(self.0)) {
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
pub(super) struct StatusCode(pub u8);

impl std::fmt::Debug for StatusCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.status() {
            Some(status) => f.write_str(status.name()),
            None => write!(f, "status {}", self.0),
        }
    }
}

impl StatusCode {
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
