//! Rows into Parquet. The bytes depend on the rows and the metadata alone: no time of creation, one writer name.
//!
//! Encodings: counts and decimals as deltas (`DELTA_BINARY_PACKED`), words by dictionary, snappy over both. Measured against zstd
//! level 3: 8 % more bytes, no C library.

use std::io::Write;
use std::sync::Arc;

use fullpipe_flow::{Events, TraceRow};
use parquet::basic::{
    Compression, DecimalType, Encoding, LogicalType, Repetition, Type as Physical,
};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};

use crate::columns::{COLUMNS, VARIABLE, VARIABLE_DECIMALS, Value, scaled};
use crate::{Meta, SCHEMA, TraceError};

/// How times are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resolution {
    /// As virtual time is.
    #[default]
    Nanoseconds,
    /// As clocks and wire formats are; smaller files.
    Microseconds,
}

impl Resolution {
    /// Decimals that it drops.
    fn dropped(self) -> u8 {
        match self {
            Resolution::Nanoseconds => 0,
            Resolution::Microseconds => 3,
        }
    }

    fn of(self, nanos: u64) -> i64 {
        let unit = 10u64.pow(u32::from(self.dropped()));
        i64::try_from(nanos.saturating_add(unit / 2) / unit).unwrap_or(i64::MAX)
    }
}

/// How numbers that are not counts are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbers {
    /// Decimals over integers, a tenth of the bytes: for traces.
    #[default]
    Decimal,
    /// Doubles, exact, which every tool computes with at once: for small series.
    Double,
}

/// Writes one trace.
pub struct TraceWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    resolution: Resolution,
    numbers: Numbers,
    flow_names: Vec<ByteArray>,
    /// Names of the columns of variables, without their prefix.
    variables: Vec<String>,
    /// Per flow and variable column: where the flow reports it.
    places: Vec<Vec<Option<usize>>>,
    rows: Vec<TraceRow>,
    /// As many values as `width` per row.
    values: Vec<f64>,
    width: usize,
    written: u64,
}

impl<W: Write + Send> std::fmt::Debug for TraceWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceWriter")
            .field("written", &self.written)
            .field("waiting", &self.rows.len())
            .finish_non_exhaustive()
    }
}

