//! Writes rows into Parquet. The bytes depend on the rows and the metadata alone: no time of
//! creation, one writer name.
//!
//! Encodings: counts and decimals as deltas (`DELTA_BINARY_PACKED`), words by dictionary, snappy
//! over both. Measured against zstd level 3: 8 % more bytes, no C library.
//!
//! Rows become columns in [`cells`](crate::cells), block by block.

use std::io::Write;
use std::sync::Arc;

use fullpipe_flow::TraceRow;
use parquet::basic::{
    Compression, DecimalType, Encoding, LogicalType, Repetition, Type as Physical,
};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};

use crate::cells::{Cells, Dictionary, Room};
use crate::columns::{COLUMNS, VARIABLE, VARIABLE_DECIMALS, Value};
use crate::{FlowMeta, Meta, SCHEMA, TraceError};

/// Resolution of the time column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resolution {
    /// Nanoseconds, as in virtual time.
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
    /// Buffers of [`COLUMNS`], then of variables.
    cells: Vec<Cells>,
    /// Of [`COLUMNS`]; `None` where there are no words.
    dictionaries: Vec<Option<Dictionary>>,
    room: Room,
    /// Of the flows at the beginning, in the order of their columns.
    variables: Vec<String>,
    /// Per column of a variable and flow: where the flow reports it.
    places: Vec<Vec<Option<usize>>>,
    flows: Vec<FlowMeta>,
    /// Rows that are no cells yet.
    block: Vec<TraceRow>,
    /// As many values as `width` per row of the block.
    values: Vec<f64>,
    width: usize,
    /// Rows that are cells, and rows in groups.
    waiting: usize,
    written: u64,
}

