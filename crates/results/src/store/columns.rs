//! Tables of plain columns, to and from Parquet. The bytes depend on the table alone: no time of
//! creation, one fixed writer name, fixed row groups.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use fullpipe_metrics as metrics;
use fullpipe_trace::UNITS;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};

/// A table: named columns of one length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Name and values, in order.
    pub columns: Vec<(String, Column)>,
}

/// Values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Text, never null.
    Text(Vec<String>),
    /// Integers, never null.
    Int(Vec<i64>),
    /// Numbers; null where undefined.
    Float(Vec<Option<f64>>),
}

impl Column {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Column::Text(v) => v.len(),
            Column::Int(v) => v.len(),
            Column::Float(v) => v.len(),
        }
    }

    /// True without values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Table {
    /// Adds a column; its length must be that of the others.
    ///
    /// # Panics
    /// If it is not.
    pub fn push(&mut self, name: impl Into<String>, column: Column) {
        assert!(
            self.columns.is_empty() || self.rows() == column.len(),
            "columns of one length"
        );
        self.columns.push((name.into(), column));
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, c)| c.len())
    }

    /// The column of this name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|(n, _)| n == name).map(|(_, c)| c)
    }

    /// A text column.
    pub fn text(&self, name: &str) -> Option<&[String]> {
        if let Some(Column::Text(v)) = self.column(name) {
            Some(v)
        } else {
            None
        }
    }

    /// A column of integers.
    pub fn int(&self, name: &str) -> Option<&[i64]> {
        if let Some(Column::Int(v)) = self.column(name) {
            Some(v)
        } else {
            None
        }
    }

    /// A column of numbers.
    pub fn float(&self, name: &str) -> Option<&[Option<f64>]> {
        if let Some(Column::Float(v)) = self.column(name) {
            Some(v)
        } else {
            None
        }
    }

    /// The bytes of a Parquet file (snappy).
    ///
    /// # Errors
    /// If a column's name cannot be written.
    pub fn to_parquet(&self) -> Result<Vec<u8>> {
        self.to_parquet_from(&[])
    }

    /// The same with where it is from in the file's metadata, and the units of its columns.
    pub(super) fn to_parquet_from(&self, origin: &Origin) -> Result<Vec<u8>> {
        let mut writer = TableWriter::new(Vec::new(), self, origin)?;
        let rows = self.rows();
        for from in (0..rows).step_by(ROWS_PER_GROUP) {
            writer.rows(self, from..rows.min(from + ROWS_PER_GROUP))?;
        }
        writer.finish()
    }

    /// Reads what [`Table::to_parquet`] wrote.
    ///
    /// # Errors
    /// If the bytes are no such file.
    pub fn from_parquet(bytes: Vec<u8>) -> Result<Table> {
        Table::some_from_parquet(bytes, &|_| true)
    }

    /// The same, of columns of these names only.
    pub(super) fn some_from_parquet(
        bytes: Vec<u8>,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Table> {
        let reader = SerializedFileReader::new(Bytes::from(bytes))?;
        let schema = reader.metadata().file_metadata().schema_descr_ptr();
        let mut table = Table::default();
        let wanted = schema.columns().iter().enumerate();
        let wanted: Vec<_> = wanted.filter(|(_, c)| is_wanted(c.name())).collect();
        for (_, column) in &wanted {
            let empty = match column.physical_type() {
                Physical::BYTE_ARRAY => Column::Text(Vec::new()),
                Physical::INT64 if column.max_def_level() > 0 => Column::Float(Vec::new()),
                Physical::INT64 => Column::Int(Vec::new()),
                Physical::DOUBLE => Column::Float(Vec::new()),
                other => return Err(ParquetError::General(format!("unexpected type {other}"))),
            };
            table.columns.push((column.name().to_owned(), empty));
        }
        for g in 0..reader.num_row_groups() {
            let group = reader.get_row_group(g)?;
            let rows = group.metadata().num_rows() as usize;
            for ((i, stored), (_, column)) in wanted.iter().zip(&mut table.columns) {
                let decimals = match stored.logical_type_ref() {
                    Some(LogicalType::Decimal(d)) => d.scale,
                    _ => 0,
                };
                append(column, group.get_column_reader(*i)?, rows, decimals)?;
            }
        }
        Ok(table)
    }

    fn schema(&self) -> Result<TypePtr> {
        let field = |(name, column): &(String, Column)| {
            let physical = match column {
                Column::Text(_) => Physical::BYTE_ARRAY,
                Column::Int(_) => Physical::INT64,
                Column::Float(_) => Physical::DOUBLE,
            };
            let optional = matches!(column, Column::Float(_));
            let logical = matches!(column, Column::Text(_)).then_some(LogicalType::String);
            Type::primitive_type_builder(name, physical)
                .with_repetition(if optional {
                    Repetition::OPTIONAL
                } else {
                    Repetition::REQUIRED
                })
                .with_logical_type(logical)
                .build()
                .map(Arc::new)
        };
        let fields = self.columns.iter().map(field).collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(
            Type::group_type_builder("fullpipe")
                .with_fields(fields)
                .build()?,
        ))
    }
}

