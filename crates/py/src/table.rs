//! Tables for Python.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
};
use arrow_schema::{DataType, Field, Schema};
use fullpipe_results::store::{Column, Table as Columns, quantity, unit_of_all};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};

use crate::error::FullpipeError;

/// A table: named columns of one length.
#[pyclass(frozen, module = "fullpipe._native")]
pub struct Table(pub Columns);

/// A column on its way to NumPy.
#[derive(IntoPyObject)]
enum Raw<'py> {
    /// Little-endian 64-bit values.
    Numbers(Bound<'py, PyBytes>),
    /// Text.
    Text(Vec<String>),
}

/// A column as Python has it.
#[derive(FromPyObject)]
enum Given {
    Numbers(Vec<Option<f64>>),
    Texts(Vec<String>),
}

#[pymethods]
impl Table {
    #[getter]
    fn columns(&self) -> Vec<&str> {
        self.0
            .columns
            .iter()
            .map(|(name, _)| name.as_str())
            .collect()
    }

    fn __len__(&self) -> usize {
        self.0.rows()
    }

    /// `("f8", bytes)`, `("i8", bytes)` or `("text", list)`.
    fn raw<'py>(&self, py: Python<'py>, name: &str) -> PyResult<(&'static str, Raw<'py>)> {
        let Some(column) = self.0.column(name) else {
            return Err(PyKeyError::new_err(name.to_owned()));
        };
        Ok(match column {
            Column::Text(all) => ("text", Raw::Text(all.clone())),
            Column::Int(all) => {
                let bytes: Vec<u8> = all.iter().flat_map(|x| x.to_le_bytes()).collect();
                ("i8", Raw::Numbers(PyBytes::new(py, &bytes)))
            }
            Column::Float(all) => {
                let all = all.iter().map(|x| x.unwrap_or(f64::NAN));
                let bytes: Vec<u8> = all.flat_map(f64::to_le_bytes).collect();
                ("f8", Raw::Numbers(PyBytes::new(py, &bytes)))
            }
        })
    }

    /// Matrix parameters that are quantities as columns of numbers too: `path.rtt` "80ms" gives
    /// `path.rtt_s` 0.08.
    fn with_axes(&self, names: Vec<String>) -> Table {
        let mut table = self.0.clone();
        names.iter().for_each(|name| add_axis(&mut table, name));
        Table(table)
    }

    /// This table with a column more, or another in the place of one of that name.
    fn with_numbers(&self, name: &str, values: Vec<Option<f64>>) -> PyResult<Table> {
        if values.len() != self.0.rows() {
            let (rows, given) = (self.0.rows(), values.len());
            let what = format!("column `{name}` has {given} values and the table {rows} rows");
            return Err(FullpipeError::new_err(what));
        }
        let mut table = self.0.clone();
        table.columns.retain(|(known, _)| known != name);
        table.push(name, Column::Float(values));
        Ok(Table(table))
    }

    /// A table of these columns, texts or numbers.
    #[staticmethod]
    fn of(columns: Vec<(String, Given)>) -> PyResult<Table> {
        let mut table = Columns::default();
        for (name, values) in columns {
            let column = match values {
                Given::Numbers(all) => Column::Float(all),
                Given::Texts(all) => Column::Text(all),
            };
            if !table.columns.is_empty() && table.rows() != column.len() {
                let (rows, given) = (table.rows(), column.len());
                let what = format!("column `{name}` has {given} values and others {rows}");
                return Err(FullpipeError::new_err(what));
            }
            table.push(name, column);
        }
        Ok(Table(table))
    }

    /// The table as a Parquet file, which `from_parquet` reads again.
    fn to_parquet<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.0.to_parquet().map_err(failed)?;
        Ok(PyBytes::new(py, &bytes))
    }

    #[staticmethod]
    fn from_parquet(bytes: Vec<u8>) -> PyResult<Table> {
        Columns::from_parquet(bytes).map(Table).map_err(failed)
    }

    /// The Arrow PyCapsule protocol: pandas, polars, duckdb and pyarrow take it as it is.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol allows to give what there is when another schema is asked for.
        let _ = requested_schema;
        let batch = batch(&self.0).map_err(failed)?;
        let schema = batch.schema();
        let reader = RecordBatchIterator::new([Ok(batch)], schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

/// The numbers of a text column whose values are quantities of one unit.
pub fn add_axis(table: &mut Columns, name: &str) {
    let Some(texts) = table.text(name) else {
        return;
    };
    let Some(unit) = unit_of_all(texts.iter()) else {
        return;
    };
    let numbers = texts.iter().map(|text| Some(quantity(text)?.0));
    let column = Column::Float(numbers.collect());
    let name = format!("{name}_{unit}");
    // The table of a result has it already.
    if table.column(&name).is_none() {
        table.push(name, column);
    }
}

fn failed(error: impl std::fmt::Display) -> PyErr {
    FullpipeError::new_err(error.to_string())
}

fn batch(table: &Columns) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let mut fields = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for (name, column) in &table.columns {
        let (kind, null, array): (_, _, ArrayRef) = match column {
            Column::Text(all) => {
                let array = StringArray::from_iter_values(all);
                (DataType::Utf8, false, Arc::new(array))
            }
            Column::Int(all) => {
                let array = Int64Array::from_iter_values(all.iter().copied());
                (DataType::Int64, false, Arc::new(array))
            }
            Column::Float(all) => {
                let array = Float64Array::from_iter(all.iter().copied());
                (DataType::Float64, true, Arc::new(array))
            }
        };
        fields.push(Field::new(name, kind, null));
        arrays.push(array);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}
