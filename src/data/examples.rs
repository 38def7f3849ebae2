//! Labelled images.

/// Extents of one image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ImageShape {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// Values a pixel: 1 for grey, 3 for red, green, blue.
    pub channels: usize,
}

impl From<[usize; 3]> for ImageShape {
    /// From rows, columns and channels.
    fn from([height, width, channels]: [usize; 3]) -> Self {
        ImageShape { height, width, channels }
    }
}

impl ImageShape {
    /// Values of one image: height × width × channels.
    pub fn values(&self) -> usize {
        self.height * self.width * self.channels
    }
}

impl std::fmt::Display for ImageShape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}×{}×{}", self.height, self.width, self.channels)
    }
}

/// The values of images.
#[derive(Debug, Clone, PartialEq)]
pub enum Pixels {
    /// Pixels as bytes. A network reads them through [`Dataset::lookup_table`](super::Dataset::lookup_table).
    Bytes(Vec<u8>),
    /// Pixels as 32-bit floating point: in a [`Dataset`](super::Dataset) normalised, as a network reads them.
    Floats(Vec<f32>),
}

impl From<Vec<u8>> for Pixels {
    fn from(bytes: Vec<u8>) -> Self {
        Pixels::Bytes(bytes)
    }
}

impl Pixels {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Pixels::Bytes(values) => values.len(),
            Pixels::Floats(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of one value.
    pub fn value_bytes(&self) -> usize {
        match self {
            Pixels::Bytes(_) => 1,
            Pixels::Floats(_) => 4,
        }
    }
}

/// Labelled images: `images` is n × height × width × channels values (channel last), `labels` n classes from 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Examples {
    /// Pixels, one image after the other.
    pub images: Pixels,
    /// Classes.
    pub labels: Vec<u16>,
    /// Extents of every image.
    pub shape: ImageShape,
}

/// The examples of a data set's files.
pub(super) struct Sets {
    pub training: Examples,
    /// Examples of the validation set, where the data have one of their own.
    pub validation: Option<Examples>,
    pub test: Examples,
    /// Number of classes: labels are 0 to classes − 1.
    pub classes: usize,
}

impl Examples {
    /// Number of examples.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// How many of them the guess of their most common class misses.
    pub fn errors_of_guessing(&self) -> u32 {
        let mut of_class: Vec<u32> = vec![0; self.labels.iter().max().map_or(0, |&label| usize::from(label) + 1)];
        self.labels.iter().for_each(|&label| of_class[usize::from(label)] += 1);
        self.len() as u32 - of_class.into_iter().max().unwrap_or(0)
    }

    /// Pixels of example `i`: height × width × channels bytes.
    ///
    /// # Panics
    /// If there is no example `i`, or pixels are no bytes.
    pub fn image(&self, i: usize) -> &[u8] {
        match &self.images {
            Pixels::Bytes(values) => &values[i * self.shape.values()..][..self.shape.values()],
            Pixels::Floats(_) => panic!("expected pixels of bytes, found floating point"),
        }
    }

    /// The examples named by `elements`, in that order.
    pub fn gather(&self, elements: &[u32]) -> Examples {
        let images = match &self.images {
            Pixels::Bytes(values) => Pixels::Bytes(gathered(values, self.shape.values(), elements)),
            Pixels::Floats(values) => Pixels::Floats(gathered(values, self.shape.values(), elements)),
        };
        Examples { images, labels: gathered(&self.labels, 1, elements), shape: self.shape }
    }

    /// The examples in another order, in which the one at `place` is `order[place]`, in two parts, of which the first has `first` examples. Only the
    /// second part is copied.
    pub(super) fn arranged(self, order: &[u32], first: usize) -> [Examples; 2] {
        let each = self.shape.values();
        let [images, others] = match self.images {
            Pixels::Bytes(values) => arranged(values, each, order, first).map(Pixels::Bytes),
            Pixels::Floats(values) => arranged(values, each, order, first).map(Pixels::Floats),
        };
        let [labels, other_labels] = arranged(self.labels, 1, order, first);
        let shape = self.shape;
        [Examples { images, labels, shape }, Examples { images: others, labels: other_labels, shape }]
    }
}

fn gathered<T: Copy>(values: &[T], each: usize, elements: &[u32]) -> Vec<T> {
    let mut gathered = Vec::with_capacity(elements.len() * each);
    elements.iter().for_each(|&element| gathered.extend_from_slice(&values[element as usize * each..][..each]));
    gathered
}

/// Moves runs of `each` values to their places, and cuts them in two after the first `first` runs.
fn arranged<T: Copy>(mut values: Vec<T>, each: usize, order: &[u32], first: usize) -> [Vec<T>; 2] {
    let mut is_placed = vec![false; order.len()];
    for start in 0..order.len() {
        if is_placed[start] {
            continue;
        }
        // Around the circle of places that begins here.
        let held = values[start * each..][..each].to_vec();
        let mut place = start;
        loop {
            is_placed[place] = true;
            let from = order[place] as usize;
            if from == start {
                values[place * each..][..each].copy_from_slice(&held);
                break;
            }
            values.copy_within(from * each..(from + 1) * each, place * each);
            place = from;
        }
    }
    let second = values[first * each..].to_vec();
    values.truncate(first * each);
    values.shrink_to_fit();
    [values, second]
}
