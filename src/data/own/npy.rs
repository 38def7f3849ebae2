//! The header of a .npy file (NumPy Enhancement Proposal 1): a magic string, a version, a length, and a Python dictionary as text.

use std::io::Read;

use super::array::{Element, Header};
use super::found::Found;

/// Letters of a dictionary, at most.
const MOST_TEXT: usize = 10_000;

/// Reads the header; the values follow.
pub(super) fn header(reader: &mut dyn Read) -> Found<Header> {
    let mut start = [0; 8];
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "expected a .npy array, found an end in its header: the file is cut short".to_owned(),
        _ => super::found::unread(&error),
    };
    reader.read_exact(&mut start).map_err(failed)?;
    if &start[..6] != b"\x93NUMPY" || !(1..=3).contains(&start[6]) {
        return Err("expected a .npy array of version 1 to 3, found something else; save it by numpy.save".to_owned());
    }
    let mut length = [0; 4];
    let digits = if start[6] == 1 { 2 } else { 4 };
    reader.read_exact(&mut length[..digits]).map_err(failed)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MOST_TEXT {
        return Err(format!("expected a .npy header of at most {MOST_TEXT} letters, found one of {length}"));
    }
    let mut text = vec![0; length];
    reader.read_exact(&mut text).map_err(failed)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    dictionary(&text).map_err(|problem| format!("{problem} in the .npy header"))
}

/// `{'descr': '|u1', 'fortran_order': False, 'shape': (60000, 28, 28), }`.
fn dictionary(text: &str) -> Found<Header> {
    let value = |key: &str| {
        let (_, rest) = text.split_once(&format!("'{key}':")).ok_or_else(|| format!("expected the key {key}, found none"))?;
        Ok::<&str, String>(rest.trim_start())
    };
    let kind = value("descr")?.strip_prefix('\'').and_then(|rest| rest.split_once('\'')).map_or("", |(kind, _)| kind);
    let shown: String = kind.chars().filter(|letter| !letter.is_control()).take(20).collect();
    let refused = || format!("expected values of u1 or f4 for images, of whole numbers for labels, found \"{shown}\"; convert them,");
    let (order, kind) = kind.split_at_checked(1).ok_or_else(refused)?;
    let element = match kind {
        "u1" => Element::U8,
        "i1" => Element::I8,
        "u2" => Element::U16,
        "i2" => Element::I16,
        "u4" => Element::U32,
        "i4" => Element::I32,
        "u8" => Element::U64,
        "i8" => Element::I64,
        "f4" => Element::F32,
        _ => return Err(refused()),
    };
    let is_big_endian = match order {
        ">" => true,
        "<" | "|" => false,
        _ => return Err(refused()),
    };
    let shape = value("shape")?.strip_prefix('(').and_then(|rest| rest.split_once(')')).map(|(shape, _)| shape);
    let numbers = shape.map(|shape| shape.split(',').map(str::trim).filter(|extent| !extent.is_empty()).map(str::parse).collect());
    let Some(Ok(extents)) = numbers else { return Err("expected a shape of whole numbers, found something else".to_owned()) };
    let header = Header { extents, element, is_big_endian };
    if value("fortran_order")?.starts_with("True") && header.extents.len() > 1 {
        return Err("expected C order, found Fortran's; save numpy.ascontiguousarray of it,".to_owned());
    }
    Ok(header)
}
