//! Reads a trace file back into rows. Columns are found by name: what is missing keeps its default,
//! what is unknown is passed over.

use std::path::Path;

use bytes::Bytes;
use fullpipe_cc::Phase;
use fullpipe_flow::{Events, TraceRow};
use parquet::basic::LogicalType;
use parquet::column::reader::ColumnReader;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use crate::columns::{COLUMNS, PHASES, VARIABLE, Value, power};
use crate::write::{CASE, ENGINE, FLOWS, GROUND, KEY, MISSED, RUN, SCENARIO, SEED, VERSION};
use crate::{FlowMeta, Meta, SCHEMA, TraceError};

/// A trace in memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// Metadata of the file.
    pub meta: Meta,
    /// Rows that were missed while it was written.
    pub missed: u64,
    /// In the order of the file: of one flow by time.
    pub rows: Vec<TraceRow>,
    /// The controllers' own variables, a value per row; NaN where a flow has none.
    pub variables: Vec<(String, Vec<f64>)>,
}

/// First four bytes of every Parquet file.
const MAGIC: &[u8] = b"PAR1";

impl Trace {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, is damaged, or is no trace.
    pub fn open(path: &Path) -> Result<Trace, TraceError> {
        Trace::parse(std::fs::read(path)?)
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// If they are damaged or no trace.
    pub fn parse(bytes: Vec<u8>) -> Result<Trace, TraceError> {
        if !bytes.starts_with(MAGIC) {
            return Err(TraceError::NotParquet);
        }
        let reader = SerializedFileReader::new(Bytes::from(bytes))?;
        let file = reader.metadata().file_metadata();
        let (meta, missed) = meta(file.key_value_metadata().map_or(&[], Vec::as_slice))?;
        let schema = file.schema_descr_ptr();
        let mut trace = Trace {
            meta,
            missed,
            ..Trace::default()
        };
        for g in 0..reader.num_row_groups() {
            let group = reader.get_row_group(g)?;
            let before = trace.rows.len();
            let rows = usize::try_from(group.metadata().num_rows())
                .map_err(|_| foreign("a negative number of rows"))?;
            // The file's length bounds nothing here: grow as columns come.
            for (i, column) in schema.columns().iter().enumerate() {
                let values = Values::of(group.as_ref(), i, column, rows)?;
                if trace.rows.len() == before {
                    trace.rows.resize(before + rows, TraceRow::default());
                }
                trace.take(before, column.name(), values)?;
            }
        }
        let rows = trace.rows.len();
        for (_, values) in &mut trace.variables {
            values.resize(rows, f64::NAN);
        }
        Ok(trace)
    }

    /// Rows of one flow, with their place in the columns of variables.
    pub fn of_flow(&self, flow: usize) -> impl Iterator<Item = (usize, &TraceRow)> {
        let rows = self.rows.iter().enumerate();
        rows.filter(move |(_, r)| r.flow as usize == flow)
    }

    fn take(&mut self, from: usize, name: &str, values: Values) -> Result<(), TraceError> {
        let rows = &mut self.rows[from..];
        if let Some(variable) = name.strip_prefix(VARIABLE) {
            let column = match self.variables.iter().position(|(n, _)| n == variable) {
                Some(i) => &mut self.variables[i].1,
                None => {
                    self.variables.push((variable.to_owned(), Vec::new()));
                    let last = self.variables.len() - 1;
                    &mut self.variables[last].1
                }
            };
            column.resize(from, f64::NAN);
            column.extend((0..rows.len()).map(|i| values.number(i).unwrap_or(f64::NAN)));
            return Ok(());
        }
        let Some(spec) = COLUMNS.iter().find(|c| c.name == name) else {
            return Ok(());
        };
        // Rows of a flow follow one another: its name is looked up once.
        let mut last = 0;
        for (i, row) in rows.iter_mut().enumerate() {
            match spec.value {
                Value::Flow => {
                    let text = values.text(i)?;
                    let flows = &self.meta.flows;
                    if flows.get(last).is_none_or(|f| f.name != text) {
                        let found = flows.iter().position(|f| f.name == text);
                        last = found.unwrap_or(flows.len());
                    }
                    let flow = Some(last).filter(|at| *at < flows.len());
                    let flow = flow.and_then(|f| u32::try_from(f).ok());
                    row.flow = flow.ok_or_else(|| foreign("a flow that its metadata lacks"))?;
                }
                Value::Phase => (row.phase, row.start_up) = phase(values.text(i)?)?,
                Value::Event => {
                    row.events = Events::parse(values.text(i)?)
                        .ok_or_else(|| foreign("an event of another version"))?;
                }
                Value::Count(field) => {
                    let count = values.number(i).unwrap_or(0.0);
                    let whole = values.integer(i);
                    (field.set)(row, whole.map_or(count as u64, i64::cast_unsigned));
                }
                Value::Nanos(decimals, field) => (field.set)(row, values.nanos(i, decimals)),
                Value::Number(_, field) => {
                    (field.set)(row, values.number(i).unwrap_or(f64::NAN));
                }
            }
        }
        Ok(())
    }
}

/// The values of a column in a row group.
enum Values {
    /// Required as the program writes them; other writers make every column optional.
    Words(Vec<Option<parquet::data_type::ByteArray>>),
    /// With the decimals that the integers have.
    Integers(Vec<Option<i64>>, u8),
    Doubles(Vec<Option<f64>>),
}

impl Values {
    fn of(
        group: &dyn RowGroupReader,
        index: usize,
        column: &ColumnDescriptor,
        rows: usize,
    ) -> Result<Values, TraceError> {
        let optional = column.max_def_level() > 0;
        let decimals = match column.logical_type_ref() {
            Some(LogicalType::Decimal(d)) => u8::try_from(d.scale).unwrap_or(0),
            _ => 0,
        };
        let values = match group.get_column_reader(index)? {
            ColumnReader::ByteArrayColumnReader(mut r) => {
                let (mut values, mut levels) = (Vec::new(), Vec::new());
                r.read_records(rows, optional.then_some(&mut levels), None, &mut values)?;
                Values::Words(spread(values, optional.then_some(levels)))
            }
            ColumnReader::Int64ColumnReader(mut r) => {
                let (mut values, mut levels) = (Vec::new(), Vec::new());
                r.read_records(rows, optional.then_some(&mut levels), None, &mut values)?;
                Values::Integers(spread(values, optional.then_some(levels)), decimals)
            }
            ColumnReader::DoubleColumnReader(mut r) => {
                let (mut values, mut levels) = (Vec::new(), Vec::new());
                r.read_records(rows, optional.then_some(&mut levels), None, &mut values)?;
                Values::Doubles(spread(values, optional.then_some(levels)))
            }
            _ => return Err(foreign("a column of another type")),
        };
        if values.len() != rows {
            return Err(foreign("a column is shorter than its row group"));
        }
        Ok(values)
    }

