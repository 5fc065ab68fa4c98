//! Column buffers: rows become cells while they are in the cache, cells of a row group become
//! Parquet pages.
//!
//! Parquet wants a group column by column, and a trace comes row by row: passing over all rows of a
//! group once per column costs more than everything else, so a group is kept as columns. The loops
//! here have no call and no division by a variable in them.

use fullpipe_flow::{Events, TraceRow};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::Result;
use parquet::file::writer::SerializedColumnWriter;

use crate::columns::{Field, PHASES, Value, phase_index, power, scaled};
use crate::write::{Numbers, Resolution};

/// The cells of a column, one per row.
#[derive(Debug)]
pub(crate) enum Cells {
    /// What each stands for is in a [`Dictionary`].
    Words(Vec<u32>),
    /// Never null.
    Counts(Vec<i64>),
    /// [`NULL`] for none.
    Integers(Vec<i64>),
    /// NaN for none.
    Doubles(Vec<f64>),
}

/// No number of a trace: decimals have 18 digits, times are positive.
pub(crate) const NULL: i64 = i64::MIN;

impl Cells {
    /// Those of a column, or of a controller's variable.
    pub fn new(value: Option<Value>, numbers: Numbers) -> Cells {
        match (value, numbers) {
            (Some(Value::Flow | Value::Phase | Value::Event), _) => Cells::Words(Vec::new()),
            (Some(Value::Count(_)), _) => Cells::Counts(Vec::new()),
            (_, Numbers::Decimal) => Cells::Integers(Vec::new()),
            (_, Numbers::Double) => Cells::Doubles(Vec::new()),
        }
    }

    /// Appends those of a block of rows.
    pub fn take(&mut self, value: Value, rows: &[TraceRow], by: Resolution, room: &mut Room) {
        match (self, value) {
            (Cells::Words(all), Value::Flow) => all.extend(rows.iter().map(|r| r.flow)),
            (Cells::Words(all), Value::Phase) => {
                all.extend(rows.iter().map(|r| phase_index(r) as u32));
            }
            (Cells::Words(all), Value::Event) => {
                all.extend(rows.iter().map(|r| u32::from(r.events.bits())));
            }
            (Cells::Counts(all), Value::Count(field)) => {
                let counts = read(field, rows, &mut room.counts);
                all.extend(counts.iter().map(|n| n.cast_signed()));
            }
            (Cells::Integers(all), Value::Nanos(_, field)) => {
                let spans = read(field, rows, &mut room.spans);
                let of = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
                // Each with its constant.
                match by {
                    Resolution::Nanoseconds => all.extend(spans.iter().map(|n| n.map_or(NULL, of))),
                    Resolution::Microseconds => {
                        let micros = |n: u64| of(n.saturating_add(500) / 1000);
                        all.extend(spans.iter().map(|n| n.map_or(NULL, micros)));
                    }
                }
            }
            (Cells::Integers(all), Value::Number(decimals, field)) => {
                let power = power(decimals);
                let numbers = read(field, rows, &mut room.numbers);
                all.extend(numbers.iter().map(|x| scaled(*x, power).unwrap_or(NULL)));
            }
            (Cells::Doubles(all), Value::Nanos(decimals, field)) => {
                let power = power(decimals);
                let spans = read(field, rows, &mut room.spans);
                all.extend(
                    spans
                        .iter()
                        .map(|n| n.map_or(f64::NAN, |n| n as f64 / power)),
                );
            }
            (Cells::Doubles(all), Value::Number(_, field)) => {
                all.extend_from_slice(read(field, rows, &mut room.numbers));
            }
            _ => debug_assert!(false, "cells of another kind"),
        }
    }

    /// Appends numbers, kept to so many decimals.
    pub fn take_numbers(&mut self, numbers: impl Iterator<Item = f64>, decimals: u8) {
        match self {
            Cells::Integers(all) => {
                let power = power(decimals);
                all.extend(numbers.map(|x| scaled(x, power).unwrap_or(NULL)));
            }
            Cells::Doubles(all) => all.extend(numbers),
            Cells::Words(_) | Cells::Counts(_) => debug_assert!(false, "numbers are no words"),
        }
    }

    /// Puts them in another order.
    pub fn rearrange(&mut self, order: &[u32]) {
        fn gather<T: Copy>(all: &mut Vec<T>, order: &[u32]) {
            *all = order.iter().map(|i| all[*i as usize]).collect();
        }
        match self {
            Cells::Words(all) => gather(all, order),
            Cells::Counts(all) | Cells::Integers(all) => gather(all, order),
            Cells::Doubles(all) => gather(all, order),
        }
    }

