//! The rows of a result file's tables, as they are read.

use hdf5::File;
use hdf5::types::{CompoundField, CompoundType, EnumType, TypeDescriptor};

use super::attributes::Found;
use super::table::Table;
use crate::reader::{MOST_INFLATED, is_readable, one_line};

/// All rows of a table.
pub(super) fn table<Row: Table>(file: &File, bytes: u64) -> Found<Vec<Row>> {
    let damaged = |error| format!("damaged: the table /{} cannot be read ({})", Row::PATH, one_line(&error));
    let dataset = file.dataset(Row::PATH).map_err(|_| format!("damaged: it has no table /{}", Row::PATH))?;
    // HDF5 would leave columns it does not find unset.
    let kind = dataset.dtype().and_then(|kind| kind.to_descriptor()).map_err(damaged)?;
    if by_value(kind.clone()) != by_value(Row::type_descriptor().to_packed_repr()) || dataset.ndim() != 1 {
        return Err(format!("damaged: the table /{} has other columns than its schema version", Row::PATH));
    }
    let rows = dataset.size();
    if (rows as u64).saturating_mul(kind.size() as u64) > bytes.saturating_mul(MOST_INFLATED) {
        return Err(format!("damaged: the table /{} claims {rows} rows, more than the file can hold", Row::PATH));
    }
    Vec::<Row>::new()
        .try_reserve_exact(rows)
        .map_err(|_| format!("the table /{} has {rows} rows, too many for this machine's memory", Row::PATH))?;
    is_readable(&dataset).map_err(|problem| format!("the table /{}: {problem}", Row::PATH))?;
    if rows == 0 { Ok(Vec::new()) } else { dataset.read_raw().map_err(damaged) }
}

/// A type with the members of its enumerations in the order of their values. Programs write them in orders of their own, which mean the same.
fn by_value(kind: TypeDescriptor) -> TypeDescriptor {
    match kind {
        TypeDescriptor::Enum(EnumType { size, signed, mut members }) => {
            members.sort_by_key(|member| member.value);
            TypeDescriptor::Enum(EnumType { size, signed, members })
        }
        TypeDescriptor::Compound(CompoundType { fields, size }) => {
            let fields = fields.into_iter().map(|field| CompoundField { ty: by_value(field.ty), ..field }).collect();
            TypeDescriptor::Compound(CompoundType { fields, size })
        }
        other => other,
    }
}

/// The rows of a table that not every file has.
pub(super) fn optional_table<Row: Table>(file: &File, bytes: u64) -> Found<Vec<Row>> {
    if file.link_exists(Row::PATH) { table(file, bytes) } else { Ok(Vec::new()) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use hdf5::{FileBuilder, H5Type};

    use super::*;
    use crate::results::codes::StatusCode;
    use crate::results::table::table as declare;

    declare!(Ended, "ended", "One row a test.", (code: u8, taken: u32) {
        status: StatusCode = "how it ended" => StatusCode(code),
        steps: u32 = "steps" => taken,
    });

    /// Other programs write the members of an enumeration in orders of their own.
    #[test]
    fn members_of_an_enumeration_may_stand_in_any_order() {
        let turned = |kind: TypeDescriptor| match kind {
            TypeDescriptor::Compound(CompoundType { mut fields, size }) => {
                if let TypeDescriptor::Enum(kind) = &mut fields[0].ty {
                    kind.members.reverse();
                }
                TypeDescriptor::Compound(CompoundType { fields, size })
            }
            other => other,
        };
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join("ended.h5")).unwrap();
        let kind = turned(Ended::type_descriptor().to_packed_repr());
        assert_ne!(kind, Ended::type_descriptor().to_packed_repr());
        let dataset = file.new_dataset_builder().packed(true).empty_as(&kind).shape(2).create("ended").unwrap();
        let rows = [Ended::new(0, 7), Ended::new(2, 9)];
        dataset.write_raw(&rows).unwrap();
        let read: Vec<Ended> = table(&file, 1 << 20).unwrap();
        assert!(read.len() == 2 && read.iter().zip(&rows).all(|(read, row)| row.differences(read).is_empty()), "{read:?}");
    }

    #[test]
    fn a_filter_that_hdf5_does_not_have_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ended.h5");
        let file = FileBuilder::new().with_fapl(|access| access.libver_earliest()).create(&path).unwrap();
        let kind = Ended::type_descriptor().to_packed_repr();
        file.new_dataset_builder().packed(true).empty_as(&kind).shape(2).chunk(2).deflate(4).create("ended").unwrap();
        file.close().unwrap();
        let mut bytes = fs::read(&path).unwrap();
        // The filter's number, the length of its name, flags, the number of its parameters, and its name.
        let is_deflate = |part: &[u8]| part[..4] == [1, 0, 8, 0] && part[8..] == *b"deflate\0";
        let place = bytes.windows(16).position(is_deflate).unwrap();
        bytes[place..][..2].copy_from_slice(&300_u16.to_le_bytes());
        fs::write(&path, bytes).unwrap();
        let problem = table::<Ended>(&File::open(&path).unwrap(), 1 << 20).unwrap_err();
        assert!(problem.starts_with("the table /ended: expected filters that this HDF5 has, found deflate (number 300)"), "{problem}");
    }
}
