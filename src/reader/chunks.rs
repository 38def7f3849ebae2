//! The values of a dataset, byte for byte as they lie in the file. HDF5 1.10 does not compare the length of what a chunk inflates to with the chunk's
//! own, and hands out whatever lies behind it in memory. So chunks compressed by HDF5's usual filters are read as they are stored, and undone here.

use std::io::Write;
use std::ptr;

use flate2::{Decompress, FlushDecompress, Status};
use hdf5::dataset::Layout;
use hdf5::plist::dataset_create::FillValue;
use hdf5::{Dataset, Extents};
use hdf5_sys::h5::{HADDR_UNDEF, herr_t, hsize_t};
use hdf5_sys::h5d::{H5Dget_chunk_info_by_coord, H5Dget_space, H5Dread, H5Dread_chunk1};
use hdf5_sys::h5i::hid_t;
use hdf5_sys::h5p::{H5P_DEFAULT, H5Pget_fill_value, H5Pget_filter2, H5Pget_nfilters};
use hdf5_sys::h5s::{H5S_seloper_t, H5Sclose, H5Screate_simple, H5Sselect_hyperslab};
use hdf5_sys::h5z::{H5Z_FILTER_DEFLATE, H5Z_FILTER_FLETCHER32, H5Z_FILTER_SHUFFLE, H5Z_filter_t, H5Zfilter_avail};

use super::one_line;

unsafe extern "C" {
    /// Bytes that the chunk at `offset` takes in the file; 0, or an error, where the chunk was never written. Since HDF5 1.10.2; the bindings lack
    /// this function.
    fn H5Dget_chunk_storage_size(dataset: hid_t, offset: *const hsize_t, bytes: *mut hsize_t) -> herr_t;
}

/// Bytes that are read at a time where chunks do not say.
const BLOCK: usize = 1 << 20;

/// Bytes of checksums that filters may add to a chunk's values.
const CHECKSUMS: usize = 64;

const WITHOUT_ZLIB: &str = "expected values that this HDF5 can read, found compressed ones, and it was built without zlib; use a build of HDF5 that has \
                            zlib, or write them uncompressed (h5repack -f NONE)";

/// A filter of a dataset: what was done with each chunk before it was stored.
struct Filter {
    id: H5Z_filter_t,
    /// The filter's first parameter; the element's bytes of the shuffle filter.
    parameter: u32,
    /// The filter's name, as the file has it.
    name: String,
}

/// How a dataset's values are stored.
struct Plan<'a> {
    dataset: &'a Dataset,
    /// Extents, the slowest first.
    extents: Vec<usize>,
    /// Bytes of an element.
    width: usize,
    /// A chunk's extents, where there are chunks.
    chunk: Option<Vec<usize>>,
    filters: Vec<Filter>,
}

impl<'a> Plan<'a> {
    fn of(dataset: &'a Dataset) -> Result<Self, String> {
        let failed = |error: hdf5::Error| format!("the dataset cannot be opened ({}); write it again", one_line(&error));
        let properties = dataset.dcpl().map_err(failed)?;
        let width = dataset.dtype().map_err(failed)?.size();
        let space = dataset.space().and_then(|space| space.extents()).map_err(failed)?;
        let (extents, most): (Vec<usize>, Vec<Option<usize>>) = match &space {
            Extents::Simple(extents) => extents.iter().map(|extent| (extent.dim, extent.max)).unzip(),
            Extents::Scalar => Default::default(),
            Extents::Null => return Err("expected values, found a dataset without any; write it again".to_owned()),
        };
        let chunk = match properties.get_layout().map_err(failed)? {
            Layout::Chunked => properties.get_chunk().map_err(failed)?,
            _ => None,
        };
        let whole = |extents: &[usize]| extents.iter().try_fold(width, |bytes, &extent| bytes.checked_mul(extent));
        if whole(&extents).is_none() || width == 0 {
            return Err("expected as many values as a memory can hold, found more: the file is damaged; write it again".to_owned());
        }
        if let Some(chunk) = &chunk {
            let fits = |(&chunk, (&extent, &most)): (&usize, (&usize, &Option<usize>))| {
                chunk > 0 && most.is_none_or(|most| chunk <= most.max(extent).max(1))
            };
            let is_sound = chunk.len() == extents.len() && chunk.iter().zip(extents.iter().zip(&most)).all(fits);
            if !is_sound || whole(chunk).is_none_or(|bytes| bytes > u32::MAX as usize) {
                return Err(format!(
                    "expected chunks no larger than the dataset, found {chunk:?} in {extents:?}: the file is damaged; write it again"
                ));
            }
        }
        Ok(Plan { dataset, extents, width, chunk, filters: filters(properties.id()).map_err(failed)? })
    }

