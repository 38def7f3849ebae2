//! Arrays of numbers in files: their extents, what their values are, and how these become pixels and labels.

use std::io::Read;

use super::found::Found;
use crate::data::{ImageShape, Pixels};

/// What the values of an array are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F32,
}

impl Element {
    /// Bytes of a value.
    pub fn bytes(self) -> usize {
        match self {
            Element::U8 | Element::I8 => 1,
            Element::U16 | Element::I16 => 2,
            Element::U32 | Element::I32 | Element::F32 => 4,
            Element::U64 | Element::I64 => 8,
        }
    }

    /// The whole number in so many little-endian bytes; none where it is none, or beyond 64 bits with a sign.
    fn integer(self, bytes: &[u8]) -> Option<i64> {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let word = u64::from_le_bytes(word);
        Some(match self {
            Element::U8 | Element::U16 | Element::U32 => word as i64,
            Element::I8 => i64::from(word as i8),
            Element::I16 => i64::from(word as i16),
            Element::I32 => i64::from(word as i32),
            Element::I64 => word as i64,
            Element::U64 => i64::try_from(word).ok()?,
            Element::F32 => return None,
        })
    }
}

/// As NumPy names it: uint8, float32.
impl std::fmt::Display for Element {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Element::U8 => "uint8",
            Element::I8 => "int8",
            Element::U16 => "uint16",
            Element::I16 => "int16",
            Element::U32 => "uint32",
            Element::I32 => "int32",
            Element::U64 => "uint64",
            Element::I64 => "int64",
            Element::F32 => "float32",
        })
    }
}

/// What an array's header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    /// Extents, the slowest first.
    pub extents: Vec<u64>,
    pub element: Element,
    pub is_big_endian: bool,
}

/// Most examples of a set, and most rows, columns, channels and values of an image.
const MOST_EXAMPLES: u64 = 1 << 24;
const MOST_SIDE: u64 = 1 << 12;
const MOST_VALUES: u64 = 1 << 20;

/// Classes of a data set, at most.
pub(super) const MOST_CLASSES: u16 = 1_000;

impl Header {
    /// Bytes of all values. The extents have been checked by [`Header::images`] or [`Header::labels`].
    pub fn bytes(&self) -> u64 {
        self.extents.iter().product::<u64>() * self.element.bytes() as u64
    }

    /// Number and extents of images.
    pub fn images(&self) -> Found<(usize, ImageShape)> {
        let (&[count, height, width] | &[count, height, width, _]) = self.extents.as_slice() else {
            return Err(format!("expected images as [n][rows][columns] or [n][rows][columns][channels], found {}", self.words()));
        };
        let channels = self.extents.get(3).copied().unwrap_or(1);
        if !(1..=MOST_EXAMPLES).contains(&count) {
            return Err(format!("expected from 1 to {MOST_EXAMPLES} images, found {}", self.words()));
        }
        let sides = [height, width, channels];
        if sides.iter().any(|side| !(1..=MOST_SIDE).contains(side)) || sides.iter().product::<u64>() > MOST_VALUES {
            return Err(format!(
                "expected images of 1 to {MOST_SIDE} rows, columns and channels and of at most {MOST_VALUES} values, found {}",
                self.words()
            ));
        }
        if !matches!(self.element, Element::U8 | Element::F32) {
            return Err(format!("expected images as bytes or as 32-bit floating point, found {}; convert them", self.element));
        }
        Ok((count as usize, ImageShape::from(sides.map(|side| side as usize))))
    }

    /// Number of labels.
    pub fn labels(&self) -> Found<usize> {
        let (&[count] | &[count, 1]) = self.extents.as_slice() else {
            return Err(format!("expected labels as [n], found {}", self.words()));
        };
        if self.element == Element::F32 {
            return Err("expected labels as whole numbers, found floating point; convert them".to_owned());
        }
        if !(1..=MOST_EXAMPLES).contains(&count) {
            return Err(format!("expected from 1 to {MOST_EXAMPLES} labels, found {count}"));
        }
        Ok(count as usize)
    }

    /// The extents, for a sentence.
    pub fn words(&self) -> String {
        let extents: Vec<String> = self.extents.iter().take(8).map(u64::to_string).collect();
        if extents.is_empty() { "a single number".to_owned() } else { format!("[{}]", extents.join("][")) }
    }

    /// Pixels of images whose extents have been checked.
    pub fn read_images(&self, reader: &mut dyn Read) -> Found<Pixels> {
        let count = (self.bytes() / self.element.bytes() as u64) as usize;
        if self.element == Element::U8 {
            let mut pixels = Vec::with_capacity(count);
            return self.each_block(reader, |block| pixels.extend_from_slice(block)).map(|()| Pixels::Bytes(pixels));
        }
        let mut pixels = Vec::with_capacity(count);
        self.each_block(reader, |block| {
            pixels.extend(block.chunks_exact(4).map(|value| f32::from_le_bytes([value[0], value[1], value[2], value[3]])));
        })?;
        finite(&pixels)?;
        Ok(Pixels::Floats(pixels))
    }

    /// Labels whose extents have been checked.
    pub fn read_labels(&self, reader: &mut dyn Read) -> Found<Vec<u16>> {
        let mut labels = Vec::new();
        self.each_block(reader, |block| {
            labels.extend(block.chunks_exact(self.element.bytes()).map(|value| self.element.integer(value)));
        })?;
        classes(labels)
    }

    /// Reads all values in blocks of little-endian ones, and sees that nothing follows them.
    fn each_block(&self, reader: &mut dyn Read, mut act: impl FnMut(&[u8])) -> Found<()> {
        let (whole, width) = (self.bytes(), self.element.bytes());
        let mut block = vec![0; 1 << 16];
        let mut left = whole;
        let failed = |error: std::io::Error| super::found::unread(&error);
        while left > 0 {
            let length = left.min(block.len() as u64) as usize;
            let block = &mut block[..length];
            reader.read_exact(block).map_err(|error| match error.kind() {
                std::io::ErrorKind::UnexpectedEof => {
                    format!("expected {whole} bytes of values {}, found fewer: the file is cut short", self.words())
                }
                _ => failed(error),
            })?;
            if self.is_big_endian {
                block.chunks_exact_mut(width).for_each(<[u8]>::reverse);
            }
            act(block);
            left -= length as u64;
        }
        match reader.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(format!("expected {whole} bytes of values {}, found more: the file is not what its header says", self.words())),
            Err(error) => Err(failed(error)),
        }
    }
}

/// Refuses values that are infinite or no numbers.
pub(super) fn finite(values: &[f32]) -> Found<()> {
    match values.iter().position(|value| !value.is_finite()) {
        Some(place) => Err(format!("expected finite values, found {} as value {place}; replace such values", values[place])),
        None => Ok(()),
    }
}

/// Labels from whole numbers.
pub(super) fn classes(labels: impl IntoIterator<Item = Option<i64>>) -> Found<Vec<u16>> {
    let one = |(place, label): (usize, Option<i64>)| {
        let found = label.map_or_else(|| "one beyond 63 bits".to_owned(), |label| label.to_string());
        label.and_then(|label| u16::try_from(label).ok()).filter(|&label| label < MOST_CLASSES).ok_or_else(|| {
            format!("expected labels from 0 to {}, found {found} at example {place}; number the classes from 0", MOST_CLASSES - 1)
        })
    };
    labels.into_iter().enumerate().map(one).collect()
}