    /// Writes them as a column of a row group and forgets them.
    pub fn write(
        &mut self,
        out: &mut SerializedColumnWriter<'_>,
        dictionary: Option<&mut Dictionary>,
        room: &mut Room,
    ) -> Result<()> {
        match (self, out.untyped()) {
            (Cells::Words(all), ColumnWriter::ByteArrayColumnWriter(out)) => {
                if let Some(dictionary) = dictionary {
                    for run in all.chunk_by(PartialEq::eq) {
                        for part in run.chunks(LONGEST_RUN) {
                            out.write_batch(dictionary.run(run[0], part.len()), None, None)?;
                        }
                    }
                }
                all.clear();
            }
            (Cells::Counts(all), ColumnWriter::Int64ColumnWriter(out)) => {
                out.write_batch(all, None, None)?;
                all.clear();
            }
            (Cells::Integers(all), ColumnWriter::Int64ColumnWriter(out)) => {
                squeeze(all, |n| *n != NULL, &mut room.levels);
                out.write_batch(all, Some(&room.levels), None)?;
                all.clear();
            }
            (Cells::Doubles(all), ColumnWriter::DoubleColumnWriter(out)) => {
                squeeze(all, |x| x.is_finite(), &mut room.levels);
                out.write_batch(all, Some(&room.levels), None)?;
                all.clear();
            }
            _ => debug_assert!(false, "a column of another type"),
        }
        Ok(())
    }
}

/// Drops what is null; fills in the definition levels.
fn squeeze<T>(all: &mut Vec<T>, defined: impl Fn(&T) -> bool, levels: &mut Vec<i16>) {
    levels.clear();
    levels.extend(all.iter().map(|x| i16::from(defined(x))));
    if levels.contains(&0) {
        all.retain(defined);
    }
}

fn read<'a, T>(field: Field<T>, rows: &[TraceRow], room: &'a mut Vec<T>) -> &'a [T] {
    room.clear();
    (field.get_all)(rows, room);
    room
}

/// Room for the values of a block, and for the levels of a column: kept, as memory that comes and
/// goes with every column costs its page faults each time.
#[derive(Debug, Default)]
pub(crate) struct Room {
    counts: Vec<u64>,
    spans: Vec<Option<u64>>,
    numbers: Vec<f64>,
    levels: Vec<i16>,
}

/// What the cells of a column of words stand for, ready to be written.
#[derive(Debug)]
pub(crate) enum Dictionary {
    /// Names of the flows, by index.
    Flows(Vec<Vec<ByteArray>>),
    /// Names of the phases, by index.
    Phases(Vec<Vec<ByteArray>>),
    /// Sets of events that were seen.
    Events(Vec<(u32, Vec<ByteArray>)>),
}

impl Dictionary {
    /// That of a column; `None` if it has no words.
    pub fn of(value: Value, flows: &[&str]) -> Option<Dictionary> {
        let word = |name: &str| vec![ByteArray::from(name)];
        Some(match value {
            Value::Flow => Dictionary::Flows(flows.iter().map(|name| word(name)).collect()),
            Value::Phase => {
                Dictionary::Phases(PHASES.iter().map(|(name, ..)| word(name)).collect())
            }
            Value::Event => Dictionary::Events(Vec::new()),
            Value::Count(_) | Value::Nanos(..) | Value::Number(..) => return None,
        })
    }

    /// A flow more, where it is a dictionary of flows.
    pub fn meet(&mut self, flow: &str) {
        if let Dictionary::Flows(all) = self {
            all.push(vec![ByteArray::from(flow)]);
        }
    }

    /// The word of a cell, `n` times. Words are cloned for their longest run only.
    fn run(&mut self, cell: u32, n: usize) -> &[ByteArray] {
        let words = match self {
            Dictionary::Flows(all) | Dictionary::Phases(all) => &mut all[cell as usize],
            Dictionary::Events(all) => {
                let at = all.iter().position(|(known, _)| *known == cell);
                let at = at.unwrap_or_else(|| {
                    let text = Events::from_bits(cell as u16).text();
                    all.push((cell, vec![ByteArray::from(text.as_str())]));
                    all.len() - 1
                });
                &mut all[at].1
            }
        };
        if words.len() < n {
            let word = words[0].clone();
            words.resize(n, word);
        }
        &words[..n]
    }
}

/// Cells of one word that are written at once.
const LONGEST_RUN: usize = 1024;