    fn chunk_bytes(&self) -> usize {
        self.chunk.iter().flatten().product::<usize>() * self.width
    }

    /// Whether each chunk can be undone here.
    fn is_usual(&self) -> bool {
        self.filters.iter().all(|filter| [H5Z_FILTER_DEFLATE, H5Z_FILTER_SHUFFLE, H5Z_FILTER_FLETCHER32].contains(&filter.id))
    }

    /// Refuses a filter that this HDF5 does not have, by its name.
    fn has_its_filters(&self) -> Result<(), String> {
        // SAFETY: the call takes any number, and nothing else runs in HDF5 meanwhile.
        let is_there = |id| hdf5::sync::sync(|| unsafe { H5Zfilter_avail(id) }) > 0;
        match self.filters.iter().find(|filter| !is_there(filter.id)) {
            Some(Filter { id: H5Z_FILTER_DEFLATE, .. }) => Err(WITHOUT_ZLIB.to_owned()),
            Some(Filter { id, name, .. }) => Err(format!(
                "expected filters that this HDF5 has, found {} (number {id}); set HDF5_PLUGIN_PATH to the folder of its plugin, or write it with gzip \
                 (h5repack -f GZIP=4)",
                if name.is_empty() { "one without a name" } else { name }
            )),
            None => Ok(()),
        }
    }
}

fn filters(properties: hid_t) -> hdf5::Result<Vec<Filter>> {
    // SAFETY: the identifier is an open property list; the call only reads it.
    let count = hdf5::sync::sync(|| unsafe { H5Pget_nfilters(properties) });
    let one = |index| {
        let (mut flags, mut parameters, mut length, mut name) = (0, [0; 16], 16, [0_u8; 64]);
        // SAFETY: all places are there for longer than the call takes, and as long as their lengths say.
        let id = hdf5::sync::sync(|| unsafe {
            H5Pget_filter2(
                properties,
                index,
                &raw mut flags,
                &raw mut length,
                parameters.as_mut_ptr(),
                name.len() - 1,
                name.as_mut_ptr().cast(),
                ptr::null_mut(),
            )
        });
        if id < 0 {
            return Err(hdf5::Error::from("its filters cannot be read"));
        }
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        let name = String::from_utf8_lossy(name).chars().filter(|letter| !letter.is_control()).collect();
        Ok(Filter { id, parameter: parameters[0], name })
    };
    (0..count.max(0) as u32).map(one).collect()
}

/// Refuses a dataset that cannot be read: a chunk's extents beyond its own, or filters that this HDF5 does not have.
///
/// # Errors
/// A problem, in words that follow the dataset's name.
pub(crate) fn is_readable(dataset: &Dataset) -> Result<(), String> {
    Plan::of(dataset)?.has_its_filters()
}

/// Refuses a dataset with a chunk that does not become as many bytes as a chunk has. It is read where `most` bytes are enough for its values.
///
/// # Errors
/// A problem, in words that follow the dataset's name.
pub(crate) fn is_whole(dataset: &Dataset, most: u64) -> Result<(), String> {
    let plan = Plan::of(dataset)?;
    let bytes = plan.extents.iter().product::<usize>() * plan.width;
    if bytes as u64 > most {
        return Err(format!(
            "expected at most {most} bytes of values in a file of this length, found {bytes}: it is damaged; write it again"
        ));
    }
    match &plan.chunk {
        Some(chunk) if plan.is_usual() => plan.write_chunks(chunk, &mut std::io::sink()),
        _ => Ok(()),
    }
}

