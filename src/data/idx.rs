//! IDX, the format of MNIST and Fashion-MNIST: a magic number, big-endian 32-bit extents, then bytes
//! (LeCun, Cortes, Burges: "The MNIST database of handwritten digits", section "File formats").

use std::path::Path;

use super::contents::Contents;
use super::{Examples, ImageShape};
use crate::Result;

const IMAGES: u32 = 0x0000_0803;
const LABELS: u32 = 0x0000_0801;

/// Reads an image file and the label file that belongs to it; images must be `shape`, of one channel, and labels below
/// `classes`. Adds the digests of both.
pub(super) fn read(images: &Path, labels: &Path, shape: ImageShape, classes: u32, digests: &mut Vec<String>) -> Result<Examples> {
    let pixels = read_images(images, shape, digests)?;
    let values = read_labels(Contents::open(labels)?, classes, digests)?;
    let count = pixels.len() / shape.values();
    if values.len() != count {
        let problem = format!("expected one label for each of the {count} images of {}, found {} labels", images.display(), values.len());
        return Err(crate::Error::Data { path: labels.into(), problem });
    }
    Ok(Examples { images: pixels.into(), labels: values.into_iter().map(u16::from).collect(), shape })
}

fn read_images(path: &Path, shape: ImageShape, digests: &mut Vec<String>) -> Result<Vec<u8>> {
    let mut contents = Contents::open(path)?;
    let [count, height, width] = read_header(&mut contents, IMAGES)?;
    if (height, width) != (shape.height, shape.width) {
        return Err(contents.error(format!("expected images of {}×{} pixels, found {height}×{width}", shape.height, shape.width)));
    }
    let pixels = read_body(&mut contents, count, shape.values(), "images")?;
    digests.push(contents.digest());
    Ok(pixels)
}

fn read_labels(mut contents: Contents, classes: u32, digests: &mut Vec<String>) -> Result<Vec<u8>> {
    let [count] = read_header(&mut contents, LABELS)?;
    let labels = read_body(&mut contents, count, 1, "labels")?;
    match labels.iter().position(|&label| u32::from(label) >= classes) {
        Some(i) => Err(contents.error(format!("expected labels from 0 to {}, found {} at example {i}", classes - 1, labels[i]))),
        None => {
            digests.push(contents.digest());
            Ok(labels)
        }
    }
}

/// Most examples read from one file, four times what the data sets have: a damaged count cannot ask for all memory.
const MOST_EXAMPLES: usize = 1 << 18;

/// The `N` extents after the magic number, the first of which is the number of examples.
fn read_header<const N: usize>(contents: &mut Contents, magic: u32) -> Result<[usize; N]> {
    let kind = |magic| if magic == IMAGES { "an IDX image file" } else { "an IDX label file" };
    let header = contents.read_up_to(4 * (N + 1))?;
    let mut words = header.chunks_exact(4).map(|word| word.iter().fold(0u32, |value, &byte| value << 8 | u32::from(byte)));
    let expected = format!("expected {} (magic number {magic:#010x})", kind(magic));
    match words.next() {
        Some(found) if found == magic => {}
        Some(found @ (IMAGES | LABELS)) => {
            return Err(contents.error(format!("{expected}, found {} ({found:#010x}): are the files swapped?", kind(found))));
        }
        Some(found) => return Err(contents.error(format!("{expected}, found {found:#010x}; fetch the data set again"))),
        None if header.is_empty() => return Err(contents.error(format!("{expected}, found an empty file"))),
        None => return Err(contents.error(format!("{expected}, found {} bytes in all", header.len()))),
    }
    let extents: Vec<usize> = words.map(|word| word as usize).collect();
    let truncated = |_| format!("expected a header of {} bytes, found {}: the file is truncated", 4 * (N + 1), header.len());
    let extents: [usize; N] = extents.try_into().map_err(|found| contents.error(truncated(found)))?;
    match extents[0] {
        1..=MOST_EXAMPLES => Ok(extents),
        found => Err(contents.error(format!("expected from 1 to {MOST_EXAMPLES} examples, found a header that says {found}"))),
    }
}

/// The `count` × `each` bytes after the header, and no more.
fn read_body(contents: &mut Contents, count: usize, each: usize, what: &str) -> Result<Vec<u8>> {
    let expected = count * each;
    let mut body = contents.read_up_to(expected + 1)?;
    let promise = format!("expected {expected} bytes after the header, which says {count} {what}, found");
    match body.len() {
        found if found < expected => Err(contents.error(format!("{promise} {found}: the file is truncated; fetch the data set again"))),
        found if found > expected => Err(contents.error(format!("{promise} more: the file is not what its header says"))),
        _ => {
            body.shrink_to_fit();
            Ok(body)
        }
    }
}
