//! A trace as comma-separated values (RFC 4180 with line feeds): the columns and units of
//! docs/trace.md, empty where null.

use std::io::{self, Write};

use fullpipe_trace::{COLUMNS, Trace};
use fullpipe_units::{Span, printed};

use fullpipe_results::capture::thin::thin;
use fullpipe_results::store::{Column, Table};

/// Writes these flows of a trace, one after the other.
///
/// # Errors
/// If `out` refuses.
pub fn write(
    out: &mut dyn Write,
    trace: &Trace,
    flows: &[usize],
    every: Option<Span>,
) -> io::Result<()> {
    let columns = COLUMNS.iter().map(|c| c.name.to_owned());
    let variables = trace.variables.iter().map(|v| format!("var_{}", v.0));
    let header: Vec<String> = columns.chain(variables).collect();
    writeln!(out, "{}", header.join(","))?;
    for &flow in flows {
        let name = trace.meta.flows.get(flow).map_or("", |f| f.name.as_str());
        for kept in thin(trace, flow, every) {
            for (i, column) in COLUMNS.iter().enumerate() {
                let comma = if i == 0 { "" } else { "," };
                write!(out, "{comma}{}", quoted(&column.text(&kept.row, name)))?;
            }
            for (_, values) in &trace.variables {
                match values[kept.at] {
                    v if v.is_finite() => write!(out, ",{}", printed(v))?,
                    _ => write!(out, ",")?,
                }
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

/// Writes these rows of a table.
///
/// # Errors
/// If `out` refuses.
pub fn write_table(
    out: &mut dyn Write,
    table: &Table,
    rows: impl Iterator<Item = usize>,
) -> io::Result<()> {
    let header: Vec<&str> = table
        .columns
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    writeln!(out, "{}", header.join(","))?;
    for row in rows {
        for (i, (_, column)) in table.columns.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            match column {
                Column::Text(values) => write!(out, "{comma}{}", quoted(&values[row]))?,
                Column::Int(values) => write!(out, "{comma}{}", values[row])?,
                Column::Float(values) => match values[row] {
                    Some(x) => write!(out, "{comma}{}", printed(x))?,
                    None => write!(out, "{comma}")?,
                },
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