/// Writes all values in C's order, in the file's own type and order of bytes.
///
/// # Errors
/// A problem, in words that follow the dataset's name.
pub(crate) fn write_values(dataset: &Dataset, output: &mut dyn Write) -> Result<(), String> {
    let plan = Plan::of(dataset)?;
    plan.has_its_filters()?;
    match &plan.chunk {
        Some(chunk) if plan.is_usual() => plan.write_chunks(chunk, output),
        _ => plan.write_rows(output),
    }
}

fn unwritten(error: std::io::Error) -> String {
    format!("what was read cannot be handed on ({error}); try again")
}

impl Plan<'_> {
    /// Values that HDF5 reads, a block of rows at a time.
    fn write_rows(&self, output: &mut dyn Write) -> Result<(), String> {
        if self.extents.contains(&0) {
            return Ok(());
        }
        let row: usize = self.extents.iter().skip(1).product::<usize>() * self.width;
        let (bytes, stored) = (self.extents.iter().product::<usize>() * self.width, self.dataset.storage_size());
        // Values that were never written take no bytes.
        if self.chunk.is_none() && stored != 0 && stored < bytes as u64 {
            return Err(format!("expected {bytes} bytes of values, found {stored}: the file is damaged; write it again"));
        }
        let rows = self.extents.first().copied().unwrap_or(1);
        let step = (BLOCK / row.max(1)).max(1);
        // Chunks that HDF5 decompresses are decompressed once.
        let step = self.chunk.as_ref().map_or(step, |chunk| step.next_multiple_of(chunk[0]));
        let mut block = Vec::new();
        for first in (0..rows).step_by(step) {
            let count = step.min(rows - first);
            block.resize(count * row, 0);
            self.read(first, count, &mut block)
                .map_err(|error| format!("its values cannot be read ({}); write it again", one_line(&error)))?;
            output.write_all(&block).map_err(unwritten)?;
        }
        Ok(())
    }

    /// Rows from `first` on, as many as `block` has bytes for.
    fn read(&self, first: usize, count: usize, block: &mut [u8]) -> hdf5::Result<()> {
        let kind = self.dataset.dtype()?;
        let mut start = vec![0; self.extents.len()];
        let mut counts: Vec<hsize_t> = self.extents.iter().map(|&extent| extent as hsize_t).collect();
        if !start.is_empty() {
            start[0] = first as hsize_t;
            counts[0] = count as hsize_t;
        }
        // SAFETY: the identifiers are open, the arrays have as many places as the dataset has extents, and the block has room for the values of the
        // selection in the dataset's own type. The spaces are closed once.
        let failed = hdf5::sync::sync(|| unsafe {
            let file = H5Dget_space(self.dataset.id());
            let mut failed = file < 0;
            let mut memory = file;
            if !start.is_empty() && !failed {
                failed =
                    H5Sselect_hyperslab(file, H5S_seloper_t::H5S_SELECT_SET, start.as_ptr(), ptr::null(), counts.as_ptr(), ptr::null()) < 0;
                memory = H5Screate_simple(counts.len() as _, counts.as_ptr(), ptr::null());
            }
            failed = failed || H5Dread(self.dataset.id(), kind.id(), memory, file, H5P_DEFAULT, block.as_mut_ptr().cast()) < 0;
            if memory != file {
                H5Sclose(memory);
            }
            H5Sclose(file);
            failed
        });
        if failed { Err(hdf5::Error::query().err().unwrap_or_else(|| "HDF5 does not say why".into())) } else { Ok(()) }
    }

    /// Values of chunks, a row of chunks at a time.
    fn write_chunks(&self, chunk: &[usize], output: &mut dyn Write) -> Result<(), String> {
        if self.extents.contains(&0) {
            return Ok(());
        }
        let row: usize = self.extents[1..].iter().product::<usize>() * self.width;
        let fill = self.fill_value();
        // Chunks that are as wide as the dataset are rows of it.
        let is_whole = chunk[1..] == self.extents[1..];
        let (mut slab, mut pieces) = (Vec::new(), Pieces::new(self.chunk_bytes()));
        for first in (0..self.extents[0]).step_by(chunk[0]) {
            let rows = chunk[0].min(self.extents[0] - first);
            let bytes = rows * row;
            let slab_extents: Vec<usize> = [rows].into_iter().chain(self.extents[1..].iter().copied()).collect();
            if !is_whole {
                slab.resize(bytes, 0);
            }
            let mut offset = vec![0; chunk.len()];
            loop {
                let at: Vec<hsize_t> = [first].iter().chain(&offset[1..]).map(|&place| place as hsize_t).collect();
                self.read_chunk(&at, &fill, &mut pieces)
                    .map_err(|problem| format!("{problem} (chunk {at:?}): the file is damaged; write it again"))?;
                if is_whole {
                    output.write_all(&pieces.values[..bytes]).map_err(unwritten)?;
                } else {
                    place(&pieces.values, chunk, &mut slab, &slab_extents, &offset, self.width);
                }
                // The next chunk of the row, the last extent fastest.
                let Some(axis) = (1..chunk.len()).rev().find(|&axis| offset[axis] + chunk[axis] < self.extents[axis]) else { break };
                offset[axis] += chunk[axis];
                offset[axis + 1..].fill(0);
            }
            if !is_whole {
                output.write_all(&slab).map_err(unwritten)?;
            }
        }
        Ok(())
    }

    /// The value of elements that were never written.
    fn fill_value(&self) -> Vec<u8> {
        let mut value = vec![0; self.width];
        if let (Ok(properties), Ok(kind)) = (self.dataset.dcpl(), self.dataset.dtype())
            && properties.fill_value_defined() != FillValue::Undefined
        {
            // SAFETY: the identifiers are open, and the value has room for one element of the type.
            let found = hdf5::sync::sync(|| unsafe { H5Pget_fill_value(properties.id(), kind.id(), value.as_mut_ptr().cast()) });
            if found < 0 {
                value.fill(0);
            }
        }
        value
    }

    /// The values of the chunk at `offset`.
    fn read_chunk(&self, offset: &[hsize_t], fill: &[u8], pieces: &mut Pieces) -> Result<(), String> {
        let whole = self.chunk_bytes();
        let mut stored: hsize_t = 0;
        // SAFETY: the identifier is open, the offset has a place for each extent, and the length is written to a place that is there.
        if hdf5::sync::sync(|| unsafe { H5Dget_chunk_storage_size(self.dataset.id(), offset.as_ptr(), &raw mut stored) }) < 0 {
            // The first call fails for chunks that were never written and for damaged ones. H5Dget_chunk_info_by_coord tells the two apart, and
            // takes longer.
            let (mut skipped, mut place) = (0, 0);
            // SAFETY: as above.
            let found = hdf5::sync::sync(|| unsafe {
                H5Dget_chunk_info_by_coord(self.dataset.id(), offset.as_ptr(), &raw mut skipped, &raw mut place, &raw mut stored)
            });
            if found < 0 || place != HADDR_UNDEF {
                return Err("a chunk cannot be found".to_owned());
            }
            stored = 0;
        }
        if stored == 0 {
            pieces.values.clear();
            pieces.values.reserve(whole);
            while pieces.values.len() < whole {
                pieces.values.extend_from_slice(fill);
            }
            return Ok(());
        }
        // Deflate enlarges bytes that it cannot compress, to less than twice as many and 1,024.
        if stored > 2 * whole as u64 + 1024 {
            return Err(format!("expected a chunk of {whole} bytes, found {stored} stored ones"));
        }
        pieces.stored.resize(stored as usize, 0);
        let mut skipped = 0;
        // SAFETY: the buffer has as many bytes as HDF5 has just said that the chunk takes, and no other thread changes the file's tree meanwhile.
        let read = hdf5::sync::sync(|| unsafe {
            H5Dread_chunk1(self.dataset.id(), H5P_DEFAULT, offset.as_ptr(), &raw mut skipped, pieces.stored.as_mut_ptr().cast())
        });
        if read < 0 {
            return Err("a chunk cannot be read".to_owned());
        }
        pieces.values.clear();
        pieces.values.extend_from_slice(&pieces.stored);
        for (index, filter) in self.filters.iter().enumerate().rev() {
            if skipped >> index & 1 == 0 {
                pieces.undo(filter)?;
            }
        }
        if pieces.values.len() != whole {
            return Err(format!("expected chunks of {whole} bytes, found one of {}", pieces.values.len()));
        }
        Ok(())
    }
}

