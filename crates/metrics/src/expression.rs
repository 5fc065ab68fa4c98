//! Own metrics: arithmetic over the metrics of one run, as `utilization - 0.1 * rtt_inflation`.

use std::fmt;

use crate::metric::{Scope, UNBOUNDED};
use crate::table::{find, names, scope_of};

/// An arithmetic expression over metrics. A metric's name alone is one, too.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    root: Term,
}

#[derive(Clone, Debug, PartialEq)]
enum Term {
    Number(f64),
    Metric(String),
    Negative(Box<Term>),
    Binary(char, Box<[Term; 2]>),
    Call(&'static str, Vec<Term>),
}

/// A fault of an expression, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    /// Where, in bytes from its beginning.
    pub at: usize,
    /// In words, without the place.
    pub message: String,
    /// The remedy, if there is one to name.
    pub hint: Option<String>,
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.at + 1, self.message)
    }
}

impl std::error::Error for ExpressionError {}

impl Expression {
    /// Reads an expression: numbers, metrics, `+ - * /`, brackets, `min`, `max`, `abs`, `sqrt`,
    /// `log10`. At most 1,000 bytes and 50 brackets and signs within one another: the text may be a
    /// stranger's, and both reading and computing recurse.
    ///
    /// # Errors
    /// Where it is wrong, and how to mend it.
    pub fn parse(text: &str) -> Result<Expression, ExpressionError> {
        let mut parser = Parser {
            text,
            at: 0,
            depth: 0,
        };
        if text.len() > MOST_BYTES {
            parser.at = MOST_BYTES;
            return Err(parser.error(format!("more than {MOST_BYTES} bytes"), None));
        }
        let root = parser.sum()?;
        match parser.peek() {
            None => Ok(Expression { root }),
            Some(c) => Err(parser.error(format!("`{c}` after the end"), None)),
        }
    }

    /// True if the text is a computation and not the name of a metric.
    pub fn is_one(text: &str) -> bool {
        scope_of(text).is_none() && Expression::parse(text).is_ok()
    }

    /// The metrics in it, each once, in order.
    pub fn metrics(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.root.collect(&mut names);
        names
    }

    /// The metric with which the value rises, if it is the only one in it and the value rises with
    /// it wherever it stands: of `1000 * rtt_ms.mean + 1`, not of `1 / rtt_ms.mean`.
    pub fn rises_with(&self) -> Option<&str> {
        match self.metrics().as_slice() {
            [only] if self.root.course() == Some(Course::Rising) => Some(only),
            _ => None,
        }
    }

    /// What its value is of: a flow or traffic if any of its metrics is, otherwise a link if any
    /// is, otherwise the case.
    pub fn scope(&self) -> Scope {
        let scopes = || self.metrics().into_iter().filter_map(scope_of);
        let order = [Scope::Flow, Scope::Traffic, Scope::Link];
        let first = order.into_iter().find(|s| scopes().any(|t| t == *s));
        first.unwrap_or(Scope::Case)
    }

    /// Its value, from the values of metrics; `None` where one of them or the result is undefined.
    pub fn value(&self, of: &mut dyn FnMut(&str) -> Option<f64>) -> Option<f64> {
        self.root.value(of).filter(|v| v.is_finite())
    }
}

/// How a term moves where its only metric rises.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Course {
    Constant,
    Rising,
    Falling,
}

impl Course {
    fn reversed(self) -> Self {
        match self {
            Course::Constant => Course::Constant,
            Course::Rising => Course::Falling,
            Course::Falling => Course::Rising,
        }
    }

    /// Of a sum, or of the smallest or largest of both; `None` where they move against each other.
    fn with(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Course::Constant, course) | (course, Course::Constant) => Some(course),
            (a, b) => (a == b).then_some(a),
        }
    }
}

impl Term {
    /// `None` where that depends on the metric's value.
    fn course(&self) -> Option<Course> {
        match self {
            Term::Number(_) => Some(Course::Constant),
            Term::Metric(_) => Some(Course::Rising),
            Term::Negative(term) => Some(term.course()?.reversed()),
            Term::Binary(sign, both) => {
                let [a, b] = &**both;
                let (left, right) = (a.course()?, b.course()?);
                match (sign, left, right) {
                    ('+', ..) => left.with(right),
                    ('-', ..) => left.with(right.reversed()),
                    (_, _, Course::Constant) => b.scales(left),
                    ('*', Course::Constant, _) => a.scales(right),
                    _ => None,
                }
            }
            Term::Call("abs", terms) => {
                let is_constant = terms.iter().all(|t| t.course() == Some(Course::Constant));
                is_constant.then_some(Course::Constant)
            }
            Term::Call(_, terms) => {
                let mut courses = terms.iter().map(Term::course);
                courses.try_fold(Course::Constant, |all, course| all.with(course?))
            }
        }
    }

