//! A value and its derivative, and plain loops over images.

use crate::backend::cpu::floats::Floats;

/// A value and its derivative along the vector.
pub(super) type Pair<T> = [T; 2];

/// Places of the value and of the derivative in a [`Pair`].
pub(super) const VALUE: usize = 0;
pub(super) const TANGENT: usize = 1;

/// Room for as many values as derivatives.
pub(super) fn pair(length: usize) -> Pair<Floats> {
    [Floats::zeros(length), Floats::zeros(length)]
}

/// One image of several.
pub(super) fn image(values: &[f32], length: usize, index: usize) -> &[f32] {
    &values[index * length..][..length]
}