/// Buffers of one chunk, used again for the next.
struct Pieces {
    stored: Vec<u8>,
    values: Vec<u8>,
    other: Vec<u8>,
    inflater: Decompress,
    /// Bytes that a chunk may have between two filters.
    most: usize,
}

impl Pieces {
    fn new(whole: usize) -> Self {
        Pieces { stored: Vec::new(), values: Vec::new(), other: Vec::new(), inflater: Decompress::new(true), most: whole + CHECKSUMS }
    }

    /// Undoes a filter on `values`.
    fn undo(&mut self, filter: &Filter) -> Result<(), String> {
        match filter.id {
            H5Z_FILTER_DEFLATE => self.inflate(),
            H5Z_FILTER_SHUFFLE => {
                self.unshuffle(filter.parameter as usize);
                Ok(())
            }
            _ => self.check(),
        }
    }

    fn inflate(&mut self) -> Result<(), String> {
        self.inflater.reset(true);
        self.other.resize(self.most, 0);
        let status = self.inflater.decompress(&self.values, &mut self.other, FlushDecompress::Finish);
        if !matches!(status, Ok(Status::StreamEnd)) {
            return Err(format!("expected a chunk that inflates to at most {} bytes, found another", self.most));
        }
        self.other.truncate(self.inflater.total_out() as usize);
        std::mem::swap(&mut self.values, &mut self.other);
        Ok(())
    }

