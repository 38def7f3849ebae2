//! Data sets: where their files are, what is in them, how they are split, normalised and put in order.
//!
//! The names of data sets are declared here, with their files' sums and addresses, and the section `[data]`.
//!
//! The module turns files into examples and positions of the training stream into example numbers, and can fetch the files. It may not know of
//! networks, devices, ranks or trials: a batch is gathered and normalised by the back end, from [`Dataset::lookup_table`] and [`Sampler::fill`].

mod check;
mod choice;
mod cifar;
mod contents;
mod dataset;
mod examples;
mod facts;
mod fetch;
mod find;
mod idx;
mod normalise;
mod own;
mod sampler;
pub(crate) mod section;
mod table;

pub use check::check;
pub(crate) use choice::DatasetKind;
pub use choice::{DatasetChoice, DatasetName, OwnDataset};
pub use dataset::{Dataset, Particulars};
pub use examples::{Examples, ImageShape, Pixels};
pub use facts::Facts;
pub use fetch::fetch;
pub use find::{default_folder, fetching, folder_option, locate};
pub use normalise::Normalisation;
pub use own::READING;
pub use sampler::Sampler;
pub use section::{DataLayout, DataOrder, DataSource, DataSplit};
pub use table::{DataFile, DatasetSpec, FileFormat, Source};
