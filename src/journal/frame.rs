//! How a record lies in the journal: length, the length's complement, the checksum of the record before it, its own checksum, then its bytes.
//!
//! The complement tells a damaged length from a record cut short, makes looking for records behind a damaged one cheap, and refuses the
//! zeros that some file systems leave at the end of a file after a loss of power. A record's checksum covers everything else of it; the one of the
//! record before it chains them, so that none can be taken out, or put in another place.

/// Bytes before a record's own.
pub const HEAD: usize = 16;

/// A record as it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Framed<'a> {
    /// The bytes that were encoded into the record.
    pub payload: &'a [u8],
    /// Checksum of the record it was written behind; 0 for the first.
    pub previous: u32,
    /// Checksum of this record.
    pub checksum: u32,
}

/// A record's bytes with what belongs before them, and its checksum; nothing where they are more than a length can say (4 GiB).
pub fn framed(payload: &[u8], previous: u32) -> Option<(Vec<u8>, u32)> {
    let length = u32::try_from(payload.len()).ok()?;
    let checksum = checksum(length, previous, payload);
    let mut bytes = Vec::with_capacity(HEAD + payload.len());
    for word in [length, !length, previous, checksum] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(payload);
    Some((bytes, checksum))
}

/// The record that starts at `at`, if a whole one does.
pub fn record(bytes: &[u8], at: usize) -> Option<Framed<'_>> {
    let payload = claimed(bytes, at)?;
    let (previous, expected) = (word(bytes, at + 8)?, word(bytes, at + 12)?);
    let checksum = checksum(payload.len() as u32, previous, payload);
    (checksum == expected).then_some(Framed { payload, previous, checksum })
}

/// The bytes that a length and its complement at `at` claim.
fn claimed(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let length = word(bytes, at)?;
    if word(bytes, at + 4)? != !length {
        return None;
    }
    let start = at + HEAD;
    bytes.get(start..start.checked_add(length as usize)?)
}

/// Where the first whole record after the byte `at` starts. Bytes made to look like the beginnings of many records are not followed further than a
/// few times the file's length: then the place reached is given, as if one began there.
pub fn next_record(bytes: &[u8], at: usize) -> Option<usize> {
    let mut budget = 8 * bytes.len();
    for start in at + 1..bytes.len() {
        let Some(payload) = claimed(bytes, start) else { continue };
        if record(bytes, start).is_some() || budget < payload.len() {
            return Some(start);
        }
        budget -= payload.len();
    }
    None
}

/// The little-endian number at a byte.
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at + 4)?;
    word.try_into().ok().map(u32::from_le_bytes)
}

fn checksum(length: u32, previous: u32, payload: &[u8]) -> u32 {
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&length.to_le_bytes());
    checksum.update(&previous.to_le_bytes());
    checksum.update(payload);
    checksum.finalize()
}