    /// The first bytes of all elements of so many bytes, then the second ones: back to elements.
    fn unshuffle(&mut self, width: usize) {
        let count = self.values.len().checked_div(width).unwrap_or(0);
        if width <= 1 || count <= 1 {
            return;
        }
        self.other.clear();
        self.other.extend_from_slice(&self.values);
        for (byte, from) in self.values[..count * width].chunks_exact(count).enumerate() {
            from.iter().zip(self.other.iter_mut().skip(byte).step_by(width)).for_each(|(&from, to)| *to = from);
        }
        std::mem::swap(&mut self.values, &mut self.other);
    }

    /// Takes Fletcher's checksum off, once it is right.
    fn check(&mut self) -> Result<(), String> {
        let Some(length) = self.values.len().checked_sub(4) else { return Err("expected a checksum, found fewer bytes".to_owned()) };
        let (values, found) = self.values.split_at(length);
        let found = u32::from_le_bytes([found[0], found[1], found[2], found[3]]);
        let sum = fletcher(values);
        // HDF5 before 1.6.3 wrote the bytes of each half in the other order on little-endian machines.
        let reversed = (sum >> 8 & 0x00ff_00ff) | (sum & 0x00ff_00ff) << 8;
        if found != sum && found != reversed {
            return Err("expected a chunk with the checksum that its bytes have, found another".to_owned());
        }
        self.values.truncate(length);
        Ok(())
    }
}

/// Fletcher's checksum of 32 bits over big-endian words of 16 bits, folded as HDF5 folds it: a sum that is a positive multiple of 65,535 becomes
/// 65,535, not 0.
fn fletcher(bytes: &[u8]) -> u32 {
    let fold = |sum: u32| (sum & 0xffff) + (sum >> 16);
    let (mut first, mut second) = (0_u32, 0_u32);
    let (words, rest) = bytes.as_chunks::<2>();
    // Both sums over 360 words fit into 32 bits.
    for words in words.chunks(360) {
        for word in words {
            first += u32::from(u16::from_be_bytes(*word));
            second += first;
        }
        (first, second) = (fold(first), fold(second));
    }
    if let [byte] = rest {
        first += u32::from(*byte) << 8;
        second += first;
        (first, second) = (fold(first), fold(second));
    }
    (first, second) = (fold(first), fold(second));
    second << 16 | first
}

