//! Arrays of numbers in files: their extents and order, and how their values become pixels and labels.

use std::io::Read;

use super::element::{Element, Kind};
use super::found::{Found, unread};
use crate::data::section::DataLayout;
use crate::data::{ImageShape, Pixels};

/// Header of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    /// Extents, as NumPy's `shape`.
    pub extents: Vec<u64>,
    pub element: Element,
    pub is_big_endian: bool,
    /// Whether neighbours along the first extent are neighbours in the file (Fortran's order), not those along the last (C's).
    pub is_fortran: bool,
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
        self.extents.iter().product::<u64>() * self.element.bytes as u64
    }

    /// Number and extents of images.
    pub(super) fn images(&self, layout: Option<DataLayout>) -> Found<(usize, ImageShape)> {
        let (count, sides) = match *self.extents.as_slice() {
            [count, features] => (count, [1, features, 1]),
            [count, height, width] => (count, [height, width, 1]),
            [count, channels, height, width] if layout == Some(DataLayout::ChannelsFirst) => (count, [height, width, channels]),
            [_, channels @ (1 | 3 | 4), height, width] if layout.is_none() && height == width && channels < height => {
                return Err(format!(
                    "expected images as [n][rows][columns][channels], found {}, which looks like [n][channels][rows][columns]; add \
                     layout = \"channels-first\" to [data], or save x.transpose(0, 2, 3, 1) (should the channels be last all the same: layout = \
                     \"channels-last\")",
                    self.words()
                ));
            }
            [count, height, width, channels] => (count, [height, width, channels]),
            ref other => {
                let labels = if other.len() == 1 { ": are these the labels?" } else { "" };
                return Err(format!(
                    "expected images as [n][rows][columns], [n][rows][columns][channels] or [n][features], found {}{labels}",
                    self.words()
                ));
            }
        };
        if !(1..=MOST_EXAMPLES).contains(&count) {
            return Err(format!("expected from 1 to {MOST_EXAMPLES} images, found {}", self.words()));
        }
        if sides.iter().any(|side| !(1..=MOST_SIDE).contains(side)) || sides.iter().product::<u64>() > MOST_VALUES {
            return Err(format!(
                "expected images of 1 to {MOST_SIDE} rows, columns and channels and of at most {MOST_VALUES} values, found {}",
                self.words()
            ));
        }
        Ok((count as usize, ImageShape::from(sides.map(|side| side as usize))))
    }

    /// Number of labels.
    pub(super) fn labels(&self) -> Found<usize> {
        match self.extents.as_slice() {
            &[count, ref ones @ ..] if ones.iter().all(|&extent| extent == 1) => match count {
                1..=MOST_EXAMPLES => Ok(count as usize),
                _ => Err(format!("expected from 1 to {MOST_EXAMPLES} labels, found {count}")),
            },
            [_, _] => Err(format!("expected labels as [n], found {}; where these are one column a class, save y.argmax(1)", self.words())),
            [_, _, _, ..] => Err(format!("expected labels as [n], found {}: are these the images?", self.words())),
            _ => Err(format!("expected labels as [n], found {}", self.words())),
        }
    }

    /// The extents, for a sentence.
    pub fn words(&self) -> String {
        let extents: Vec<String> = self.extents.iter().take(8).map(u64::to_string).collect();
        if extents.is_empty() { "a single number".to_owned() } else { format!("[{}]", extents.join("][")) }
    }

    /// All that it says, in NumPy's words.
    pub fn description(&self) -> String {
        let end = if self.is_big_endian && self.element.bytes > 1 { ", big-endian" } else { "" };
        let order = if self.is_fortran { ", in Fortran's order" } else { "" };
        format!("{} {}{end}{order}", self.words(), self.element)
    }

    /// Pixels of images whose extents have been checked, `[n][rows][columns][channels]`.
    pub(super) fn read_images(&self, reader: &mut dyn Read, layout: Option<DataLayout>) -> Found<Pixels> {
        let count = (self.bytes() / self.element.bytes as u64) as usize;
        if self.element.is_kept_as_bytes() {
            let mut pixels = Vec::with_capacity(count);
            self.each_block(reader, |block| {
                match self.element.kind {
                    Kind::Bool => pixels.extend(block.iter().map(|&byte| u8::from(byte != 0))),
                    _ => pixels.extend_from_slice(block),
                }
                Ok(())
            })?;
            return Ok(Pixels::Bytes(self.ordered(pixels, layout)));
        }
        let mut pixels = Vec::with_capacity(count);
        self.each_block(reader, |block| {
            let start = pixels.len();
            self.element.append_rounded(block, &mut pixels);
            let Some(place) = pixels[start..].iter().position(|value| !value.is_finite()) else { return Ok(()) };
            let found = self.element.number(&block[place * self.element.bytes..][..self.element.bytes]);
            let place = start + place;
            Err(if found.is_finite() {
                format!("expected values that 32-bit floating point can hold, found {found:e} as value {place}; scale the values down")
            } else {
                format!("expected finite values, found {found} as value {place}; replace such values")
            })
        })?;
        Ok(Pixels::Floats(self.ordered(pixels, layout)))
    }

    /// Labels whose extents have been checked.
    pub(super) fn read_labels(&self, reader: &mut dyn Read) -> Found<Vec<u16>> {
        let mut labels = Vec::new();
        self.each_block(reader, |block| {
            for value in block.chunks_exact(self.element.bytes) {
                let (number, place) = (self.element.number(value), labels.len());
                if number.fract() != 0.0 {
                    return Err(format!("expected labels as whole numbers, found {number} at example {place}; number the classes from 0"));
                }
                if !(0.0..f64::from(MOST_CLASSES)).contains(&number) {
                    let most = MOST_CLASSES - 1;
                    return Err(format!("expected labels from 0 to {most}, found {number} at example {place}; number the classes from 0"));
                }
                labels.push(number as u16);
            }
            Ok(())
        })?;
        Ok(labels)
    }

    /// Values in the file's order become `[n][rows][columns][channels]`. Values in C's order stay where they are but for their places in an image.
    fn ordered<T: Copy>(&self, mut values: Vec<T>, layout: Option<DataLayout>) -> Vec<T> {
        let is_channels_first = layout == Some(DataLayout::ChannelsFirst) && self.extents.len() == 4;
        if !self.is_fortran && !is_channels_first {
            return values;
        }
        let extents: Vec<usize> = self.extents.iter().map(|&extent| extent as usize).collect();
        // Values between neighbours along each extent.
        let mut strides = vec![1; extents.len()];
        for place in 1..extents.len() {
            if self.is_fortran {
                strides[place] = strides[place - 1] * extents[place - 1];
            } else {
                let from_the_end = extents.len() - place;
                strides[from_the_end - 1] = strides[from_the_end] * extents[from_the_end];
            }
        }
        let mut axes: Vec<(usize, usize)> = extents.into_iter().zip(strides).collect();
        if is_channels_first {
            axes[1..].rotate_left(1);
        }
        axes.resize(4, (1, 0));
        let [(_, each), rows, columns, channels] = [axes[0], axes[1], axes[2], axes[3]];
        let places: Vec<usize> = (0..rows.0)
            .flat_map(|row| (0..columns.0).map(move |column| row * rows.1 + column * columns.1))
            .flat_map(|pixel| (0..channels.0).map(move |channel| pixel + channel * channels.1))
            .collect();
        if self.is_fortran {
            return (0..axes[0].0)
                .flat_map(|image| places.iter().map(move |place| image * each + place))
                .map(|place| values[place])
                .collect();
        }
        let mut image = Vec::with_capacity(each);
        for pixels in values.chunks_exact_mut(each) {
            image.clear();
            image.extend_from_slice(pixels);
            pixels.iter_mut().zip(&places).for_each(|(pixel, &place)| *pixel = image[place]);
        }
        values
    }

    /// Reads all values in blocks of little-endian ones, and sees that nothing follows them.
    fn each_block(&self, reader: &mut dyn Read, mut act: impl FnMut(&[u8]) -> Found<()>) -> Found<()> {
        let (whole, width) = (self.bytes(), self.element.bytes);
        let mut block = vec![0; 1 << 16];
        let mut left = whole;
        while left > 0 {
            let length = left.min(block.len() as u64) as usize;
            let block = &mut block[..length];
            reader.read_exact(block).map_err(|error| match error.kind() {
                std::io::ErrorKind::UnexpectedEof => {
                    format!("expected {whole} bytes of values {}, found fewer: the file is cut short", self.words())
                }
                _ => unread(&error),
            })?;
            if self.is_big_endian {
                block.chunks_exact_mut(width).for_each(<[u8]>::reverse);
            }
            act(block)?;
            left -= length as u64;
        }
        match reader.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(format!("expected {whole} bytes of values {}, found more: the file is not what its header says", self.words())),
            Err(error) => Err(unread(&error)),
        }
    }
}