    /// The course of something times this constant, or divided by it.
    fn scales(&self, course: Course) -> Option<Course> {
        match self.value(&mut |_| None)? {
            factor if factor > 0.0 => Some(course),
            factor if factor < 0.0 => Some(course.reversed()),
            _ => None,
        }
    }

    fn collect<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Term::Number(_) => {}
            Term::Metric(name) => {
                if !names.contains(&name.as_str()) {
                    names.push(name);
                }
            }
            Term::Negative(term) => term.collect(names),
            Term::Binary(_, both) => both.iter().for_each(|t| t.collect(names)),
            Term::Call(_, terms) => terms.iter().for_each(|t| t.collect(names)),
        }
    }

    fn value(&self, of: &mut dyn FnMut(&str) -> Option<f64>) -> Option<f64> {
        Some(match self {
            Term::Number(x) => *x,
            Term::Metric(name) => of(name)?,
            Term::Negative(term) => -term.value(of)?,
            Term::Binary(sign, both) => {
                let (a, b) = (both[0].value(of)?, both[1].value(of)?);
                match sign {
                    '+' => a + b,
                    '-' => a - b,
                    '*' => a * b,
                    _ => a / b,
                }
            }
            Term::Call(name, terms) => {
                let values: Option<Vec<f64>> = terms.iter().map(|t| t.value(of)).collect();
                let values = values?;
                let first = values.first().copied()?;
                match *name {
                    "min" => values.into_iter().fold(first, f64::min),
                    "max" => values.into_iter().fold(first, f64::max),
                    "abs" => first.abs(),
                    "sqrt" => first.sqrt(),
                    _ => libm::log10(first),
                }
            }
        })
    }
}

/// Longest expression, and so the longest chain of terms.
const MOST_BYTES: usize = 1000;
/// Deepest nesting.
const MOST_DEPTH: usize = 50;

struct Parser<'a> {
    text: &'a str,
    at: usize,
    /// Brackets and signs around this place.
    depth: usize,
}

impl Parser<'_> {
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    fn take(&mut self, wanted: &[char]) -> Option<char> {
        let c = self.peek().filter(|c| wanted.contains(c))?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn error(&self, message: String, hint: Option<String>) -> ExpressionError {
        ExpressionError {
            at: self.at,
            message,
            hint,
        }
    }

    fn sum(&mut self) -> Result<Term, ExpressionError> {
        let mut term = self.product()?;
        while let Some(sign) = self.take(&['+', '-']) {
            term = Term::Binary(sign, Box::new([term, self.product()?]));
        }
        Ok(term)
    }

    fn product(&mut self) -> Result<Term, ExpressionError> {
        let mut term = self.factor()?;
        while let Some(sign) = self.take(&['*', '/']) {
            self.peek();
            let start = self.at;
            let factor = self.factor()?;
            // Without metrics it is known now.
            if sign == '/' && factor.value(&mut |_| None) == Some(0.0) {
                self.at = start;
                let hint = "the divisor is zero whatever the metrics are".to_owned();
                return Err(self.error("division by zero".to_owned(), Some(hint)));
            }
            term = Term::Binary(sign, Box::new([term, factor]));
        }
        Ok(term)
    }

    fn factor(&mut self) -> Result<Term, ExpressionError> {
        if self.depth == MOST_DEPTH {
            return Err(self.error(format!("more than {MOST_DEPTH} within one another"), None));
        }
        self.depth += 1;
        let factor = self.nested();
        self.depth -= 1;
        factor
    }

    fn nested(&mut self) -> Result<Term, ExpressionError> {
        if self.take(&['-']).is_some() {
            return Ok(Term::Negative(Box::new(self.factor()?)));
        }
        if self.take(&['(']).is_some() {
            let term = self.sum()?;
            self.close()?;
            return Ok(term);
        }
        match self.peek() {
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_ascii_alphabetic() => self.name(),
            Some(c) => Err(self.error(
                format!("`{c}` where a number or a metric is expected"),
                Some("there are + - * / ( ), min, max, abs, sqrt and log10".to_owned()),
            )),
            None => Err(self.error("a number or a metric is missing".to_owned(), None)),
        }
    }

    fn close(&mut self) -> Result<(), ExpressionError> {
        match self.take(&[')']) {
            Some(_) => Ok(()),
            None => Err(self.error("`)` is missing".to_owned(), None)),
        }
    }

    fn number(&mut self) -> Result<Term, ExpressionError> {
        let rest = &self.text[self.at..];
        let mut end = 0;
        let mut before = ' ';
        for c in rest.chars() {
            let exponent = matches!(before, 'e' | 'E') && matches!(c, '+' | '-');
            if !(c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E') || exponent) {
                break;
            }
            end += 1;
            before = c;
        }
        let number = rest[..end].parse();
        let number =
            number.map_err(|_| self.error(format!("`{}` is no number", &rest[..end]), None))?;
        self.at += end;
        Ok(Term::Number(number))
    }

    fn name(&mut self) -> Result<Term, ExpressionError> {
        let rest = &self.text[self.at..];
        let ends = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
        let name = &rest[..rest.find(ends).unwrap_or(rest.len())];
        let start = self.at;
        self.at += name.len();
        if let Some((function, count)) = FUNCTIONS.iter().find(|(f, _)| *f == name)
            && self.take(&['(']).is_some()
        {
            let mut terms = vec![self.sum()?];
            while self.take(&[',']).is_some() {
                terms.push(self.sum()?);
            }
            self.close()?;
            if *count != 0 && terms.len() != *count {
                self.at = start;
                return Err(self.error(format!("`{name}` takes one value"), None));
            }
            return Ok(Term::Call(function, terms));
        }
        if scope_of(name).is_none() {
            self.at = start;
            let hint = nearest(name).map(|near| format!("did you mean `{near}`?"));
            let all = || "`fullpipe list metrics` shows all".to_owned();
            return Err(self.error(
                format!("unknown metric `{name}`"),
                Some(hint.unwrap_or_else(all)),
            ));
        }
        Ok(Term::Metric(name.to_owned()))
    }
}

