//! `fullpipe config`: defaults of flags, and where each comes from.

use clap::CommandFactory as _;
use serde_json::{Value, json};

use crate::args::{Args, ConfigFlags, ShortFormat};
use crate::config::{Config, Setting, commands, flags};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::table::{Align, Table};

/// Runs the command.
pub fn config(args: &ConfigFlags, config: &Config) -> Result<Exit, Failure> {
    let in_force = config.in_force().into_iter().cloned();
    let mut rows: Vec<Setting> = in_force.collect();
    if args.all {
        let free = built_in().into_iter();
        let free = free.filter(|f| !rows.iter().any(|row| row.path == f.path));
        rows.extend(free.collect::<Vec<_>>());
        rows.sort_by_key(Setting::key);
    }
    output::data(&match args.format {
        ShortFormat::Table => table(&rows, config),
        ShortFormat::Json => json(&rows, config),
    })?;
    Ok(Exit::Ok)
}

/// Every flag with what it is without file and environment.
fn built_in() -> Vec<Setting> {
    let root = Args::command();
    let mut all = Vec::new();
    for (path, command) in commands(&root) {
        for (long, arg) in flags(command) {
            let values = arg.get_default_values().iter();
            let values = values.map(|v| v.to_string_lossy().into_owned());
            all.push(Setting {
                path: [&path[..], &[long.to_owned()]].concat(),
                values: values.collect(),
                from: "built in",
                place: String::new(),
            });
        }
    }
    all
}

fn table(rows: &[Setting], config: &Config) -> String {
    let mut text = match &config.file {
        Some(file) if file.exists() => format!("file: {}\n", file.display()),
        Some(file) => format!("file: {} (not there)\n", file.display()),
        None => "file: none\n".to_owned(),
    };
    if rows.is_empty() {
        return text + "every default is the built-in one\n";
    }
    let mut table = Table::new();
    for head in ["key", "value", "from"] {
        table.column(Align::Left, &[head]);
    }
    for row in rows {
        let value = match row.values.as_slice() {
            [] => "-".to_owned(),
            some => some.join(" "),
        };
        let from = match row.from {
            "built in" => "built in".to_owned(),
            _ => row.place.clone(),
        };
        table.row(vec![row.key(), value, from]);
    }
    text.push('\n');
    text + &table.text()
}

fn json(rows: &[Setting], config: &Config) -> String {
    let settings: Vec<Value> = rows
        .iter()
        .map(|row| {
            let place = (row.from != "built in").then_some(&row.place);
            json!({ "key": row.key(), "values": row.values, "from": row.from, "place": place })
        })
        .collect();
    let value = json!({
        "fullpipe": env!("CARGO_PKG_VERSION"),
        "file": config.file,
        "settings": settings,
    });
    format!("{value:#}\n")
}
