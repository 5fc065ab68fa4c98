//! What cases have in common is there once. A flow or a link is seldom another one at every point
//! of a matrix: along the axes that it does not depend on, neighbours have the same.

use std::sync::Arc;

use fullpipe_run::{ArrivalSpec, CrossSpec, FlowSpec, LinkSpec, RunSpec, Trace};
use fullpipe_units::{Span, Time};

/// A [`RunSpec`] without its seed, whose lists and their elements are shared with other cases.
#[derive(Clone, Debug)]
pub(crate) struct SharedSpec {
    duration: Span,
    measure_from: Time,
    interval: Span,
    trace: Trace,
    links: List<LinkSpec>,
    flows: List<FlowSpec>,
    arrivals: List<ArrivalSpec>,
    cross: List<CrossSpec>,
}

type List<T> = Arc<[Arc<T>]>;

impl SharedSpec {
    /// Takes what is the same in one of these cases from there.
    pub fn new(spec: RunSpec, others: &[&SharedSpec]) -> SharedSpec {
        // Every field, so that a new one is not forgotten.
        let RunSpec {
            seed: _,
            duration,
            measure_from,
            interval,
            links,
            flows,
            arrivals,
            cross,
            trace,
            // Asked for on the command line.
            capture: _,
        } = spec;
        SharedSpec {
            duration,
            measure_from,
            interval,
            trace,
            links: share(links, others, |spec| &spec.links),
            flows: share(flows, others, |spec| &spec.flows),
            arrivals: share(arrivals, others, |spec| &spec.arrivals),
            cross: share(cross, others, |spec| &spec.cross),
        }
    }

    /// The specification with this seed.
    pub fn with_seed(&self, seed: u64) -> RunSpec {
        RunSpec {
            seed,
            duration: self.duration,
            measure_from: self.measure_from,
            interval: self.interval,
            links: owned(&self.links),
            flows: owned(&self.flows),
            arrivals: owned(&self.arrivals),
            cross: owned(&self.cross),
            trace: self.trace,
            capture: false,
        }
    }

    pub fn links(&self) -> impl Iterator<Item = &LinkSpec> + Clone {
        self.links.iter().map(AsRef::as_ref)
    }

    pub fn flows(&self) -> impl ExactSizeIterator<Item = &FlowSpec> {
        self.flows.iter().map(AsRef::as_ref)
    }
}

fn owned<T: Clone>(list: &List<T>) -> Vec<T> {
    list.iter().map(|element| T::clone(element)).collect()
}

fn share<T: PartialEq>(
    list: Vec<T>,
    others: &[&SharedSpec],
    of: impl Fn(&SharedSpec) -> &List<T>,
) -> List<T> {
    let one = |(i, element): (usize, T)| {
        one_of(element, others.iter().filter_map(|spec| of(spec).get(i)))
    };
    let list: Vec<Arc<T>> = list.into_iter().enumerate().map(one).collect();
    let is_same = |other: &List<T>| {
        let mut both = other.iter().zip(&list);
        other.len() == list.len() && both.all(|(a, b)| Arc::ptr_eq(a, b))
    };
    let mut theirs = others.iter().map(|spec| of(spec));
    let same = theirs.find(|other| is_same(other)).cloned();
    same.unwrap_or_else(|| list.into())
}

/// What another case has too, or this.
pub(crate) fn one_of<'a, T: PartialEq + 'a>(
    this: T,
    mut others: impl Iterator<Item = &'a Arc<T>>,
) -> Arc<T> {
    let same = others.find(|other| ***other == this).cloned();
    same.unwrap_or_else(|| Arc::new(this))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Case, Overrides, Scenario};

    /// How many there are of what a pointer of each case points at.
    fn distinct<T: ?Sized>(cases: &[Case], of: impl Fn(&Case) -> Vec<*const T>) -> usize {
        let all: BTreeSet<*const ()> = (cases.iter().flat_map(of)).map(|p| p.cast()).collect();
        all.len()
    }

    #[test]
    fn what_does_not_depend_on_an_axis_is_shared_along_it() {
        let text = "name = \"m\"\nduration = \"1s\"\n[path]\nrate = \"10Mbit/s\"\nrtt = \"10ms\"\n\
                    [[flow]]\nstack = \"reno\"\n[[traffic]]\nname = \"p\"\nkind = \"ping\"\n\
                    interval = \"100ms\"\n[matrix]\n\
                    \"path.loss\" = [0, 0.01, 0.02, 0.03, 0.04]\n\
                    \"flow.main.stack\" = [\"reno\", \"cubic\", \"bic\"]\n\
                    \"path.buffer\" = [\"5 packets\", \"6 packets\", \"7 packets\", \"8 packets\"]\n\
                    \"path.rtt\" = [\"10ms\", \"20ms\"]\n";
        let cases = Scenario::parse(text, "m.toml", &Overrides::default())
            .unwrap()
            .cases;
        assert_eq!(cases.len(), 5 * 3 * 4 * 2);
        fn pointers<T>(list: &List<T>) -> Vec<*const T> {
            list.iter().map(Arc::as_ptr).collect()
        }
        let flows = distinct(&cases, |case| pointers(&case.spec.flows));
        let links = distinct(&cases, |case| pointers(&case.spec.links));
        let cross = distinct(&cases, |case| pointers(&case.spec.cross));
        let groups = distinct(&cases, |case| vec![Arc::as_ptr(&case.flows)]);
        let traffic = distinct(&cases, |case| vec![Arc::as_ptr(&case.traffic)]);
        // A flow differs by its stack, what is measured of it by the round trip too; one link by
        // loss, buffer and delay, the way back by its delay.
        assert_eq!((flows, links), (3, 5 * 4 * 2 + 2));
        assert_eq!((cross, groups, traffic), (1, 3 * 2, 2));
        assert!(size_of::<Case>() <= 256, "{} bytes", size_of::<Case>());
    }
}