impl<W: Write + Send> TraceWriter<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// If `out` refuses or a variable's name cannot be one of a column.
    pub fn new(
        out: W,
        meta: &Meta,
        resolution: Resolution,
        numbers: Numbers,
    ) -> std::result::Result<Self, TraceError> {
        let mut variables: Vec<String> = meta
            .flows
            .iter()
            .flat_map(|f| f.variables.iter().cloned())
            .collect();
        variables.sort_unstable();
        variables.dedup();
        let places = meta.flows.iter().map(|f| {
            let place = |v: &String| f.variables.iter().position(|n| n == v);
            variables.iter().map(place).collect()
        });
        let width = meta.flows.iter().map(|f| f.variables.len()).max();
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("fullpipe {}", meta.version))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .set_dictionary_enabled(false)
            .set_key_value_metadata(Some(metadata(meta)?));
        for c in COLUMNS {
            let path = ColumnPath::from(c.name);
            properties = match (c.value, numbers) {
                (Value::Flow | Value::Phase | Value::Event, _) => {
                    properties.set_column_dictionary_enabled(path, true)
                }
                (Value::Count(..), _) | (_, Numbers::Decimal) => {
                    properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
                }
                (_, Numbers::Double) => properties,
            };
        }
        if numbers == Numbers::Decimal {
            for v in &variables {
                let path = ColumnPath::from(format!("{VARIABLE}{v}"));
                properties = properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
            }
        }
        let schema = schema(&variables, resolution, numbers)?;
        Ok(Self {
            file: SerializedFileWriter::new(out, schema, Arc::new(properties.build()))?,
            resolution,
            numbers,
            flow_names: meta.flows.iter().map(|f| f.name.as_str().into()).collect(),
            places: places.collect(),
            variables,
            rows: Vec::new(),
            values: Vec::new(),
            width: width.unwrap_or(0),
            written: 0,
        })
    }

    /// Adds a row, with the values of its flow's variables in the order of the metadata; those that are missing are null. A row of
    /// a flow that the metadata does not know is left out.
    ///
    /// # Errors
    /// If the file cannot be written.
    #[inline]
    pub fn push(
        &mut self,
        row: &TraceRow,
        variables: &[f64],
    ) -> std::result::Result<(), TraceError> {
        if usize::from(row.flow) >= self.flow_names.len() {
            return Ok(());
        }
        self.rows.push(*row);
        let n = variables.len().min(self.width);
        self.values.extend_from_slice(&variables[..n]);
        self.values.resize(self.rows.len() * self.width, f64::NAN);
        if self.rows.len() >= ROWS_PER_GROUP {
            self.write_group()?;
        }
        Ok(())
    }

    /// Ends the file: rows that were missed on the way are counted in its metadata. Returns the number of rows and `out`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self, missed: u64) -> std::result::Result<(u64, W), TraceError> {
        self.write_group()?;
        let key = KeyValue::new(MISSED.to_owned(), missed.to_string());
        self.file.append_key_value_metadata(key);
        Ok((self.written, self.file.into_inner()?))
    }

    /// Rows pushed so far.
    pub fn rows(&self) -> u64 {
        self.written + self.rows.len() as u64
    }

    /// Writes what waits as one row group, one flow after the other.
    fn write_group(&mut self) -> std::result::Result<(), TraceError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let mut order: Vec<u32> = (0..self.rows.len() as u32).collect();
        // Stable: the rows of a flow stay in their order.
        order.sort_by_key(|i| self.rows[*i as usize].flow);
        let mut group = self.file.next_row_group()?;
        let rows = || order.iter().map(|i| &self.rows[*i as usize]);
        for c in COLUMNS {
            let mut out = next(&mut group)?;
            match c.value {
                Value::Flow => words(
                    &mut out,
                    rows().map(|r| &self.flow_names[usize::from(r.flow)]),
                )?,
                Value::Phase => {
                    let mut known = Words::default();
                    words(
                        &mut out,
                        rows()
                            .map(|r| known.of(r.phase_name()))
                            .collect::<Vec<_>>()
                            .iter(),
                    )?;
                }
                Value::Event => {
                    let mut known = EventWords::default();
                    words(
                        &mut out,
                        rows()
                            .map(|r| known.of(r.events))
                            .collect::<Vec<_>>()
                            .iter(),
                    )?;
                }
                Value::Count(get, _) => {
                    let values: Vec<i64> = rows().map(|r| get(r).cast_signed()).collect();
                    integers(&mut out, &values, None)?;
                }
                Value::Nanos { decimals, get, .. } => match self.numbers {
                    Numbers::Decimal => {
                        optional_integers(
                            &mut out,
                            rows().map(|r| get(r).map(|n| self.resolution.of(n))),
                        )?;
                    }
                    Numbers::Double => {
                        let unit = 10f64.powi(i32::from(decimals));
                        doubles(&mut out, rows().map(|r| get(r).map(|n| n as f64 / unit)))?;
                    }
                },
                Value::Number { decimals, get, .. } => match self.numbers {
                    Numbers::Decimal => {
                        optional_integers(&mut out, rows().map(|r| scaled(get(r), decimals)))?
                    }
                    Numbers::Double => doubles(&mut out, rows().map(|r| finite(get(r))))?,
                },
            }
            out.close()?;
        }
        for v in 0..self.variables.len() {
            let mut out = next(&mut group)?;
            let value = |i: &u32| {
                let i = *i as usize;
                let place = self.places[usize::from(self.rows[i].flow)][v];
                place.map_or(f64::NAN, |p| self.values[i * self.width + p])
            };
            match self.numbers {
                Numbers::Decimal => optional_integers(
                    &mut out,
                    order.iter().map(|i| scaled(value(i), VARIABLE_DECIMALS)),
                )?,
                Numbers::Double => doubles(&mut out, order.iter().map(|i| finite(value(i))))?,
            }
            out.close()?;
        }
        group.close()?;
        self.written += self.rows.len() as u64;
        self.rows.clear();
        self.values.clear();
        Ok(())
    }
}

/// Texts that were seen, as the writer takes them: cloning one allocates nothing.
#[derive(Default)]
struct Words(Vec<(&'static str, ByteArray)>);

impl Words {
    fn of(&mut self, text: &'static str) -> ByteArray {
        if let Some((_, word)) = self.0.iter().find(|(t, _)| *t == text) {
            return word.clone();
        }
        let word = ByteArray::from(text);
        self.0.push((text, word.clone()));
        word
    }
}

#[derive(Default)]
struct EventWords(Vec<(Events, ByteArray)>);

impl EventWords {
    fn of(&mut self, events: Events) -> ByteArray {
        if let Some((_, word)) = self.0.iter().find(|(e, _)| *e == events) {
            return word.clone();
        }
        let word = ByteArray::from(events.text().as_str());
        self.0.push((events, word.clone()));
        word
    }
}

fn next<'a, W: Write + Send>(
    group: &'a mut parquet::file::writer::SerializedRowGroupWriter<'_, W>,
) -> Result<SerializedColumnWriter<'a>> {
    Ok(group.next_column()?.expect("as many columns as the schema"))
}

fn words<'a>(
    out: &mut SerializedColumnWriter<'_>,
    values: impl Iterator<Item = &'a ByteArray>,
) -> Result<()> {
    let values: Vec<ByteArray> = values.cloned().collect();
    if let ColumnWriter::ByteArrayColumnWriter(w) = out.untyped() {
        w.write_batch(&values, None, None)?;
    }
    Ok(())
}

