//! Floats that begin at a cache line.

use std::ops::{Deref, DerefMut};

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; Line::FLOATS]);

impl Line {
    const FLOATS: usize = 16;
}

/// A vector of floats whose first begins a cache line, which an allocator does not promise: a vector read across the end of a line is two
/// reads.
#[derive(Default)]
pub(super) struct Floats {
    lines: Vec<Line>,
    len: usize,
}

impl Floats {
    /// `len` zeros.
    pub(super) fn zeros(len: usize) -> Floats {
        let mut floats = Floats::default();
        floats.grow(len);
        floats
    }

    /// Lengthens a shorter vector to `len` floats; the new floats are zero.
    pub(super) fn grow(&mut self, len: usize) {
        if self.len < len {
            self.lines.resize(len.div_ceil(Line::FLOATS), Line([0.0; Line::FLOATS]));
            self.len = len;
        }
    }
}

impl Deref for Floats {
    type Target = [f32];
    fn deref(&self) -> &[f32] {
        // SAFETY: a line is 16 floats and nothing else (`repr(C)`, whose alignment divides its size), and `grow` has made enough lines for `len`.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl DerefMut for Floats {
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: a line is 16 floats and nothing else (`repr(C)`, whose alignment divides its size), and `grow` has made enough lines for `len`.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_begin_at_a_line_and_grow_with_zeros() {
        let mut floats = Floats::zeros(5);
        floats.fill(2.0);
        for len in [5, 3, 16, 1000, 70_000] {
            floats.grow(len);
            assert_eq!(floats.as_ptr() as usize % 64, 0);
            assert!(floats.len() >= len && floats[..5] == [2.0; 5] && floats[5..].iter().all(|&float| float == 0.0));
        }
        assert_eq!(floats.len(), 70_000);
    }
}