impl<W: Write + Send> std::fmt::Debug for TraceWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceWriter")
            .field("written", &self.written)
            .field("waiting", &(self.waiting + self.block.len()))
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
        let places = variables.iter().map(|v| {
            let place = |f: &FlowMeta| f.variables.iter().position(|n| n == v);
            meta.flows.iter().map(place).collect()
        });
        let width = meta.flows.iter().map(|f| f.variables.len()).max();
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("fullpipe {}", meta.version))
            .set_statistics_enabled(EnabledStatistics::None)
            .set_offset_index_disabled(true)
            .set_dictionary_enabled(false)
            .set_key_value_metadata(Some(metadata(meta)));
        for c in COLUMNS {
            let path = ColumnPath::from(c.name);
            if c.name == SEARCHED {
                let chunk = EnabledStatistics::Chunk;
                properties = properties.set_column_statistics_enabled(path.clone(), chunk);
            }
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
        let names: Vec<&str> = meta.flows.iter().map(|f| f.name.as_str()).collect();
        let schema = schema(&variables, resolution, numbers)?;
        Ok(Self {
            file: SerializedFileWriter::new(out, schema, Arc::new(properties.build()))?,
            resolution,
            cells: COLUMNS
                .iter()
                .map(|c| Some(c.value))
                .chain(variables.iter().map(|_| None))
                .map(|value| Cells::new(value, numbers))
                .collect(),
            dictionaries: COLUMNS
                .iter()
                .map(|c| Dictionary::of(c.value, &names))
                .collect(),
            room: Room::default(),
            places: places.collect(),
            variables,
            flows: meta.flows.clone(),
            block: Vec::new(),
            values: Vec::new(),
            width: width.unwrap_or(0),
            waiting: 0,
            written: 0,
        })
    }

    /// A flow that was not known at the beginning; its rows have this index. Of its variables those
    /// are kept that a flow of the beginning has too: columns do not grow.
    pub fn meet(&mut self, flow: FlowMeta) -> u32 {
        for (places, name) in self.places.iter_mut().zip(&self.variables) {
            let place = flow.variables.iter().position(|n| n == name);
            places.push(place.filter(|place| *place < self.width));
        }
        for dictionary in self.dictionaries.iter_mut().flatten() {
            dictionary.meet(&flow.name);
        }
        self.flows.push(flow);
        self.flows.len() as u32 - 1
    }

    /// The flow of this index had these stacks, which nobody knew at the beginning.
    pub fn name_stack(&mut self, flow: u32, stack: String) {
        if let Some(known) = self.flows.get_mut(flow as usize) {
            known.stack = stack;
        }
    }

    /// Adds a row, with the values of its flow's variables in the order of the metadata; those that
    /// are missing are null. A row of a flow that the metadata does not know is left out.
    ///
    /// # Errors
    /// If the file cannot be written.
    #[inline]
    pub fn push(
        &mut self,
        row: &TraceRow,
        variables: &[f64],
    ) -> std::result::Result<(), TraceError> {
        if row.flow as usize >= self.flows.len() {
            return Ok(());
        }
        self.block.push(*row);
        let n = variables.len().min(self.width);
        self.values.extend_from_slice(&variables[..n]);
        self.values.resize(self.block.len() * self.width, f64::NAN);
        if self.block.len() >= ROWS_PER_BLOCK {
            self.end_block();
            if self.waiting >= ROWS_PER_GROUP {
                self.write_group()?;
            }
        }
        Ok(())
    }

    /// Ends the file: rows that were missed on the way are counted in its metadata. Returns the
    /// number of rows and `out`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self, missed: u64) -> std::result::Result<(u64, W), TraceError> {
        self.end_block();
        self.write_group()?;
        let flows = serde_json::to_string(&self.flows)
            .map_err(|e| TraceError::Foreign(format!("names that JSON cannot hold: {e}")))?;
        let key = KeyValue::new(FLOWS.to_owned(), flows);
        self.file.append_key_value_metadata(key);
        let key = KeyValue::new(MISSED.to_owned(), missed.to_string());
        self.file.append_key_value_metadata(key);
        Ok((self.written, self.file.into_inner()?))
    }

    /// Rows pushed so far.
    pub fn rows(&self) -> u64 {
        self.written + (self.waiting + self.block.len()) as u64
    }

    /// Rows of the block become cells.
    fn end_block(&mut self) {
        let (of_columns, of_variables) = self.cells.split_at_mut(COLUMNS.len());
        for (cells, c) in of_columns.iter_mut().zip(COLUMNS) {
            cells.take(c.value, &self.block, self.resolution, &mut self.room);
        }
        for (cells, places) in of_variables.iter_mut().zip(&self.places) {
            let rows = self.block.iter().zip(self.values.chunks(self.width));
            let value = |(row, values): (&TraceRow, &[f64])| {
                places[row.flow as usize].map_or(f64::NAN, |place| values[place])
            };
            cells.take_numbers(rows.map(value), VARIABLE_DECIMALS);
        }
        self.waiting += self.block.len();
        self.block.clear();
        self.values.clear();
    }

    /// Writes the cells as one row group, one flow after the other.
    fn write_group(&mut self) -> std::result::Result<(), TraceError> {
        if self.waiting == 0 {
            return Ok(());
        }
        if let Some(order) = self.order() {
            self.cells.iter_mut().for_each(|c| c.rearrange(&order));
        }
        let mut group = self.file.next_row_group()?;
        let dictionaries = self.dictionaries.iter_mut().map(Option::as_mut);
        let dictionaries = dictionaries.chain(std::iter::repeat_with(|| None));
        for (cells, dictionary) in self.cells.iter_mut().zip(dictionaries) {
            let mut out = next(&mut group)?;
            cells.write(&mut out, dictionary, &mut self.room)?;
            out.close()?;
        }
        group.close()?;
        self.written += self.waiting as u64;
        self.waiting = 0;
        Ok(())
    }

    /// The order of the rows by flow; `None` if they are in it.
    fn order(&self) -> Option<Vec<u32>> {
        let of_flows = COLUMNS.iter().position(|c| matches!(c.value, Value::Flow));
        let Some(Cells::Words(flows)) = of_flows.map(|i| &self.cells[i]) else {
            return None;
        };
        if flows.is_sorted() {
            return None;
        }
        let mut order: Vec<u32> = (0..flows.len() as u32).collect();
        // Stable: the rows of a flow stay in their order.
        order.sort_by_key(|i| flows[*i as usize]);
        Some(order)
    }
}

