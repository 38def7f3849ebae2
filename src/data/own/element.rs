//! Types of an array's values, and the numbers that their bytes mean.

/// Kind of a type's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Unsigned,
    Signed,
    Float,
}

/// A type of values: their kind, and the bytes of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Element {
    pub kind: Kind,
    pub bytes: usize,
}

impl Element {
    /// The type that NumPy writes as `code`, without the sign of the byte order.
    pub fn of_code(code: &str) -> Option<Element> {
        let (kind, sizes): (Kind, &[usize]) = match code.get(..1)? {
            "b" => (Kind::Bool, &[1]),
            "u" => (Kind::Unsigned, &[1, 2, 4, 8]),
            "i" => (Kind::Signed, &[1, 2, 4, 8]),
            "f" => (Kind::Float, &[2, 4, 8]),
            _ => return None,
        };
        let bytes = *sizes.iter().find(|bytes| code[1..] == bytes.to_string())?;
        Some(Element { kind, bytes })
    }

    /// Whether images of such values are kept as bytes: all others become 32-bit floating point.
    pub fn is_kept_as_bytes(self) -> bool {
        self.bytes == 1 && self.kind != Kind::Signed
    }

    /// The number in the little-endian bytes of a value; of a whole number beyond 53 bits the nearest in 64-bit floating point.
    pub fn number(self, bytes: &[u8]) -> f64 {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let word = u64::from_le_bytes(word);
        match (self.kind, self.bytes) {
            (Kind::Bool, _) => f64::from(u8::from(word != 0)),
            (Kind::Unsigned, _) => word as f64,
            (Kind::Signed, 1) => f64::from(word as i8),
            (Kind::Signed, 2) => f64::from(word as i16),
            (Kind::Signed, 4) => f64::from(word as i32),
            (Kind::Signed, _) => word as i64 as f64,
            (Kind::Float, 2) => half(word as u16),
            (Kind::Float, 4) => f64::from(f32::from_bits(word as u32)),
            (Kind::Float, _) => f64::from_bits(word),
        }
    }

    /// Appends the numbers of little-endian values, each rounded once to 32-bit floating point.
    pub fn append_rounded(self, block: &[u8], values: &mut Vec<f32>) {
        fn append<const N: usize>(block: &[u8], values: &mut Vec<f32>, rounded: impl Fn([u8; N]) -> f32) {
            values.extend(block.as_chunks().0.iter().map(|bytes| rounded(*bytes)));
        }
        match (self.kind, self.bytes) {
            (Kind::Float, 4) => append(block, values, f32::from_le_bytes),
            (Kind::Float, 8) => append(block, values, |bytes| f64::from_le_bytes(bytes) as f32),
            (Kind::Signed, 8) => append(block, values, |bytes| i64::from_le_bytes(bytes) as f32),
            (Kind::Unsigned, 8) => append(block, values, |bytes| u64::from_le_bytes(bytes) as f32),
            _ => values.extend(block.chunks_exact(self.bytes).map(|bytes| self.number(bytes) as f32)),
        }
    }
}

/// Writes the element as NumPy names it: uint8, float32.
impl std::fmt::Display for Element {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self.kind {
            Kind::Bool => return f.write_str("bool"),
            Kind::Unsigned => "uint",
            Kind::Signed => "int",
            Kind::Float => "float",
        };
        write!(f, "{name}{}", 8 * self.bytes)
    }
}

/// The number that 16 bits mean as IEEE 754's binary16.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    let size = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}

/// Advice about values of another type, `found`: the rest of a sentence.
pub(super) fn refused(found: &str) -> String {
    format!(
        "expected numbers (bool, int8 to uint64, float16 to float64), found {found}; save x.astype(\"float32\") of images, \
         numpy.unique(y, return_inverse=True)[1] of labels"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_16_bits_are_ieee_754s() {
        let all = [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0001, 2f64.powi(-24)),
            (0x3555, 0.333251953125),
            (0x0400, 2f64.powi(-14)),
        ];
        assert!(all.iter().all(|&(bits, number)| half(bits) == number));
        assert_eq!((half(0x7c00), half(0xfc00)), (f64::INFINITY, f64::NEG_INFINITY));
        assert!(half(0x7e00).is_nan() && half(0x8000).is_sign_negative());
    }

    #[test]
    fn whole_numbers_of_64_bits_are_rounded_once() {
        // By way of 64-bit floating point it would be a tie, and go down.
        let (between, mut values) = ((1_i64 << 60) + (1 << 36) + 1, Vec::new());
        Element { kind: Kind::Signed, bytes: 8 }.append_rounded(&between.to_le_bytes(), &mut values);
        assert_eq!(values, [between as f32]);
        assert_ne!(between as f64 as f32, between as f32);
    }
}
