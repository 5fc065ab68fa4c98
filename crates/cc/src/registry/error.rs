//! Why a stack's spelling was refused, and what to write instead.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Kind, nearest};
use crate::params::ParamError;

/// Why a stack's spelling was refused. Messages are one line; [`StackError::hint`] says what to
/// write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StackError {
    /// Nothing there.
    #[error("empty stack name")]
    Empty,
    /// Parentheses, `=`, or `+` in the wrong place.
    #[error("stack `{text}` is malformed at column {column}: {why}")]
    Malformed {
        /// The whole spelling.
        text: String,
        /// 1-based.
        column: usize,
        /// Description of the expected token.
        why: &'static str,
    },
    /// No such law, start-up or sending rule.
    #[error("unknown stack component `{name}`")]
    UnknownName {
        /// Name as written in the spelling.
        name: String,
        /// Closest known name.
        nearest: Option<&'static str>,
        /// Every known name.
        known: Vec<&'static str>,
    },
    /// A law or start-up that is well known and not here.
    #[error("`{name}` is not in this version")]
    Absent {
        /// Name as written in the spelling.
        name: String,
        /// Stack that is nearest to it; none where nothing is.
        nearest: Option<&'static str>,
        /// What the two have in common and what they have not, or why none is near.
        why: &'static str,
    },
    /// No such parameter.
    #[error("`{component}` has no parameter `{name}`")]
    UnknownParam {
        /// Component.
        component: &'static str,
        /// Name as written in the spelling.
        name: String,
        /// Closest known name.
        nearest: Option<&'static str>,
        /// Every parameter of the component.
        known: Vec<&'static str>,
    },
    /// The same parameter twice.
    #[error("`{component}` sets `{name}` twice")]
    ParamTwice {
        /// Component.
        component: &'static str,
        /// Parameter.
        name: &'static str,
    },
    /// Not a value of the parameter.
    #[error("`{component}({name})`: {why}")]
    BadValue {
        /// Component.
        component: &'static str,
        /// Parameter.
        name: &'static str,
        /// Why it is refused, as `outside 0.01 to 0.99`.
        why: String,
        /// Range and default of the parameter.
        accepted: String,
    },
    /// Parameters that contradict each other.
    #[error("`{component}`: {why}")]
    Contradiction {
        /// Component.
        component: &'static str,
        /// Sentence.
        why: String,
    },
    /// Two components of one kind, or the law is not first.
    #[error("`{name}` is a {kind}, and the stack {why}")]
    Misplaced {
        /// Component.
        name: &'static str,
        /// Kind of the misplaced component.
        kind: Kind,
        /// Reason in words.
        why: &'static str,
    },
}

impl StackError {
    /// A parameter of `component` was refused.
    pub(super) fn of_param(component: &'static str, error: ParamError) -> Self {
        match error {
            ParamError::Unknown { name, known } => StackError::UnknownParam {
                component,
                nearest: nearest(&name, known.iter().copied()),
                name,
                known,
            },
            ParamError::Twice { name } => StackError::ParamTwice { component, name },
            ParamError::BadValue {
                name,
                why,
                accepted,
            } => StackError::BadValue {
                component,
                name,
                why,
                accepted,
            },
            ParamError::Contradiction { why } => StackError::Contradiction { component, why },
        }
    }

    /// What to write instead, if one can tell.
    pub fn hint(&self) -> Option<String> {
        match self {
            StackError::UnknownName { nearest, known, .. } => Some(match nearest {
                Some(n) => format!("did you mean `{n}`? known: {}", known.join(", ")),
                None => format!("known: {}", known.join(", ")),
            }),
            StackError::Absent { nearest, why, .. } => Some(match nearest {
                Some(nearest) => format!("the closest that is here is `{nearest}`: {why}"),
                None => (*why).to_owned(),
            }),
            StackError::UnknownParam {
                known, component, ..
            } if known.is_empty() => Some(format!("`{component}` takes no parameters")),
            StackError::UnknownParam {
                name, component, ..
            } if symbol(component, name).is_some() => Some(format!(
                "did you mean `{}`, the symbol `{name}` of papers?",
                symbol(component, name).unwrap_or_default()
            )),
            StackError::UnknownParam { nearest, known, .. } => Some(match nearest {
                Some(n) => format!("did you mean `{n}`? known: {}", known.join(", ")),
                None => format!("known: {}", known.join(", ")),
            }),
            StackError::BadValue { name, accepted, .. } => {
                Some(format!("`{name}` takes {accepted}"))
            }
            StackError::Empty => Some("write a window law, for example `cubic`".to_owned()),
            StackError::Malformed { .. } => {
                Some("the form is `law(param=value,...)+startup(...)`".to_owned())
            }
            _ => None,
        }
    }
}

/// The parameter that papers write as a symbol.
fn symbol(component: &str, name: &str) -> Option<&'static str> {
    match (component, name) {
        ("aimd", "a" | "alpha") => Some("increase"),
        ("aimd", "b") => Some("decrease"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::StackSpec;

    #[test]
    fn a_value_that_is_refused_names_the_range() {
        for stack in ["cubic(beta=1.8)", "cubic(beta=)"] {
            let error = StackSpec::parse(stack).unwrap_err();
            let hint = error.hint().unwrap();
            assert!(
                hint.starts_with("`beta` takes 0."),
                "{stack}: {error} {hint}"
            );
            assert!(
                hint.ends_with("fraction; 0.7 without it"),
                "{stack}: {hint}"
            );
        }
    }

    #[test]
    fn symbols_of_papers_are_known() {
        for (stack, wanted) in [("aimd(a=2)", "`increase`"), ("aimd(b=0.3)", "`decrease`")] {
            let hint = StackSpec::parse(stack).unwrap_err().hint().unwrap();
            assert!(hint.contains(wanted), "{stack}: {hint}");
        }
    }
}
