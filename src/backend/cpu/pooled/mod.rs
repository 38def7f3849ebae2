//! Convolutions that end in ReLU and 2 × 2 max-pooling, one image at a time.
//!
//! A pool lets a gradient through at one position of each window at most, so of the backward pass no more than a quarter is left: it goes
//! from event to event, an event being a window's gradient that is not zero, at the position that the pool chose. Every sum has the order
//! that going through all positions would give it; only products with an exact zero are left out. The order, where
//! one output sums over many terms: for a filter gradient, positions in reading order (windows, where the layer reads few channels); for a
//! data gradient, positions in reverse, and output channels within each.

mod events;
mod forward;
mod gradients;
mod windows;

pub(super) use events::{Event, Events};
pub(super) use forward::{assert_pool, forward_resident, pool_rows};
pub(super) use gradients::{data_gradient_blocks, data_gradient_events, filter_gradient_events, sent_len};
pub(super) use windows::{cut_dead, filter_gradient_selected, patches, patches_len};
