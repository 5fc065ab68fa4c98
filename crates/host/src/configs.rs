//! Configurations of flows: those that are alike share one, so that what packets ask of it stays in
//! the cache however many flows there are.

use std::sync::Arc;

use fullpipe_flow::{ReceiverConfig, SenderConfig};

/// The configurations of the flow that was made last.
#[derive(Debug, Default)]
pub(crate) struct Configs {
    sender: Option<Arc<SenderConfig>>,
    receiver: Option<Arc<ReceiverConfig>>,
}

impl Configs {
    /// One equal to `cfg`.
    pub(crate) fn sender(&mut self, cfg: &SenderConfig) -> Arc<SenderConfig> {
        share(&mut self.sender, cfg)
    }

    /// The same for a receiver.
    pub(crate) fn receiver(&mut self, cfg: &ReceiverConfig) -> Arc<ReceiverConfig> {
        share(&mut self.receiver, cfg)
    }
}

fn share<T: Clone + PartialEq>(last: &mut Option<Arc<T>>, cfg: &T) -> Arc<T> {
    match last {
        Some(last) if **last == *cfg => Arc::clone(last),
        _ => Arc::clone(last.insert(Arc::new(cfg.clone()))),
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_flow::Preset;

    use super::*;

    #[test]
    fn flows_that_are_alike_share_a_configuration() {
        let mut configs = Configs::default();
        let modern = SenderConfig::preset(Preset::Y2026, 1500);
        let [first, second] = [(); 2].map(|()| configs.sender(&modern));
        assert!(Arc::ptr_eq(&first, &second));
        let old = configs.sender(&SenderConfig::preset(Preset::Y2003, 1500));
        assert_ne!(*old, *first);
    }
}
