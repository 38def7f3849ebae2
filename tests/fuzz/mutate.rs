//! Inputs from seeds: a sound input, changed here and there.

/// Random numbers by counting and mixing (SplitMix64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(1))
    }

    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ word >> 31
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.word() % limit as u64) as usize
    }

    pub fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// Numbers at which readers of lengths go wrong.
const EDGES: [u64; 16] = [
    0,
    1,
    2,
    7,
    16,
    255,
    256,
    0x7fff,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0xffff_ffff_ffff_fffe,
    0xffff_ffff_ffff_ffff,
];

/// Changes bytes in place; the input keeps its length.
pub fn in_place(bytes: &mut [u8], random: &mut Random) {
    if bytes.is_empty() {
        return;
    }
    // Most of what a format says is at its beginning or at its end.
    let window = bytes.len().min(1 << (4 + random.below(16)));
    let start = match random.below(3) {
        0 => 0,
        1 => bytes.len() - window,
        _ => random.below(bytes.len() - window + 1),
    };
    for _ in 0..1 + random.below(4) * random.below(4) {
        let at = start + random.below(window);
        match random.below(5) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.word() as u8,
            2 => bytes[at] = bytes[at].wrapping_add_signed(if random.below(2) == 0 { 1 } else { -1 }),
            3 => {
                let (width, number) = (*random.one(&[1_usize, 2, 4, 8]), *random.one(&EDGES));
                let little = random.below(2) == 0;
                let number = if little { number.to_le_bytes() } else { number.to_be_bytes() };
                let number = if little { &number[..width] } else { &number[8 - width..] };
                let width = width.min(bytes.len() - at);
                bytes[at..at + width].copy_from_slice(&number[..width]);
            }
            _ => {
                let (from, length) = (random.below(bytes.len()), 1 + random.below(16));
                let length = length.min(bytes.len() - at).min(bytes.len() - from);
                bytes.copy_within(from..from + length, at);
            }
        }
    }
}

/// Changes a file in every way: bytes in place, parts taken out, put in, said twice or cut off.
pub fn bytes(mut bytes: Vec<u8>, random: &mut Random) -> Vec<u8> {
    for _ in 0..1 + random.below(3) {
        let length = bytes.len();
        let at = random.below(length + 1);
        match random.below(8) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..(at + 1 + random.below(64)).min(length).max(at))),
            2 => {
                let part: Vec<u8> = (0..1 + random.below(32)).map(|_| random.word() as u8).collect();
                bytes.splice(at..at, part);
            }
            3 if length > 0 => {
                let from = random.below(length);
                let part = bytes[from..(from + 1 + random.below(256)).min(length)].to_vec();
                bytes.splice(at..at, part);
            }
            _ => in_place(&mut bytes, random),
        }
    }
    bytes
}

/// Changes a text: words taken out, exchanged, said many times, or put in from `words`.
pub fn text(text: &str, words: &[&str], random: &mut Random) -> String {
    let mut parts: Vec<String> = vec![String::new()];
    for letter in text.chars() {
        let last = parts.last_mut().expect("there is one");
        let goes_on = |last: &str| last.chars().last().is_none_or(|before| before.is_alphanumeric() && letter.is_alphanumeric());
        if goes_on(last) { last.push(letter) } else { parts.push(letter.to_string()) }
    }
    for _ in 0..1 + random.below(6) {
        let at = random.below(parts.len());
        match random.below(8) {
            0 => drop(parts.remove(at)),
            1 => {
                let other = random.below(parts.len());
                parts.swap(at, other);
            }
            // Said many times, and again: no text of gigabytes.
            2 if parts[at].len() < 1 << 12 => parts[at] = parts[at].repeat(1 + random.below(200)),
            3 => parts[at] = format!("{}", i128::from(random.word() as i64) >> random.below(64)),
            4 => parts[at] = format!("{}e{}", random.below(100), random.below(700) as i64 - 350),
            5 => {
                let (from, to) = (random.below(parts.len()), random.below(40));
                let part: Vec<String> = parts[from..].iter().take(to).cloned().collect();
                parts.splice(at..at, part);
            }
            6 => parts.insert(
                at,
                (*random.one(&["\u{0}", "\n", "\"", "[", "]", "{", "}", "=", ".", "é", "\u{202e}", "#", ",", "'''", "\\"])).to_owned(),
            ),
            _ => parts[at] = (*random.one(words)).to_owned(),
        }
        if parts.is_empty() {
            parts.push(String::new());
        }
    }
    parts.concat()
}