/// Keys and values of a file's metadata.
pub(super) type Origin = [(&'static str, String)];

/// The units of columns as a JSON object, where their names are those of metrics or end in a unit.
/// Parquet keeps metadata of files and none of columns.
fn units(table: &Table) -> String {
    let mut units = serde_json::Map::new();
    for (name, column) in &table.columns {
        let known = metrics::unit(name);
        let ending = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending));
        let unit = match column {
            Column::Text(_) => continue,
            _ if !known.is_empty() => known,
            _ => ending.map_or("", |(_, unit)| *unit),
        };
        if !unit.is_empty() {
            units.insert(name.clone(), unit.into());
        }
    }
    serde_json::Value::Object(units).to_string()
}

/// Ends of the names of columns that are no metrics, or all of them: windows before and after a
/// reduction.
const ENDINGS: [(&str, &str); 12] = [
    ("before", "segments"),
    ("after", "segments"),
    ("_s", "s"),
    ("_ms", "ms"),
    ("_mbps", "Mbit/s"),
    ("_bytes", "B"),
    ("_packets", "packets"),
    ("_packets_min", "packets"),
    ("_packets_max", "packets"),
    ("_segments", "segments"),
    ("_bdp", "BDP"),
    ("_number", "1"),
];

/// A Parquet file that is written group by group.
pub(super) struct TableWriter<W: Write + Send>(SerializedFileWriter<W>);

impl<W: Write + Send> TableWriter<W> {
    /// For rows with the columns of `like`.
    pub(super) fn new(out: W, like: &Table, origin: &Origin) -> Result<TableWriter<W>> {
        let pair = |key: &str, value: String| KeyValue::new(key.to_owned(), value);
        let origin = origin.iter().map(|(key, value)| pair(key, value.clone()));
        let metadata = origin.chain([pair(UNITS, units(like))]).collect();
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("fullpipe {}", crate::result::VERSION))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_key_value_metadata(Some(metadata))
            .build();
        let writer = SerializedFileWriter::new(out, like.schema()?, Arc::new(properties))?;
        Ok(TableWriter(writer))
    }

    /// Adds a table as a row group, or nothing if it has no rows.
    pub(super) fn group(&mut self, table: &Table) -> Result<()> {
        match table.rows() {
            0 => Ok(()),
            rows => self.rows(table, 0..rows),
        }
    }

    /// Adds these rows of a table as a row group.
    fn rows(&mut self, table: &Table, rows: Range<usize>) -> Result<()> {
        let mut group = self.0.next_row_group()?;
        for (_, column) in &table.columns {
            let mut out = group.next_column()?.expect("as many columns as the schema");
            let rows = rows.clone();
            match column {
                Column::Text(v) => {
                    let v: Vec<ByteArray> = v[rows].iter().map(|s| s.as_str().into()).collect();
                    out.typed::<ByteArrayType>().write_batch(&v, None, None)?;
                }
                Column::Int(v) => {
                    out.typed::<Int64Type>().write_batch(&v[rows], None, None)?;
                }
                Column::Float(v) => {
                    let defined: Vec<f64> = v[rows.clone()].iter().flatten().copied().collect();
                    let levels = v[rows].iter().map(|x| i16::from(x.is_some()));
                    let levels: Vec<i16> = levels.collect();
                    out.typed::<DoubleType>()
                        .write_batch(&defined, Some(&levels), None)?;
                }
            }
            out.close()?;
        }
        group.close()?;
        Ok(())
    }

    /// Ends the file.
    pub(super) fn finish(self) -> Result<W> {
        self.0.into_inner()
    }
}

