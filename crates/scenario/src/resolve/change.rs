//! `[[flow.change]]`: parameters of a running flow, as whole stacks, caps and ceilings in the order
//! of their times.

use fullpipe_cc::StackSpec;
use fullpipe_flow::{Ceiling, Change};
use fullpipe_run::TimedChange;
use fullpipe_units::{Span, Time, WindowSize};

use crate::keys::ChangeTable;
use crate::settings::with_settings;
use crate::value::{At, Findings, Sub};

/// The flow that changes.
pub(super) struct Changes<'a> {
    /// Dotted key of the list.
    pub key: String,
    pub tables: &'a [Sub<ChangeTable>],
    /// First and last time of new data.
    pub sends: (Time, Time),
    /// Stack before the first change.
    pub stack: &'a StackSpec,
}

impl Changes<'_> {
    /// Every change that is possible; `window` makes segments of a size.
    pub fn resolve(
        &self,
        window: impl Fn(WindowSize) -> f64,
        findings: &mut Findings,
    ) -> Vec<TimedChange> {
        let mut tables: Vec<At<'_, ChangeTable>> = Vec::new();
        for (i, table) in self.tables.iter().enumerate() {
            let path = match self.tables.len() {
                1 => self.key.clone(),
                _ => format!("{}[{}]", self.key, i + 1),
            };
            let at = At::<ChangeTable>::new(&table.record, path);
            if at.required_keys(findings) {
                tables.push(at);
            }
        }
        // What a table changes stands on what the earlier ones made.
        tables.sort_by_key(|table| table.at);
        let mut present = self.stack.clone();
        let mut changes = Vec::new();
        for table in &tables {
            let Some(at) = self.time(table, findings) else {
                continue;
            };
            let change = change(table, &present, &window, findings);
            if let Some(stack) = &change.stack {
                present = stack.clone();
            }
            changes.push(TimedChange { at, change });
        }
        changes
    }

    fn time(&self, table: &At<'_, ChangeTable>, findings: &mut Findings) -> Option<Time> {
        let at = Time::ZERO + table.at?;
        let (start, end) = self.sends;
        if at >= start && at < end {
            return Some(at);
        }
        let since = |time: Time| Span::from_nanos(time.as_nanos());
        let message = "the flow does not send at this time";
        let hint = format!("it sends from {} to {}", since(start), since(end));
        table.refuse(findings, &ChangeTable::at, message, hint);
        None
    }
}

fn change(
    table: &At<'_, ChangeTable>,
    present: &StackSpec,
    window: impl Fn(WindowSize) -> f64,
    findings: &mut Findings,
) -> Change {
    type Keys = ChangeTable;
    let all = [Keys::set, Keys::stack, Keys::window, Keys::rate];
    if !all.iter().any(|key| table.is_attempted(key)) {
        let hint = "give `set`, `stack`, `window` or `rate`";
        let message = "nothing says what changes";
        findings.refuse_table(table.record.at, &table.path, message, hint);
    }
    let mut change = Change {
        window: table.window.map(window),
        rate: match (table.is_given(&Keys::rate), table.rate) {
            (true, Some(rate)) => Some(Ceiling::At(rate)),
            (true, None) => Some(Ceiling::Off),
            (false, _) => None,
        },
        ..Change::default()
    };
    if change.window.is_some_and(|segments| segments < 1.0) {
        let hint = "write at least \"1 segment\"";
        let message = "the window is below one segment";
        table.refuse(findings, &Keys::window, message, hint);
    }
    if let Some(stack) = &table.stack {
        match stack.joins_running_flow() {
            Ok(()) => change.stack = Some((**stack).clone()),
            Err(error) => {
                let hint = "leave this part out";
                table.refuse(findings, &Keys::stack, error.to_string(), hint);
            }
        }
    }
    if let Some(settings) = &table.set {
        let base = change.stack.as_ref().unwrap_or(present);
        let (at, key) = (table.record.place(&Keys::set), table.key(&Keys::set));
        let set = with_settings(base, &settings.0, (at, &key), findings);
        change.stack = set.or(change.stack);
    }
    change
}
