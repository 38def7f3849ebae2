//! The header of an IDX file of any extents: two zeros, the kind of values, the number of extents, and these as big-endian 32-bit numbers.

use std::io::Read;

use super::array::Header;
use super::element::{Element, Kind, refused};
use super::found::{Found, in_header};

/// Reads the header; the values follow.
pub(super) fn header(reader: &mut dyn Read) -> Found<Header> {
    let failed = in_header("an IDX file");
    let mut start = [0; 4];
    reader.read_exact(&mut start).map_err(&failed)?;
    let [0, 0, kind, count @ 1..=4] = start else {
        let found = u32::from_be_bytes(start);
        return Err(format!("expected an IDX file of 1 to 4 extents, found one that begins with {found:#010x}"));
    };
    let (kind, bytes) = match kind {
        0x08 => (Kind::Unsigned, 1),
        0x09 => (Kind::Signed, 1),
        0x0b => (Kind::Signed, 2),
        0x0c => (Kind::Signed, 4),
        0x0d => (Kind::Float, 4),
        0x0e => (Kind::Float, 8),
        other => return Err(refused(&format!("the IDX kind {other:#04x}"))),
    };
    let mut extents = Vec::new();
    for _ in 0..count {
        let mut extent = [0; 4];
        reader.read_exact(&mut extent).map_err(&failed)?;
        extents.push(u32::from_be_bytes(extent).into());
    }
    Ok(Header { extents, element: Element { kind, bytes }, is_big_endian: true, is_fortran: false })
}
