//! Typed addresses of values on the device.

use std::marker::PhantomData;
use std::num::NonZeroU64;

use cudarc::driver::{CudaSlice, DevicePtr};

/// `const T*` of a kernel: a value of a buffer and those behind it, while the buffer lives. `Option` of it is a pointer that may be null.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct ConstPointer<'a, T>(MutPointer<'a, T>);

/// `T*` of a kernel. Several may point to one buffer: the device alone writes there, in the order of its one stream.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct MutPointer<'a, T> {
    address: NonZeroU64,
    buffer: PhantomData<&'a CudaSlice<T>>,
}

/// Where an element of a buffer lies that is read.
pub(super) fn at<T>(buffer: &CudaSlice<T>, element: usize) -> ConstPointer<'_, T> {
    at_mut(buffer, element).into_const()
}

/// Where an element of a buffer lies that is written.
pub(super) fn at_mut<T>(buffer: &CudaSlice<T>, element: usize) -> MutPointer<'_, T> {
    assert!(element <= buffer.len(), "element {element} of a buffer of {}", buffer.len());
    // No guard is needed: nothing is tracked, because there is one stream.
    let (address, _guard) = buffer.device_ptr(buffer.stream());
    let start = MutPointer { address: NonZeroU64::new(address).expect("a buffer has memory"), buffer: PhantomData };
    start.offset(element)
}

impl<'a, T> MutPointer<'a, T> {
    /// The pointer moved on by a number of elements.
    pub fn offset(self, elements: usize) -> Self {
        let bytes = (elements * size_of::<T>()) as u64;
        MutPointer { address: self.address.checked_add(bytes).expect("an address of 64 bits"), ..self }
    }

    /// This pointer, to read from.
    pub fn into_const(self) -> ConstPointer<'a, T> {
        ConstPointer(self)
    }

    /// The number that libraries want.
    pub fn address(self) -> u64 {
        self.address.get()
    }
}

/// Numbers of four bytes.
pub(super) trait Word {}

impl Word for i32 {}
impl Word for f32 {}

impl<'a, T: Word> MutPointer<'a, T> {
    /// A pointer to these words as words of another kind.
    pub fn cast<U: Word>(self) -> MutPointer<'a, U> {
        MutPointer { address: self.address, buffer: PhantomData }
    }
}

impl<'a, T: Word> ConstPointer<'a, T> {
    /// A pointer to these words as words of another kind.
    pub fn cast<U: Word>(self) -> ConstPointer<'a, U> {
        ConstPointer(self.0.cast())
    }
}

impl<T> ConstPointer<'_, T> {
    /// The pointer moved on by a number of elements.
    pub fn offset(self, elements: usize) -> Self {
        ConstPointer(self.0.offset(elements))
    }

    /// The number that libraries want.
    pub fn address(self) -> u64 {
        self.0.address()
    }
}
