//! What a name on the command line stands for: a built-in scenario or study, or a file.

use std::path::Path;
use std::sync::OnceLock;
use std::{fs, io};

use fullpipe_cc::registry::nearest;

use super::diagnostic::{Diagnostic, Diagnostics};
use super::scenario::{Overrides, Scenario};
use super::study::Study;
use super::{assemble, builtin, study};

/// What a name or a path stands for.
#[derive(Clone, Debug)]
pub enum Loaded {
    /// One scenario.
    Scenario(Box<Scenario>),
    /// Several, with one report.
    Study(Study),
}

/// Reads a scenario or a study. Those of a study are not read, but they are there.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load(name_or_path: &str, overrides: &Overrides) -> Result<Loaded, Diagnostics> {
    let (text, origin) = read(name_or_path)?;
    match study::parse(&text, &origin) {
        Some(study) => Ok(Loaded::Study(study?)),
        None => {
            let scenario = assemble::scenario(&text, &origin, overrides)?;
            Ok(Loaded::Scenario(Box::new(scenario)))
        }
    }
}

/// Text of a built-in scenario or study if `name_or_path` names one, otherwise of a file.
///
/// # Errors
/// There is neither, or it cannot be read.
pub fn text(name_or_path: &str) -> Result<String, Diagnostics> {
    read(name_or_path).map(|(text, _)| text)
}

/// Text of a built-in scenario or study if `name_or_path` names one, of standard input for `-`,
/// otherwise of a file; and where it is from.
pub(super) fn read(name_or_path: &str) -> Result<(String, String), Diagnostics> {
    if let Some(text) = builtin::find(name_or_path) {
        return Ok((text.to_owned(), format!("built-in:{name_or_path}")));
    }
    let unreadable = |message: String, hint: String| {
        Diagnostics(vec![Diagnostic {
            file: name_or_path.to_owned(),
            line: 0,
            column: 0,
            key: String::new(),
            value: None,
            message,
            hint: Some(hint),
        }])
    };
    let near = || {
        (
            nearest_file(name_or_path),
            builtin::nearest_name(name_or_path),
        )
    };
    let known = || match near() {
        (Some(file), _) => format!("did you mean `{file}`?"),
        (_, Some(near)) => format!("did you mean the built-in scenario `{near}`?"),
        (None, None) => format!(
            "built-in scenarios: {}",
            builtin::names().collect::<Vec<_>>().join(", ")
        ),
    };
    let bytes = match name_or_path {
        "-" => standard_input(),
        path => std::fs::read(path),
    };
    let bytes = bytes.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            unreadable("no such file or built-in scenario".to_owned(), known())
        }
        io::ErrorKind::IsADirectory => unreadable(
            "this is a directory, not a scenario".to_owned(),
            "`fullpipe report DIR` and `fullpipe figure DIR` read results".to_owned(),
        ),
        io::ErrorKind::PermissionDenied => unreadable(
            format!("cannot be read: {error}"),
            format!("run as its owner, or: chmod a+r {name_or_path}"),
        ),
        _ => unreadable(format!("cannot be read: {error}"), known()),
    })?;
    let text = String::from_utf8(bytes).map_err(|_| {
        unreadable(
            "not a text file in UTF-8".to_owned(),
            "a scenario is a TOML file".to_owned(),
        )
    })?;
    let origin = match name_or_path {
        "-" => "standard input",
        path => path,
    };
    Ok((text, origin.to_owned()))
}

/// The file beside a path that is not there whose name is nearest to its.
fn nearest_file(path: &str) -> Option<String> {
    let path = Path::new(path);
    let name = path.file_name()?.to_str()?;
    let dir = path.parent()?;
    let beside = match dir.as_os_str().is_empty() {
        true => Path::new("."),
        false => dir,
    };
    let files = fs::read_dir(beside).ok()?.take(MOST_FILES).flatten();
    let names = files.filter_map(|file| file.file_name().into_string().ok());
    let stem = |name: &str| name.strip_suffix(".toml").map(str::to_owned);
    let stems: Vec<String> = names.filter_map(|name| stem(&name)).collect();
    let near = nearest(&stem(name)?, stems.iter().map(String::as_str))?;
    Some(dir.join(format!("{near}.toml")).display().to_string())
}

/// Files that are looked at for the nearest name.
const MOST_FILES: usize = 1000;

/// Everything that comes in, kept: it can be read once, and a scenario is asked for several times.
fn standard_input() -> io::Result<Vec<u8>> {
    static READ: OnceLock<Result<Vec<u8>, (io::ErrorKind, String)>> = OnceLock::new();
    let read = READ.get_or_init(|| {
        let mut bytes = Vec::new();
        let read = io::Read::read_to_end(&mut io::stdin().lock(), &mut bytes);
        read.map_err(|e| (e.kind(), e.to_string())).map(|_| bytes)
    });
    read.clone()
        .map_err(|(kind, what)| io::Error::new(kind, what))
}
