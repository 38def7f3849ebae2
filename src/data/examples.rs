//! Labelled images as bytes.

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
    /// Bytes of one image: height × width × channels.
    pub fn bytes(&self) -> usize {
        self.height * self.width * self.channels
    }
}

impl std::fmt::Display for ImageShape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}×{}×{}", self.height, self.width, self.channels)
    }
}

/// Labelled images: `images` is n × height × width × channels bytes (channel last), `labels` n classes from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examples {
    /// Pixels, one image after the other.
    pub images: Vec<u8>,
    /// Classes.
    pub labels: Vec<u8>,
    /// Extents of every image.
    pub shape: ImageShape,
}

impl Examples {
    /// No examples yet, of images of `shape`.
    pub(super) fn empty(shape: ImageShape) -> Self {
        Examples { images: Vec::new(), labels: Vec::new(), shape }
    }

    /// Number of examples.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Pixels of example `i`: height × width × channels bytes.
    ///
    /// # Panics
    /// If there is no example `i`.
    pub fn image(&self, i: usize) -> &[u8] {
        &self.images[i * self.shape.bytes()..][..self.shape.bytes()]
    }

    /// Class of example `i`.
    ///
    /// # Panics
    /// If there is no example `i`.
    pub fn label(&self, i: usize) -> u8 {
        self.labels[i]
    }

    /// The examples named by `elements`, in that order.
    pub fn gather(&self, elements: impl ExactSizeIterator<Item = u32>) -> Examples {
        let mut gathered = Examples::empty(self.shape);
        gathered.images.reserve_exact(elements.len() * self.shape.bytes());
        gathered.labels.reserve_exact(elements.len());
        for element in elements {
            gathered.images.extend_from_slice(self.image(element as usize));
            gathered.labels.push(self.label(element as usize));
        }
        gathered
    }
}