fn integers(
    out: &mut SerializedColumnWriter<'_>,
    values: &[i64],
    levels: Option<&[i16]>,
) -> Result<()> {
    if let ColumnWriter::Int64ColumnWriter(w) = out.untyped() {
        w.write_batch(values, levels, None)?;
    }
    Ok(())
}

fn optional_integers(
    out: &mut SerializedColumnWriter<'_>,
    values: impl Iterator<Item = Option<i64>>,
) -> Result<()> {
    let (defined, levels) = split(values);
    integers(out, &defined, Some(&levels))
}

fn doubles(
    out: &mut SerializedColumnWriter<'_>,
    values: impl Iterator<Item = Option<f64>>,
) -> Result<()> {
    let (defined, levels) = split(values);
    if let ColumnWriter::DoubleColumnWriter(w) = out.untyped() {
        w.write_batch(&defined, Some(&levels), None)?;
    }
    Ok(())
}

fn split<T>(values: impl Iterator<Item = Option<T>>) -> (Vec<T>, Vec<i16>) {
    let (mut defined, mut levels) = (Vec::new(), Vec::new());
    for v in values {
        levels.push(i16::from(v.is_some()));
        defined.extend(v);
    }
    (defined, levels)
}

fn finite(x: f64) -> Option<f64> {
    x.is_finite().then_some(x)
}

fn schema(variables: &[String], resolution: Resolution, numbers: Numbers) -> Result<TypePtr> {
    let field = |name: &str, value: Option<Value>| {
        let (physical, optional, decimals) = match value {
            Some(Value::Flow | Value::Phase | Value::Event) => (Physical::BYTE_ARRAY, false, None),
            Some(Value::Count(..)) => (Physical::INT64, false, None),
            Some(Value::Nanos { decimals, .. }) => {
                (Physical::INT64, true, Some(decimals - resolution.dropped()))
            }
            Some(Value::Number { decimals, .. }) => (Physical::INT64, true, Some(decimals)),
            None => (Physical::INT64, true, Some(VARIABLE_DECIMALS)),
        };
        let double = decimals.is_some() && numbers == Numbers::Double;
        let physical = if double { Physical::DOUBLE } else { physical };
        let logical = match (physical, decimals) {
            (Physical::BYTE_ARRAY, _) => Some(LogicalType::String),
            (Physical::INT64, Some(scale)) => Some(LogicalType::Decimal(DecimalType {
                scale: i32::from(scale),
                precision: DIGITS,
            })),
            _ => None,
        };
        let built = Type::primitive_type_builder(name, physical)
            .with_repetition(if optional {
                Repetition::OPTIONAL
            } else {
                Repetition::REQUIRED
            })
            .with_logical_type(logical)
            .with_precision(if decimals.is_some() && !double {
                DIGITS
            } else {
                -1
            })
            .with_scale(match decimals {
                Some(scale) if !double => i32::from(scale),
                _ => -1,
            });
        built.build().map(Arc::new)
    };
    let mut fields = Vec::new();
    for c in COLUMNS {
        fields.push(field(c.name, Some(c.value))?);
    }
    for v in variables {
        fields.push(field(&format!("{VARIABLE}{v}"), None)?);
    }
    Type::group_type_builder("fullpipe")
        .with_fields(fields)
        .build()
        .map(Arc::new)
}

fn metadata(meta: &Meta) -> std::result::Result<Vec<KeyValue>, TraceError> {
    let flows = serde_json::to_string(&meta.flows)
        .map_err(|e| TraceError::Foreign(format!("names that JSON cannot hold: {e}")))?;
    let pairs = [
        (KEY, SCHEMA.to_string()),
        (VERSION, meta.version.clone()),
        (GROUND, meta.ground.clone()),
        (SCENARIO, meta.scenario.clone()),
        (CASE, meta.case.to_string()),
        (SEED, meta.seed.to_string()),
        (FLOWS, flows),
    ];
    Ok(pairs
        .into_iter()
        .map(|(k, v)| KeyValue::new(k.to_owned(), v))
        .collect())
}

/// Keys of the metadata.
pub(crate) const KEY: &str = "fullpipe.trace";
pub(crate) const VERSION: &str = "fullpipe.version";
pub(crate) const GROUND: &str = "fullpipe.ground";
pub(crate) const SCENARIO: &str = "fullpipe.scenario";
pub(crate) const CASE: &str = "fullpipe.case";
pub(crate) const SEED: &str = "fullpipe.seed";
pub(crate) const FLOWS: &str = "fullpipe.flows";
pub(crate) const MISSED: &str = "fullpipe.missed_rows";

/// Rows of a row group: what a writer holds in memory, some 25 MB.
pub const ROWS_PER_GROUP: usize = 1 << 16;
/// Digits of a decimal that is kept in 64 bits.
const DIGITS: i32 = 18;