    fn len(&self) -> usize {
        match self {
            Values::Words(v) => v.len(),
            Values::Integers(v, _) => v.len(),
            Values::Doubles(v) => v.len(),
        }
    }

    fn text(&self, i: usize) -> Result<&str, TraceError> {
        match self {
            Values::Words(v) => {
                let word = v[i]
                    .as_ref()
                    .ok_or_else(|| foreign("null where a word belongs"))?;
                Ok(word.as_utf8()?)
            }
            _ => Err(foreign("numbers where words belong")),
        }
    }

    fn integer(&self, i: usize) -> Option<i64> {
        match self {
            Values::Integers(v, _) => v[i],
            _ => None,
        }
    }

    fn number(&self, i: usize) -> Option<f64> {
        match self {
            Values::Words(_) => None,
            Values::Integers(v, decimals) => v[i].map(|n| n as f64 / power(*decimals)),
            Values::Doubles(v) => v[i],
        }
    }

    /// Of a unit with so many decimals down to the nanosecond.
    fn nanos(&self, i: usize, unit: u8) -> Option<u64> {
        match self {
            Values::Integers(v, decimals) => {
                let n = u64::try_from(v[i]?).unwrap_or(0);
                Some(n.saturating_mul(10u64.pow(u32::from(unit.saturating_sub(*decimals)))))
            }
            _ => Some((self.number(i)? * power(unit)).round() as u64),
        }
    }
}

/// Puts the defined values where the levels say.
fn spread<T>(values: Vec<T>, levels: Option<Vec<i16>>) -> Vec<Option<T>> {
    let Some(levels) = levels else {
        return values.into_iter().map(Some).collect();
    };
    let mut defined = values.into_iter();
    let place = |level: &i16| if *level > 0 { defined.next() } else { None };
    levels.iter().map(place).collect()
}

fn phase(text: &str) -> Result<(Phase, bool), TraceError> {
    let known = PHASES.iter().find(|(name, ..)| *name == text);
    let (_, phase, start_up) = known.ok_or_else(|| foreign("a phase of another version"))?;
    Ok((*phase, *start_up))
}

fn meta(pairs: &[parquet::file::metadata::KeyValue]) -> Result<(Meta, u64), TraceError> {
    let value = |key: &str| {
        let pair = pairs.iter().find(|p| p.key == key);
        pair.and_then(|p| p.value.as_deref())
    };
    let schema = value(KEY).ok_or_else(|| foreign("its metadata does not say so"))?;
    if schema != SCHEMA.to_string() {
        return Err(TraceError::Foreign(format!(
            "version {schema} of the schema; this program reads {SCHEMA}"
        )));
    }
    let text = |key: &str| value(key).unwrap_or_default().to_owned();
    let count = |key: &str| value(key).and_then(|v| v.parse().ok()).unwrap_or(0);
    let flows: Vec<FlowMeta> = serde_json::from_str(value(FLOWS).unwrap_or("[]"))
        .map_err(|e| TraceError::Foreign(format!("its flows: {e}")))?;
    let meta = Meta {
        version: text(VERSION),
        ground: text(GROUND),
        scenario: text(SCENARIO),
        case: count(CASE),
        seed: count(SEED),
        engine: text(ENGINE),
        run: text(RUN),
        flows,
    };
    Ok((meta, count(MISSED)))
}

fn foreign(why: &str) -> TraceError {
    TraceError::Foreign(why.to_owned())
}
