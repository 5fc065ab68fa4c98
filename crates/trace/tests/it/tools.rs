//! Other people's tools read a trace, as docs/trace.md says; the page is made of the tables that
//! the program has.

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;

use fullpipe_trace::columns::{SEGMENT_DECIMALS, VARIABLE_DECIMALS};
use fullpipe_trace::{COLUMNS, Numbers, Resolution, TraceWriter};

use crate::files::{meta, transfer};

fn page() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/trace.md")
}

fn table() -> String {
    let mut t = String::from(
        "| column | unit | meaning | Web100, RFC 4898 | Linux |\n|---|---|---|---|---|\n",
    );
    for c in COLUMNS {
        let code = |s: &str| {
            if s.is_empty() {
                String::new()
            } else {
                format!("`{s}`")
            }
        };
        t += &format!(
            "| `{}` | {} | {} | {} | {} |\n",
            c.name,
            c.unit,
            c.about,
            code(c.web100),
            code(c.linux)
        );
    }
    t + &format!(
        "| `var_NAME` | | the controller's own variables; those of BBR are in [bbr.md](bbr.md) | | |\n\nWindows are kept to {SEGMENT_DECIMALS} decimals, variables to {VARIABLE_DECIMALS}.\n"
    )
}

const BEGIN: &str =
    "<!-- columns: made from the program's table, UPDATE_DOCS=1 cargo test -p fullpipe-trace -->\n";
const END: &str = "<!-- end of columns -->\n";

#[test]
fn the_page_has_the_columns_of_the_program() {
    let text = std::fs::read_to_string(page()).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the mark before the table");
    let (old, after) = rest.split_once(END).expect("the mark behind the table");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(page(), format!("{before}{BEGIN}{}{END}{after}", table())).unwrap();
        return;
    }
    assert_eq!(old, table(), "UPDATE_DOCS=1 cargo test -p fullpipe-trace");
}

/// The snippet of the page that begins after this heading.
fn snippet(heading: &str) -> String {
    let text = std::fs::read_to_string(page()).unwrap();
    let (_, rest) = text.split_once(heading).expect("the heading");
    let (_, rest) = rest.split_once("```python\n").expect("a snippet");
    rest.split_once("```").expect("its end").0.to_owned()
}

#[test]
fn pyarrow_reads_a_trace_as_the_page_says() {
    let run = |code: &str, dir: &std::path::Path| {
        Command::new("python3")
            .arg("-c")
            .arg(code)
            .current_dir(dir)
            .output()
    };
    let dir = tempfile::tempdir().unwrap();
    match run("import pyarrow.parquet", dir.path()) {
        Ok(out) if out.status.success() => {}
        _ => {
            eprintln!("skipped: python3 with pyarrow is missing (pip install pyarrow)");
            return;
        }
    }
    let file = File::create(dir.path().join("trace.parquet")).unwrap();
    let mut writer =
        TraceWriter::new(file, &meta(), Resolution::Microseconds, Numbers::Decimal).unwrap();
    let rows = transfer(1000);
    rows.iter().for_each(|r| writer.push(r, &[1.5]).unwrap());
    writer.finish(0).unwrap();
    let code = snippet("### Python");
    let check = "
assert table.num_rows == 1000, table.num_rows
row = table.slice(999, 1).to_pylist()[0]
assert row['flow'] == 'main' and row['event'] == 'ack', row
assert row['phase'] == 'congestion-avoidance', row
assert abs(row['time_s'] - 23e-6 * 999) < 20e-6, row
assert 80.0 <= row['rtt_ms'] < 80.1 and row['delivered_segments'] == 1998, row
assert row['var_w_max'] == 1.5 and row['var_k'] is None, row
assert about['fullpipe.ground'] == 'udp' and about['fullpipe.seed'] == '7', about
";
    let out = run(&format!("{code}{check}"), dir.path()).unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
}
