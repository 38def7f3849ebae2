//! A table of the file is declared once, with [`table!`]: its rows in HDF5, the report's columns, `/grid`, the page of results and what a replay
//! compares are made from that declaration.

use hdf5::H5Type;

use super::codes::{EndingCode, MaskHash, ShortText, StatusCode};

/// Declaration of a column, but for its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Name of the column.
    pub name: &'static str,
    /// The type of its values in the file, in words.
    pub kind: &'static str,
    /// Whether a 64-bit float says what a value is: of a hash or a text none does.
    pub is_number: bool,
    /// Unit of the values, as netCDF names units; empty where they count things, or are codes or texts.
    pub unit: &'static str,
    /// Meaning of the values.
    pub meaning: &'static str,
    /// Whether the column says where in the file other rows are, and so nothing of a training.
    pub is_place: bool,
}

/// A table of the file: one compound dataset, whose rows are values of this type.
pub trait Table: H5Type + Copy {
    /// Path in the file.
    const PATH: &'static str;
    /// Meaning of one row.
    const ROW: &'static str;
    /// The table's columns in order.
    const COLUMNS: &'static [Column];

    /// The value of each column as a number; NaN where it has none.
    fn numbers(&self) -> Vec<f64>;

    /// The value of each column as a text of the report's tables; empty where it has none.
    fn texts(&self) -> Vec<String>;

    /// The columns in which two rows differ: name, value of this row, value of the other one. NaN equals NaN.
    fn differences(&self, other: &Self) -> Vec<(&'static str, String, String)>;
}

/// Declares a table: the type of its rows, its path, what a row is, what a row is made of, and for each column its name, type, unit, meaning and
/// value. `place` marks columns that say where in the file other rows are.
macro_rules! table {
    ($name:ident, $path:literal, $row:literal, ($($given:ident: $type:ty),+ $(,)?) {
        $($column:ident: $kind:ty $([$unit:literal])? = $meaning:literal => $value:expr $(; $place:ident)?),+ $(,)?
    }) => {
        #[doc = $row]
        #[derive(Debug, Clone, Copy, hdf5::H5Type)]
        #[repr(C)]
        pub struct $name { $(#[doc = $meaning] pub $column: $kind),+ }

        impl $name {
            /// The row that the declaration makes of these.
            pub fn new($($given: $type),+) -> Self {
                $name { $($column: $value),+ }
            }
        }

        impl $crate::results::table::Table for $name {
            const PATH: &'static str = $path;
            const ROW: &'static str = $row;
            const COLUMNS: &'static [$crate::results::table::Column] = &[$($crate::results::table::Column {
                name: stringify!($column),
                kind: <$kind as $crate::results::table::Value>::KIND,
                is_number: <$kind as $crate::results::table::Value>::IS_NUMBER,
                unit: concat!($($unit)?),
                meaning: $meaning,
                is_place: !concat!($(stringify!($place))?).is_empty(),
            }),+];

            fn numbers(&self) -> Vec<f64> {
                vec![$($crate::results::table::Value::number(self.$column)),+]
            }

            fn texts(&self) -> Vec<String> {
                vec![$($crate::results::table::Value::text(self.$column)),+]
            }

            fn differences(&self, other: &Self) -> Vec<(&'static str, String, String)> {
                let columns = [$((stringify!($column), format!("{:?}", self.$column), format!("{:?}", other.$column))),+];
                columns.into_iter().filter(|(_, own, others)| own != others).collect()
            }
        }
    };
}

pub(super) use table;

/// A type that a column's values can have.
pub(super) trait Value {
    /// The type's name for readers.
    const KIND: &'static str;
    /// Whether a 64-bit float says what a value is.
    const IS_NUMBER: bool;

    /// The value as a number. A value of -1, which stands for none, a hash and a text give NaN.
    fn number(self) -> f64;

    /// The value as a text; empty where the value stands for none, or is not finite.
    fn text(self) -> String;
}

macro_rules! value {
    ($($kind:ty = $name:literal $($is_no:ident)?: $number:expr, $text:expr;)+) => { $(impl Value for $kind {
        const KIND: &'static str = $name;
        const IS_NUMBER: bool = concat!($(stringify!($is_no))?).is_empty();

        fn number(self) -> f64 {
            let number: fn($kind) -> f64 = $number;
            number(self)
        }

        fn text(self) -> String {
            let text: fn($kind) -> String = $text;
            text(self)
        }
    })+ };
}

value! {
    u32 = "u32": f64::from, |value| value.to_string();
    i32 = "i32": |value| i64::from(value).number(), |value| i64::from(value).text();
    u64 = "u64": |value| value as f64, |value| value.to_string();
    i64 = "i64": |value| if value == -1 { f64::NAN } else { value as f64 }, |value| if value == -1 { String::new() } else { value.to_string() };
    f32 = "f32": f64::from, |value| if value.is_finite() { value.to_string() } else { String::new() };
    f64 = "f64": |value| value, |value| if value.is_finite() { value.to_string() } else { String::new() };
    StatusCode = "enum u8": |value| value.0.into(), |value| format!("{value:?}");
    EndingCode = "enum u8": |value| value.0.into(), |value| format!("{value:?}");
    MaskHash = "u64" no_number: |_| f64::NAN, |value| format!("{:016x}", value.0);
    ShortText = "UTF-8" no_number: |_| f64::NAN, |value| String::from_utf8_lossy(value.as_bytes()).into_owned();
}

/// A table of the page of results: a line a column.
pub(super) fn described<Row: Table>() -> (&'static str, String) {
    let line = |column: &Column| format!("| `{}` | {} | {} | {} |\n", column.name, column.kind, column.unit, column.meaning);
    let lines: String = Row::COLUMNS.iter().map(line).collect();
    (Row::PATH, format!("{}\n\n| `/{}` | type | unit | meaning |\n|---|---|---|---|\n{lines}", Row::ROW, Row::PATH))
}