/// Copies what of a chunk at `offset` lies within the slab.
fn place(values: &[u8], chunk: &[usize], slab: &mut [u8], extents: &[usize], offset: &[usize], width: usize) {
    let count = chunk[0].min(extents[0] - offset[0]);
    if chunk.len() == 1 {
        slab[offset[0] * width..][..count * width].copy_from_slice(&values[..count * width]);
        return;
    }
    let from: usize = chunk[1..].iter().product::<usize>() * width;
    let to: usize = extents[1..].iter().product::<usize>() * width;
    for (values, slab) in values.chunks_exact(from).take(count).zip(slab.chunks_exact_mut(to).skip(offset[0])) {
        place(values, &chunk[1..], slab, &extents[1..], &offset[1..], width);
    }
}

#[cfg(test)]
mod tests {
    use hdf5::File;
    use hdf5::filters::Filter::{Deflate, Fletcher32, NBit, Shuffle};

    use super::*;

    /// Values of a sound dataset are read as HDF5 reads them, for every combination of filters and chunks of several shapes.
    #[test]
    fn chunks_become_what_hdf5_reads() {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join("x.h5")).unwrap();
        let shape = [11, 5, 3];
        let values: Vec<u16> = (0..165).map(|value| value * 397 % 251).collect();
        let chunks: [&[usize]; 5] = [&[4, 5, 3], &[11, 5, 3], &[3, 2, 2], &[1, 1, 1], &[5, 5, 1]];
        let filters: [&[_]; 7] = [
            &[],
            &[Shuffle],
            &[Deflate(6)],
            &[Shuffle, Deflate(9)],
            &[Shuffle, Deflate(1), Fletcher32],
            &[Fletcher32, Deflate(1)],
            &[NBit],
        ];
        for (number, chunk) in chunks.iter().enumerate() {
            for (kind, filters) in filters.iter().enumerate() {
                let name = format!("{number}-{kind}");
                let builder = file.new_dataset_builder().empty::<u16>().shape(shape).chunk(*chunk).set_filters(filters).fill_value(7_u16);
                let dataset = builder.create(name.as_str()).unwrap();
                if number != 2 {
                    dataset.write_raw(&values).unwrap();
                } else {
                    // Most chunks are never written.
                    dataset.write_slice(&[5_u16, 6], (4, 3, 0..2)).unwrap();
                }
                file.flush().unwrap();
                // Before HDF5 reads it: its cache would have chunks that the file has not.
                let mut found = Vec::new();
                write_values(&dataset, &mut found).unwrap_or_else(|problem| panic!("{chunk:?}, {filters:?}: {problem}"));
                is_whole(&dataset, 330).unwrap();
                assert!(is_whole(&dataset, 329).unwrap_err().contains("at most 329 bytes"));
                let expected: Vec<u8> = dataset.read_raw::<u16>().unwrap().into_iter().flat_map(u16::to_le_bytes).collect();
                assert_eq!(found, expected, "{chunk:?}, {filters:?}");
            }
        }
        let rows = file.new_dataset::<i64>().shape([300_000]).create("rows").unwrap();
        rows.write_raw(&(0..300_000_i64).collect::<Vec<_>>()).unwrap();
        let mut found = Vec::new();
        write_values(&rows, &mut found).unwrap();
        assert_eq!(found, (0..300_000_i64).flat_map(i64::to_le_bytes).collect::<Vec<_>>());
        for shape in [[0, 3], [3, 0]] {
            let none = file.new_dataset::<u8>().shape([(shape[0], None), (shape[1], None)]).chunk([2, 2]).deflate(1);
            let none = none.create(format!("{shape:?}").as_str()).unwrap();
            found.clear();
            write_values(&none, &mut found).unwrap();
            is_whole(&none, 0).unwrap();
            assert!(found.is_empty());
        }
        let one = file.new_dataset::<u8>().create("one").unwrap();
        one.write_scalar(&9_u8).unwrap();
        found.clear();
        write_values(&one, &mut found).unwrap();
        assert_eq!(found, [9]);
    }
}
