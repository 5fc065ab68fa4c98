//! Everything that is wrong with a scenario, in one go: file, line, key, value, and what to write
//! instead.

use std::fmt;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Path of the file, name of a built-in scenario, or `--set` for an override.
    pub file: String,
    /// 1-based line; 0 where there is none (an override, or a file that cannot be read).
    pub line: usize,
    /// 1-based column in characters; 0 where there is none.
    pub column: usize,
    /// Dotted key: `path.rtt`, `flow.main.stack`, `expect[2].where`; empty for the file as a whole.
    pub key: String,
    /// The value as it stands in the file, shortened; `None` where a key is missing or is itself
    /// wrong.
    pub value: Option<String>,
    /// What is wrong: lower case, one line, no full stop.
    pub message: String,
    /// Remedy: text to write instead.
    pub hint: Option<String>,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        f.write_str(": ")?;
        match (&self.value, self.key.is_empty()) {
            (_, true) => {}
            (Some(value), false) => write!(f, "`{} = {value}`: ", self.key)?,
            (None, false) => write!(f, "`{}`: ", self.key)?,
        }
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

/// What is wrong with a scenario, in the order of its lines; never empty when returned as an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, diagnostic) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "error: {diagnostic}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}
