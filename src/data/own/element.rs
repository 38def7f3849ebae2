//! What the values of an array are, and the numbers that their bytes mean.

/// A type of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    Bool,
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    F32,
    F64,
}

/// Each type with NumPy's code and name for it, and the bytes of a value.
const TYPES: [(Element, &str, &str, usize); 12] = [
    (Element::Bool, "b1", "bool", 1),
    (Element::U8, "u1", "uint8", 1),
    (Element::I8, "i1", "int8", 1),
    (Element::U16, "u2", "uint16", 2),
    (Element::I16, "i2", "int16", 2),
    (Element::U32, "u4", "uint32", 4),
    (Element::I32, "i4", "int32", 4),
    (Element::U64, "u8", "uint64", 8),
    (Element::I64, "i8", "int64", 8),
    (Element::F16, "f2", "float16", 2),
    (Element::F32, "f4", "float32", 4),
    (Element::F64, "f8", "float64", 8),
];

impl Element {
    /// The type that NumPy writes as `code`, without the sign of the byte order.
    pub fn of_code(code: &str) -> Option<Element> {
        TYPES.iter().find(|(_, known, _, _)| *known == code).map(|(element, _, _, _)| *element)
    }

    fn row(self) -> &'static (Element, &'static str, &'static str, usize) {
        &TYPES[self as usize]
    }

    /// Bytes of a value.
    pub fn bytes(self) -> usize {
        self.row().3
    }

    /// Whether images of such values are kept as bytes: all others become 32-bit floating point.
    pub fn is_kept_as_bytes(self) -> bool {
        matches!(self, Element::U8 | Element::Bool)
    }

    /// The number in the little-endian bytes of a value; of a whole number beyond 53 bits the nearest in 64-bit floating point.
    pub fn number(self, bytes: &[u8]) -> f64 {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let word = u64::from_le_bytes(word);
        match self {
            Element::Bool => f64::from(u8::from(word != 0)),
            Element::U8 | Element::U16 | Element::U32 | Element::U64 => word as f64,
            Element::I8 => f64::from(word as i8),
            Element::I16 => f64::from(word as i16),
            Element::I32 => f64::from(word as i32),
            Element::I64 => word as i64 as f64,
            Element::F16 => half(word as u16),
            Element::F32 => f64::from(f32::from_bits(word as u32)),
            Element::F64 => f64::from_bits(word),
        }
    }

    /// Appends the numbers of little-endian values, each rounded once to 32-bit floating point.
    pub fn append_rounded(self, block: &[u8], values: &mut Vec<f32>) {
        fn append<const N: usize>(block: &[u8], values: &mut Vec<f32>, rounded: impl Fn([u8; N]) -> f32) {
            values.extend(block.as_chunks().0.iter().map(|bytes| rounded(*bytes)));
        }
        match self {
            Element::F32 => append(block, values, f32::from_le_bytes),
            Element::F64 => append(block, values, |bytes| f64::from_le_bytes(bytes) as f32),
            Element::I64 => append(block, values, |bytes| i64::from_le_bytes(bytes) as f32),
            Element::U64 => append(block, values, |bytes| u64::from_le_bytes(bytes) as f32),
            _ => values.extend(block.chunks_exact(self.bytes()).map(|bytes| self.number(bytes) as f32)),
        }
    }
}

/// Writes the element as NumPy names it: uint8, float32.
impl std::fmt::Display for Element {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.row().2)
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

/// What to do with values of another type, `found`: the rest of a sentence.
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
    fn each_type_stands_at_its_place_in_the_table() {
        for (element, code, name, bytes) in TYPES {
            assert_eq!((element.bytes(), element.to_string().as_str(), Element::of_code(code)), (bytes, name, Some(element)));
        }
    }

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
        assert!(all.iter().all(|&(bits, number)| Element::F16.number(&u16::to_le_bytes(bits)) == number));
        assert_eq!((half(0x7c00), half(0xfc00)), (f64::INFINITY, f64::NEG_INFINITY));
        assert!(half(0x7e00).is_nan() && half(0x8000).is_sign_negative());
    }

    #[test]
    fn whole_numbers_of_64_bits_are_rounded_once() {
        // By way of 64-bit floating point it would be a tie, and go down.
        let (between, mut values) = ((1_i64 << 60) + (1 << 36) + 1, Vec::new());
        Element::I64.append_rounded(&between.to_le_bytes(), &mut values);
        assert_eq!(values, [between as f32]);
        assert_ne!(between as f64 as f32, between as f32);
    }
}
