//! A copy that outlives an outage: how long a server that has fallen silent is looked for.

use std::time::{Duration, Instant};

use fullpipe_net::session::client::SessionError;

use crate::table::number;

/// The server's silence, or that of the path to it.
#[derive(Debug)]
pub struct Outage {
    patience: Duration,
    /// The server granted a session of this copy. Whoever never answered is not waited for.
    met: bool,
    /// When it is given up; `None` while bytes arrive.
    until: Option<Instant>,
}

impl Outage {
    /// Of a copy that goes on if bytes arrive again within this time.
    pub fn new(patience: Duration) -> Self {
        Self {
            patience,
            met: false,
            until: None,
        }
    }

    /// The server has granted a session.
    pub fn met(&mut self) {
        self.met = true;
    }

    /// Bytes have arrived. A server that grants sessions and takes nothing is out all the same.
    pub fn is_over(&mut self) {
        self.until = None;
    }

    /// True of a failure to hear of a server that was there.
    pub fn is_one(&self, error: &SessionError) -> bool {
        self.met && error.is_outage()
    }

    /// What is said if another session is worth a try after this failure; `None` if the copy ends
    /// with it. The time counts from the end of the session that fell silent.
    pub fn goes_on(&mut self, error: &SessionError, now: Instant) -> Option<String> {
        if !self.is_one(error) {
            return None;
        }
        let until = *self.until.get_or_insert(now + self.patience);
        let left = until.saturating_duration_since(now);
        (!left.is_zero()).then(|| {
            let left = number(left.as_secs_f64().ceil(), 0);
            format!("{error}: trying again, for up to {left} s (--patience)")
        })
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_net::session::control::EndReason;

    use super::*;

    #[test]
    fn an_outage_is_waited_for_and_no_longer() {
        let (begin, second) = (Instant::now(), Duration::from_secs(1));
        let mut outage = Outage::new(60 * second);
        let gone = SessionError::Vanished;
        assert_eq!(outage.goes_on(&gone, begin), None, "nobody was met");
        outage.met();
        let said = outage.goes_on(&gone, begin).unwrap();
        assert!(
            said.ends_with("trying again, for up to 60 s (--patience)"),
            "{said}"
        );
        assert!(outage.goes_on(&gone, begin + 59 * second).is_some());
        outage.met();
        assert_eq!(outage.goes_on(&gone, begin + 60 * second), None, "a grant");
        // Each outage has its own time; whatever else goes wrong has none.
        outage.is_over();
        assert!(outage.goes_on(&gone, begin + 90 * second).is_some());
        assert_eq!(outage.goes_on(&SessionError::Interrupted, begin), None);
        let refused = SessionError::Refused("no".to_owned());
        assert_eq!(outage.goes_on(&refused, begin), None);
        // A server that ends may be followed by another, one that missed this side hears it again.
        for why in [EndReason::ShuttingDown, EndReason::Vanished] {
            assert!(outage.goes_on(&SessionError::Ended(why), begin).is_some());
        }
        let limit = SessionError::Ended(EndReason::Bytes);
        assert_eq!(outage.goes_on(&limit, begin), None);
    }

    #[test]
    fn without_patience_nothing_is_tried_again() {
        let mut outage = Outage::new(Duration::ZERO);
        outage.met();
        assert_eq!(
            outage.goes_on(&SessionError::Vanished, Instant::now()),
            None
        );
    }
}