fn append(column: &mut Column, reader: ColumnReader, rows: usize, decimals: i32) -> Result<()> {
    match (column, reader) {
        (Column::Text(into), ColumnReader::ByteArrayColumnReader(mut r)) => {
            let mut values = Vec::new();
            r.read_records(rows, None, None, &mut values)?;
            if values.len() != rows {
                return Err(short());
            }
            for v in &values {
                into.push(v.as_utf8()?.to_owned());
            }
        }
        (Column::Int(into), ColumnReader::Int64ColumnReader(mut r)) => {
            let before = into.len();
            r.read_records(rows, None, None, into)?;
            if into.len() - before != rows {
                return Err(short());
            }
        }
        (Column::Float(into), ColumnReader::DoubleColumnReader(mut r)) => {
            let (mut values, mut levels) = (Vec::new(), Vec::new());
            r.read_records(rows, Some(&mut levels), None, &mut values)?;
            spread(into, values.into_iter(), &levels, rows)?;
        }
        // The decimals of a trace.
        (Column::Float(into), ColumnReader::Int64ColumnReader(mut r)) => {
            let (mut values, mut levels) = (Vec::new(), Vec::new());
            r.read_records(rows, Some(&mut levels), None, &mut values)?;
            let unit = 10f64.powi(decimals);
            let values = values.into_iter().map(|v: i64| v as f64 / unit);
            spread(into, values, &levels, rows)?;
        }
        _ => {
            return Err(ParquetError::General(
                "a column has another type".to_owned(),
            ));
        }
    }
    Ok(())
}

/// Puts the defined values where the levels say.
fn spread(
    into: &mut Vec<Option<f64>>,
    mut defined: impl Iterator<Item = f64>,
    levels: &[i16],
    rows: usize,
) -> Result<()> {
    if levels.len() != rows {
        return Err(short());
    }
    for level in levels {
        into.push(if *level == 1 {
            Some(defined.next().ok_or_else(short)?)
        } else {
            None
        });
    }
    Ok(())
}

fn short() -> ParquetError {
    ParquetError::General("a column is shorter than its row group".to_owned())
}

/// Rows of a row group.
const ROWS_PER_GROUP: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut t = Table::default();
        t.push(
            "flow",
            Column::Text(vec!["a".into(), "b".into(), "a".into()]),
        );
        t.push("seed", Column::Int(vec![1, -2, i64::MAX]));
        t.push("path.mtu", Column::Float(vec![Some(1.5), None, Some(-0.0)]));
        t.push("nothing", Column::Float(vec![None; 3]));
        t
    }

    #[test]
    fn reads_what_it_wrote_and_writes_the_same_bytes_again() {
        let t = table();
        let bytes = t.to_parquet().unwrap();
        assert_eq!(bytes, t.to_parquet().unwrap());
        assert_eq!(&bytes[..4], b"PAR1");
        assert_eq!(Table::from_parquet(bytes).unwrap(), t);
    }

    #[test]
    fn a_file_says_where_it_is_from_and_in_which_units() {
        let mut t = table();
        t.push("goodput_mbps", Column::Float(vec![None; 3]));
        t.push("path.rtt_s", Column::Float(vec![None; 3]));
        t.push("before", Column::Float(vec![None; 3]));
        let bytes = t
            .to_parquet_from(&[("fullpipe.seed", "7".to_owned())])
            .unwrap();
        let reader = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
        let metadata = reader
            .metadata()
            .file_metadata()
            .key_value_metadata()
            .unwrap();
        let pairs: Vec<(&str, &str)> = metadata
            .iter()
            .map(|pair| (pair.key.as_str(), pair.value.as_deref().unwrap()))
            .collect();
        let units = r#"{"before":"segments","goodput_mbps":"Mbit/s","path.rtt_s":"s"}"#;
        assert_eq!(pairs, [("fullpipe.seed", "7"), ("fullpipe.units", units)]);
        let alone = SerializedFileReader::new(Bytes::from(t.to_parquet().unwrap())).unwrap();
        let metadata = alone.metadata().file_metadata().key_value_metadata();
        assert_eq!(metadata.unwrap()[0].key, UNITS);
    }

    #[test]
    fn no_rows() {
        let mut t = Table::default();
        t.push("flow", Column::Text(vec![]));
        t.push("x", Column::Float(vec![]));
        assert_eq!(Table::from_parquet(t.to_parquet().unwrap()).unwrap(), t);
    }

    #[test]
    fn several_row_groups() {
        let n = ROWS_PER_GROUP + 5;
        let mut t = Table::default();
        t.push("i", Column::Int((0..n as i64).collect()));
        t.push(
            "x",
            Column::Float((0..n).map(|i| (i % 3 != 0).then_some(i as f64)).collect()),
        );
        assert_eq!(Table::from_parquet(t.to_parquet().unwrap()).unwrap(), t);
    }

    #[test]
    fn a_cut_file_is_an_error() {
        let bytes = table().to_parquet().unwrap();
        for n in 0..bytes.len() {
            assert!(Table::from_parquet(bytes[..n].to_vec()).is_err(), "{n}");
        }
    }
}
