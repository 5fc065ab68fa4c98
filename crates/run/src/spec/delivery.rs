//! Traces of delivery opportunities in the format of mahimahi's `mm-link`: one time in milliseconds
//! a line, never falling.

/// Delivery opportunities of a mahimahi trace: each carries 1504 bytes, of one packet or several; a
/// larger one takes several opportunities. What a packet leaves of its last one goes to the next
/// packet in the queue; what finds none is lost. The trace repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryTrace {
    /// Milliseconds of the opportunities in one period, never falling; the last is the period and
    /// above zero.
    pub opportunities: Vec<u32>,
}

impl DeliveryTrace {
    /// Bytes of a delivery opportunity, as mahimahi counts them.
    pub const OPPORTUNITY: u64 = 1504;

    /// Milliseconds of a period.
    pub fn period_ms(&self) -> u32 {
        self.opportunities.last().copied().unwrap_or(1).max(1)
    }

    /// Mean rate over a period, bits per second.
    pub fn mean_rate(&self) -> u64 {
        let bits = self.opportunities.len() as u128 * u128::from(Self::OPPORTUNITY * 8);
        u64::try_from(bits * 1000 / u128::from(self.period_ms())).unwrap_or(u64::MAX)
    }
}

/// A text that is no trace, by what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryTraceError {
    /// A line is no time.
    #[error("line {line}: `{text}` is not a whole number of milliseconds")]
    NotATime {
        /// Line number, from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// Time runs backwards.
    #[error("line {line}: {at} ms is before the {before} ms above it; times never fall")]
    Falls {
        /// Line number, from 1.
        line: usize,
        /// Time on that line, ms.
        at: u32,
        /// The one above.
        before: u32,
    },
    /// No line at all.
    #[error("the trace is empty; it needs at least one line with a time in milliseconds")]
    Empty,
    /// Nothing but zeros: the period would be zero.
    #[error("line {line}: the last time is the trace's period and must be above zero")]
    NoPeriod {
        /// Line number, from 1.
        line: usize,
    },
}

impl DeliveryTrace {
    /// Reads a trace as `mm-link` does; spaces around a number are allowed, empty lines are not.
    ///
    /// # Errors
    /// The first line that is none of a trace.
    pub fn parse(text: &str) -> Result<Self, DeliveryTraceError> {
        let mut opportunities: Vec<u32> = Vec::new();
        for (i, text) in text.lines().enumerate() {
            let line = i + 1;
            let at = text
                .trim()
                .parse()
                .map_err(|_| DeliveryTraceError::NotATime {
                    line,
                    text: text.chars().take(40).collect(),
                })?;
            if let Some(&before) = opportunities.last()
                && at < before
            {
                return Err(DeliveryTraceError::Falls { line, at, before });
            }
            opportunities.push(at);
        }
        match opportunities.last() {
            None => Err(DeliveryTraceError::Empty),
            Some(0) => Err(DeliveryTraceError::NoPeriod {
                line: opportunities.len(),
            }),
            Some(_) => Ok(Self { opportunities }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_read() {
        let trace = DeliveryTrace::parse("0\n5\r\n 5 \n12").unwrap();
        assert_eq!(trace.opportunities, [0, 5, 5, 12]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let error = |text| DeliveryTrace::parse(text).unwrap_err().to_string();
        assert_eq!(
            error("1\n\n2"),
            "line 2: `` is not a whole number of milliseconds"
        );
        assert_eq!(
            error("1\n2.5"),
            "line 2: `2.5` is not a whole number of milliseconds"
        );
        assert_eq!(
            error("7\n8\n3"),
            "line 3: 3 ms is before the 8 ms above it; times never fall"
        );
        assert_eq!(
            error("0\n0"),
            "line 2: the last time is the trace's period and must be above zero"
        );
        assert!(error("").contains("empty"));
    }
}
