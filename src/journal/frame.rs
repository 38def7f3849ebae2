//! How a record lies in the journal: length, the length's complement, checksum, then the record's bytes.
//!
//! The complement tells a damaged length from a record cut short, makes looking for records behind a damaged one cheap, and refuses the
//! zeros that some file systems leave at the end of a file after a loss of power. The checksum covers the length too.

/// Bytes before a record's own.
pub const HEAD: usize = 12;

/// A record's bytes with what belongs before them; nothing where they are more than a length can say (4 GiB).
pub fn framed(payload: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(payload.len()).ok()?;
    let mut bytes = Vec::with_capacity(HEAD + payload.len());
    bytes.extend(length.to_le_bytes());
    bytes.extend((!length).to_le_bytes());
    bytes.extend(checksum(length, payload).to_le_bytes());
    bytes.extend(payload);
    Some(bytes)
}

/// The bytes of the record that starts at `at`, if a whole one does.
pub fn record(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let length = word(bytes, at)?;
    if word(bytes, at + 4)? != !length {
        return None;
    }
    let start = at + HEAD;
    let payload = bytes.get(start..start.checked_add(length as usize)?)?;
    (word(bytes, at + 8)? == checksum(length, payload)).then_some(payload)
}

/// Where the first whole record after the byte `at` starts.
pub fn next_record(bytes: &[u8], at: usize) -> Option<usize> {
    (at + 1..bytes.len()).find(|&start| record(bytes, start).is_some())
}

/// The little-endian number at a byte.
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at + 4)?;
    word.try_into().ok().map(u32::from_le_bytes)
}

fn checksum(length: u32, payload: &[u8]) -> u32 {
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&length.to_le_bytes());
    checksum.update(payload);
    checksum.finalize()
}
