//! What a kernel showed of the senders of a run, as a table: name of the flow, time, and each
//! number under the kernel's name. Numbers are integers with delta encoding, null where the kernel
//! has none; what never changes takes next to no room.

use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;

use fullpipe_run::{FlowOutcome, LookField};
use fullpipe_trace::UNITS;
use fullpipe_units::Time;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{
    SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter,
};
use parquet::schema::types::{ColumnPath, Type};

use super::columns::Origin;
use crate::result::VERSION;

/// The looks at all flows, one flow after the other; `kept`: which of a flow's are in the table,
/// `None`: all. No table where nobody looked.
pub(super) fn table(
    flows: &[FlowOutcome],
    kept: &dyn Fn(&FlowOutcome) -> Option<BTreeSet<usize>>,
    origin: &Origin,
) -> Result<Option<Vec<u8>>> {
    // Of one kernel, and so of equal fields.
    let Some(first) = flows.iter().find(|f| !f.looks.is_empty()) else {
        return Ok(None);
    };
    let mut group = Group::begin(first.looks.fields(), origin)?;
    for f in flows {
        let kept = kept(f);
        let looks = f.looks.iter().enumerate();
        for (_, (at, values)) in looks.filter(|(i, _)| kept.as_ref().is_none_or(|k| k.contains(i)))
        {
            group.push(&f.name, at, &values)?;
        }
    }
    group.finish().map(Some)
}

/// Rows that become a row group together.
struct Group {
    file: SerializedFileWriter<Vec<u8>>,
    names: Vec<ByteArray>,
    times: Vec<f64>,
    numbers: Vec<(Vec<i64>, Vec<i16>)>,
}

impl Group {
    fn begin(fields: &[LookField], origin: &Origin) -> Result<Self> {
        let column = |name: &str, physical, (optional, text)| {
            let repetition = match optional {
                true => Repetition::OPTIONAL,
                false => Repetition::REQUIRED,
            };
            let built = Type::primitive_type_builder(name, physical)
                .with_repetition(repetition)
                .with_logical_type(Some(LogicalType::String).filter(|_| text));
            built.build().map(Arc::new)
        };
        let mut columns = vec![
            column(FLOW, Physical::BYTE_ARRAY, (false, true))?,
            column(TIME, Physical::DOUBLE, (true, false))?,
        ];
        let mut units = serde_json::Map::from_iter([(TIME.to_owned(), "s".into())]);
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("fullpipe {VERSION}"))
            .set_statistics_enabled(EnabledStatistics::Chunk);
        for f in fields {
            columns.push(column(f.name, Physical::INT64, (true, false))?);
            if !f.unit.is_empty() {
                units.insert(f.name.to_owned(), f.unit.into());
            }
            let path = ColumnPath::from(f.name);
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
        let units = (UNITS, serde_json::Value::Object(units).to_string());
        let pairs = origin.iter().chain([&units]);
        let pairs = pairs.map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone()));
        let properties = properties.set_key_value_metadata(Some(pairs.collect()));
        let schema = Type::group_type_builder("fullpipe").with_fields(columns);
        let schema = Arc::new(schema.build()?);
        Ok(Self {
            file: SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build()))?,
            names: Vec::new(),
            times: Vec::new(),
            numbers: vec![Default::default(); fields.len()],
        })
    }

    fn push(&mut self, name: &str, at: Time, values: &[Option<u64>]) -> Result<()> {
        self.names.push(match self.names.last() {
            Some(last) if last.data() == name.as_bytes() => last.clone(),
            _ => name.into(),
        });
        self.times.push(at.as_secs_f64());
        for ((numbers, levels), value) in self.numbers.iter_mut().zip(values) {
            levels.push(i16::from(value.is_some()));
            numbers.extend(value.map(|n| i64::try_from(n).unwrap_or(i64::MAX)));
        }
        match self.names.len() {
            ROWS_PER_GROUP => self.write(),
            _ => Ok(()),
        }
    }

    fn write(&mut self) -> Result<()> {
        let mut group = self.file.next_row_group()?;
        let mut out = next(&mut group)?;
        let names = mem::take(&mut self.names);
        out.typed::<ByteArrayType>()
            .write_batch(&names, None, None)?;
        out.close()?;
        let mut out = next(&mut group)?;
        let times = mem::take(&mut self.times);
        let levels = vec![1; times.len()];
        out.typed::<DoubleType>()
            .write_batch(&times, Some(&levels), None)?;
        out.close()?;
        for (numbers, levels) in &mut self.numbers {
            let mut out = next(&mut group)?;
            out.typed::<Int64Type>()
                .write_batch(numbers, Some(levels), None)?;
            out.close()?;
            numbers.clear();
            levels.clear();
        }
        group.close()?;
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<u8>> {
        if !self.names.is_empty() {
            self.write()?;
        }
        self.file.into_inner()
    }
}

fn next<'a>(
    group: &'a mut SerializedRowGroupWriter<'_, Vec<u8>>,
) -> Result<SerializedColumnWriter<'a>> {
    Ok(group.next_column()?.expect("as many columns as the schema"))
}

const FLOW: &str = "flow";
const TIME: &str = "time_s";

/// 10 bytes for each of 61 numbers: 10 MB.
const ROWS_PER_GROUP: usize = 1 << 14;
