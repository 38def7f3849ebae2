//! Checksums put right after bytes were changed, so that an input gets past them.

/// Bytes of HDF5 metadata that one checksum is of, at most, and at least: a signature of four letters, and what it is of.
const LONGEST: usize = 2_500;

/// Where checksums of HDF5's metadata lie: the bytes that each is of, which it follows.
pub fn of_hdf5(file: &[u8]) -> Vec<std::ops::Range<usize>> {
    let signatures =
        [b"\x89HDF", b"OHDR", b"OCHK", b"TREE", b"FRHP", b"FHDB", b"FHIB", b"BTHD", b"BTIN", b"BTLF", b"FAHD", b"FADB", b"EAHD", b"EAIB"];
    let mut found = Vec::new();
    for start in 0..file.len().saturating_sub(8) {
        if !signatures.iter().any(|signature| file[start..].starts_with(*signature)) {
            continue;
        }
        let longest = LONGEST.min(file.len() - start - 4);
        let end = (6..longest).find(|&length| file[start + length..][..4] == lookup3(&file[start..start + length]).to_le_bytes());
        found.extend(end.map(|length| start..start + length));
    }
    found
}

/// Puts the checksums behind `ranges` right; inner ones stand behind outer ones.
pub fn put_right(file: &mut [u8], ranges: &[std::ops::Range<usize>]) {
    for range in ranges.iter().rev() {
        if range.end + 4 <= file.len() {
            let sum = lookup3(&file[range.clone()]);
            file[range.end..range.end + 4].copy_from_slice(&sum.to_le_bytes());
        }
    }
}

/// Bob Jenkins's lookup3 with a start of 0, by which HDF5 sums its metadata.
fn lookup3(bytes: &[u8]) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32);
    let mut state = [start; 3];
    let count = bytes.len().div_ceil(12);
    for (number, block) in bytes.chunks(12).enumerate() {
        let mut padded = [0; 12];
        padded[..block.len()].copy_from_slice(block);
        for (part, word) in state.iter_mut().zip(padded.as_chunks::<4>().0) {
            *part = part.wrapping_add(u32::from_le_bytes(*word));
        }
        if number + 1 < count {
            for (turn, rotation) in [4, 6, 8, 16, 19, 4].into_iter().enumerate() {
                let [from, by, to] = [[0, 2, 1], [1, 0, 2], [2, 1, 0]][turn % 3];
                state[from] = state[from].wrapping_sub(state[by]) ^ state[by].rotate_left(rotation);
                state[by] = state[by].wrapping_add(state[to]);
            }
        } else {
            let steps: [(usize, usize, u32); 7] = [(2, 1, 14), (0, 2, 11), (1, 0, 25), (2, 1, 16), (0, 2, 4), (1, 0, 14), (2, 1, 24)];
            for (to, from, rotation) in steps {
                state[to] = (state[to] ^ state[from]).wrapping_sub(state[from].rotate_left(rotation));
            }
        }
    }
    state[2]
}