fn next<'a, W: Write + Send>(
    group: &'a mut parquet::file::writer::SerializedRowGroupWriter<'_, W>,
) -> Result<SerializedColumnWriter<'a>> {
    Ok(group.next_column()?.expect("as many columns as the schema"))
}

fn schema(variables: &[String], resolution: Resolution, numbers: Numbers) -> Result<TypePtr> {
    let field = |name: &str, value: Option<Value>| {
        let (physical, optional, decimals) = match value {
            Some(Value::Flow | Value::Phase | Value::Event) => (Physical::BYTE_ARRAY, false, None),
            Some(Value::Count(..)) => (Physical::INT64, false, None),
            Some(Value::Nanos(decimals, _)) => {
                (Physical::INT64, true, Some(decimals - resolution.dropped()))
            }
            Some(Value::Number(decimals, _)) => (Physical::INT64, true, Some(decimals)),
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

/// All but the flows, which are known at the end.
fn metadata(meta: &Meta) -> Vec<KeyValue> {
    let with_unit = COLUMNS.iter().filter(|c| !c.unit.is_empty());
    let units = with_unit.map(|c| (c.name.to_owned(), c.unit.into()));
    let units = serde_json::Value::Object(units.collect()).to_string();
    let own = [(KEY, SCHEMA.to_string()), (UNITS, units)];
    let pairs = own.into_iter().chain(meta.origin());
    pairs.map(|(k, v)| KeyValue::new(k.to_owned(), v)).collect()
}

impl Meta {
    /// Where a file of a run is from, as keys and values of its metadata.
    pub fn origin(&self) -> Vec<(&'static str, String)> {
        let known = |key, value: &String| (!value.is_empty()).then(|| (key, value.clone()));
        let made = [known(ENGINE, &self.engine), known(RUN, &self.run)];
        let all = [
            (VERSION, self.version.clone()),
            (GROUND, self.ground.clone()),
            (SCENARIO, self.scenario.clone()),
            (CASE, self.case.to_string()),
            (SEED, self.seed.to_string()),
        ];
        all.into_iter().chain(made.into_iter().flatten()).collect()
    }
}

/// Keys of the metadata.
pub(crate) const KEY: &str = "fullpipe.trace";
/// Version of the program.
pub const VERSION: &str = "fullpipe.version";
/// Ground of a run.
pub const GROUND: &str = "fullpipe.ground";
/// Name of a scenario.
pub const SCENARIO: &str = "fullpipe.scenario";
/// Fingerprint of the sources that made a run.
pub const ENGINE: &str = "fullpipe.engine";
/// A JSON object with the unit of every column that has one.
pub const UNITS: &str = "fullpipe.units";
pub(crate) const CASE: &str = "fullpipe.case";
pub(crate) const SEED: &str = "fullpipe.seed";
pub(crate) const RUN: &str = "fullpipe.run";
pub(crate) const FLOWS: &str = "fullpipe.flows";
pub(crate) const MISSED: &str = "fullpipe.missed_rows";

/// Rows that become cells together: what the first cache holds.
const ROWS_PER_BLOCK: usize = 256;
/// The column by which readers pick row groups: it alone has statistics.
const SEARCHED: &str = "time_s";
/// Rows of a row group: what a writer holds in memory, some 15 MB.
pub const ROWS_PER_GROUP: usize = 1 << 16;
/// Digits of a decimal that is kept in 64 bits.
const DIGITS: i32 = 18;