/// The metric that papers or other tools call so.
pub fn called_otherwise(name: &str) -> Option<&'static str> {
    let lower = name.to_lowercase();
    let mut all = OTHER_WORDS.iter();
    let other = all.find(|(words, _)| words.contains(&lower.as_str()));
    other.map(|(_, metric)| *metric)
}

/// The metric that was probably meant: one that others call so, that contains the word, or that
/// begins like it.
pub fn nearest(name: &str) -> Option<&'static str> {
    if let Some(metric) = called_otherwise(name) {
        return Some(metric);
    }
    if name.len() < 4 {
        return None;
    }
    let begins = |n: &str| {
        n.bytes()
            .zip(name.bytes())
            .take_while(|(a, b)| a == b)
            .count()
    };
    let within = names().find(|n| n.contains(name) || name.contains(n));
    within.or_else(|| {
        let best = names().max_by_key(|n| begins(n))?;
        (begins(best) >= 4).then_some(best)
    })
}

/// What a metric or an expression is of; `None` if it is neither.
pub fn scope(metric: &str) -> Option<Scope> {
    scope_of(metric).or_else(|| Some(Expression::parse(metric).ok()?.scope()))
}

/// The unit of a metric; nothing of an expression.
pub fn unit(metric: &str) -> &'static str {
    let scope = scope_of(metric);
    scope.and_then(|s| find(s, metric)).map_or("", |m| m.unit)
}

/// Least and most that a metric can be; an expression may be anything.
pub fn range(metric: &str) -> [f64; 2] {
    let scope = scope_of(metric);
    scope
        .and_then(|s| find(s, metric))
        .map_or(UNBOUNDED, |m| m.range)
}

/// Words of papers and of other tools, and the metrics that say the same.
const OTHER_WORDS: &[(&[&str], &str)] = &[
    (
        &["rtt", "latency", "delay", "mean_rtt", "avg_rtt"],
        "rtt_ms.mean",
    ),
    (&["bandwidth", "bitrate", "rate", "tput"], "goodput_mbps"),
    (&["fairness", "jain_index", "jains_index"], "jain"),
    (
        &["fct", "completion_time", "flow_completion_time"],
        "completion_time_s",
    ),
    (&["cwnd", "window"], "cwnd_segments.mean"),
    (&["losses", "loss_ratio", "plr"], "loss_rate"),
    (
        &["retransmissions", "retrans", "retr", "rexmit"],
        "retransmits",
    ),
    (
        &["queue", "queue_length", "qlen", "backlog"],
        "queue_packets.mean",
    ),
    (&["link_utilization", "util", "efficiency"], "utilization"),
];

