//! The header of a .npy file (NumPy Enhancement Proposal 1): a magic string, a version, a length, and a Python dictionary as text.

use std::io::Read;

use super::array::Header;
use super::element::Element;
use super::found::{Found, in_header};

/// Letters of a dictionary, at most.
const MOST_TEXT: usize = 10_000;

/// Reads the header; the values follow.
pub(super) fn header(reader: &mut dyn Read) -> Found<Header> {
    let mut start = [0; 8];
    let failed = in_header("a .npy array");
    reader.read_exact(&mut start).map_err(&failed)?;
    if &start[..6] != b"\x93NUMPY" || !(1..=3).contains(&start[6]) {
        return Err("expected a .npy array of version 1 to 3, found something else; save it by numpy.save".to_owned());
    }
    let mut length = [0; 4];
    let digits = if start[6] == 1 { 2 } else { 4 };
    reader.read_exact(&mut length[..digits]).map_err(&failed)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MOST_TEXT {
        return Err(format!("expected a .npy header of at most {MOST_TEXT} letters, found one of {length}"));
    }
    let mut text = vec![0; length];
    reader.read_exact(&mut text).map_err(&failed)?;
    dictionary(&String::from_utf8_lossy(&text))
}

/// The type that NumPy writes as `kind`, and whether its values are big-endian.
pub(super) fn element(kind: &str) -> Option<(Element, bool)> {
    let (order, code) = kind.split_at_checked(1)?;
    Some((Element::of_code(code)?, order == ">")).filter(|_| ["<", ">", "|"].contains(&order))
}

/// Advice about values of a type that NumPy writes as `kind`: the rest of a sentence.
pub(super) fn refused(kind: &str) -> String {
    let letters: String = kind.chars().filter(|letter| !letter.is_control()).take(20).collect();
    super::element::refused(&format!("\"{letters}\""))
}

/// `{'descr': '|u1', 'fortran_order': False, 'shape': (60000, 28, 28), }`.
fn dictionary(text: &str) -> Found<Header> {
    let value = |key: &str| {
        let (_, rest) = text
            .split_once(&format!("'{key}':"))
            .ok_or_else(|| format!("expected the key {key} in the .npy header, found none; save it by numpy.save"))?;
        Ok::<&str, String>(rest.trim_start())
    };
    // A list, of records, has no code.
    let described = value("descr")?;
    let kind = described.strip_prefix('\'').and_then(|rest| rest.split_once('\'')).map_or("", |(kind, _)| kind);
    let (element, is_big_endian) = element(kind).ok_or_else(|| refused(if kind.is_empty() { described } else { kind }))?;
    let shape = value("shape")?.strip_prefix('(').and_then(|rest| rest.split_once(')')).map(|(shape, _)| shape);
    let extent = |text: &str| text.trim().parse::<u64>();
    let numbers = shape.map(|shape| shape.split(',').filter(|text| !text.trim().is_empty()).map(extent).collect::<Result<Vec<_>, _>>());
    let Some(Ok(extents)) = numbers else {
        return Err("expected a shape of whole numbers in the .npy header, found something else; save it by numpy.save".to_owned());
    };
    // Of fewer than two extents there is one order.
    let is_fortran = value("fortran_order")?.starts_with("True") && extents.len() > 1;
    Ok(Header { extents, element, is_big_endian, is_fortran })
}