/// Functions, and how many values they take; 0: any number.
const FUNCTIONS: [(&str, usize); 5] = [
    ("min", 0),
    ("max", 0),
    ("abs", 1),
    ("sqrt", 1),
    ("log10", 1),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_others_are_those_of_metrics() {
        for (words, metric) in OTHER_WORDS {
            assert!(scope_of(metric).is_some(), "{metric}");
            for word in *words {
                assert!(scope(word).is_none(), "{word} is one");
                assert_eq!(nearest(word), Some(*metric), "{word}");
            }
        }
    }

    fn value(text: &str) -> Option<f64> {
        let mut of = |name: &str| match name {
            "utilization" => Some(0.9),
            "rtt_inflation" => Some(1.5),
            "rtt_ms.p95" => Some(80.0),
            _ => None,
        };
        Expression::parse(text).unwrap().value(&mut of)
    }

    #[test]
    fn the_metric_with_which_the_value_rises() {
        for (text, rises) in [
            ("jain", true),
            ("1000 * jain + 1", true),
            ("jain / 2 - 1 + jain", true),
            ("3 - (1 - jain)", true),
            ("jain * -1 / -2", true),
            ("max(log10(jain), sqrt(2), abs(-2))", true),
            ("-jain", false),
            ("1 - jain", false),
            ("1 / jain", false),
            ("jain * 0", false),
            ("jain * jain", false),
            ("jain - 2 * jain", false),
            ("abs(jain)", false),
            ("min(jain, -jain)", false),
            ("utilization + jain", false),
            ("1 + 1", false),
        ] {
            let expression = Expression::parse(text).unwrap();
            assert_eq!(expression.rises_with(), rises.then_some("jain"), "{text}");
        }
    }

    #[test]
    fn a_divisor_that_is_always_zero_is_refused() {
        for (text, at) in [
            ("utilization / 0", 14),
            ("1/ (2 - 2) + jain", 3),
            ("1 / -0.0", 4),
        ] {
            let error = Expression::parse(text).unwrap_err();
            assert_eq!(
                (error.at, error.message.as_str()),
                (at, "division by zero"),
                "{text}"
            );
        }
        assert!(Expression::parse("1 / (utilization - 1)").is_ok());
        assert!(Expression::parse("utilization / 0.5").is_ok());
    }

    #[test]
    fn what_a_stranger_nests_is_refused_before_the_stack_ends() {
        for text in ["(", "-", "abs("] {
            let error = Expression::parse(&text.repeat(1000 / text.len())).unwrap_err();
            assert_eq!(error.message, "more than 50 within one another", "{text}");
        }
        let long = Expression::parse(&"1+".repeat(100_000)).unwrap_err();
        assert_eq!(long.message, "more than 1000 bytes");
        let chain = Expression::parse(&format!("{}1", "1+".repeat(499))).unwrap();
        assert_eq!(chain.value(&mut |_| None), Some(500.0));
    }

    #[test]
    fn arithmetic_is_as_at_school() {
        for (text, result) in [
            ("utilization - 0.1 * rtt_inflation", 0.9 - 0.1 * 1.5),
            ("2-3-4", -5.0),
            ("12/3/2", 2.0),
            ("2*(3+4)", 14.0),
            ("-2*-3", 6.0),
            ("1e-3 * 2E+3", 2.0),
            ("min(3, rtt_inflation, 2) + max(1,4)", 5.5),
            ("sqrt(abs(0-16)) + log10(1000)", 7.0),
            (" rtt_ms.p95/ 2 ", 40.0),
        ] {
            let got = value(text).unwrap();
            assert!((got - result).abs() < 1e-12, "{text}: {got}");
        }
    }

    #[test]
    fn what_is_undefined_stays_so() {
        assert_eq!(value("jain + 1"), None);
        assert_eq!(value("utilization / (rtt_inflation - 1.5)"), None);
        assert_eq!(value("sqrt(0 - 1)"), None);
    }

    #[test]
    fn a_mistake_is_named_with_its_column() {
        for (text, said, hint) in [
            ("", "column 1: a number or a metric is missing", ""),
            ("utilization -", "column 14: a number", ""),
            (
                "2 * utilisation",
                "column 5: unknown metric `utilisation`",
                "utilization",
            ),
            ("2 * goodput", "unknown metric `goodput`", "goodput_mbps"),
            ("x + 1", "unknown metric `x`", "list metrics"),
            ("(1 + 2", "column 7: `)` is missing", ""),
            ("1 2", "column 3: `2` after the end", ""),
            ("2 % 3", "column 3: `%` after the end", ""),
            ("* 3", "column 1: `*` where a number", "sqrt"),
            ("abs(1, 2)", "column 1: `abs` takes one value", ""),
            ("1.2.3", "column 1: `1.2.3` is no number", ""),
        ] {
            let error = Expression::parse(text).unwrap_err();
            assert!(error.to_string().contains(said), "{text}: {error}");
            assert!(error.hint.unwrap_or_default().contains(hint), "{text}");
        }
    }

    #[test]
    fn it_is_of_the_narrowest_of_its_metrics() {
        let scope = |text: &str| Expression::parse(text).unwrap().scope();
        assert_eq!(scope("utilization - rtt_inflation"), Scope::Flow);
        assert_eq!(scope("utilization * jain"), Scope::Link);
        assert_eq!(scope("jain + 1"), Scope::Case);
        let all = Expression::parse("jain + utilization / jain").unwrap();
        assert_eq!(all.metrics(), ["jain", "utilization"]);
        assert!(Expression::is_one("2 * jain") && !Expression::is_one("jain"));
    }
}
