//! Finished runs out of memory. What was measured in a run is written to a file as soon as the run
//! is done, and read again, in the order of cases and seeds, as often as somebody asks: a run that
//! is done costs the few bytes that say where it lies. The file has no name and is gone with the
//! process; it stays in memory while it is small. What nobody reads again gives its place in the
//! file to later runs.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::env::temp_dir;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::mem;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tempfile::SpooledTempFile;

use super::work::{Made, Place};
use crate::result::Runs;
use crate::store::{AllRuns, StoreError, StoredFiles, Timing};
use fullpipe_metrics as metrics;
use fullpipe_metrics::{
    Fidelity, FlowMetrics, LinkMetrics, Names, RunMetrics, SeedRun, TrafficMetrics, Values,
};
use fullpipe_scenario::Scenario;

/// The finished runs of a scenario.
pub(super) struct Kept<'a> {
    scenario: &'a Scenario,
    /// Seeds that a case may have, in their order.
    seeds: Vec<u64>,
    held: Mutex<Held>,
}

struct Held {
    file: SpooledTempFile,
    /// Bytes of the file.
    end: u64,
    /// Places that are free again, by their size.
    free: BTreeMap<u64, Vec<u64>>,
    /// Lists of names of the values in it.
    names: Vec<Names>,
    cases: Vec<OfCase>,
    runs: usize,
}

#[derive(Clone, Default)]
struct OfCase {
    /// For each seed where its record is: its bytes; empty for one that is not there.
    places: Vec<Range<u64>>,
    runs: usize,
    /// Nobody reads them again: the records are gone.
    released: bool,
    /// Of the runs that were made now.
    made: usize,
    wall_s: f64,
}

impl<'a> Kept<'a> {
    pub(super) fn new(scenario: &'a Scenario, seeds: Vec<u64>) -> Kept<'a> {
        let held = Held {
            file: SpooledTempFile::new(IN_MEMORY),
            end: 0,
            free: BTreeMap::new(),
            names: Vec::new(),
            cases: vec![OfCase::default(); scenario.cases.len()],
            runs: 0,
        };
        Kept {
            scenario,
            seeds,
            held: Mutex::new(held),
        }
    }

    /// Takes a finished run.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn put(&self, place: Place, made: &Made) -> Result<(), StoreError> {
        self.held()
            .put(place, made)
            .map_err(|e| refused("write", e))
    }

    /// Finished runs.
    pub(super) fn len(&self) -> usize {
        self.held().runs
    }

    /// Wall time of the runs of a case, seconds, if all of them were made now.
    pub(super) fn wall_s(&self, case: usize) -> Option<f64> {
        let case = &self.held().cases[case];
        (case.runs > 0 && case.made == case.runs).then_some(case.wall_s)
    }

    /// The runs of the first `counts[case]` seeds that are not there.
    pub(super) fn missing(&self, counts: &[usize]) -> Vec<Place> {
        let cases = counts.iter().enumerate();
        cases
            .flat_map(|(case, &count)| self.missing_of(case, count))
            .collect()
    }

    /// The runs of the first `count` seeds of a case that are not there.
    pub(super) fn missing_of(&self, case: usize, count: usize) -> Vec<Place> {
        let held = self.held();
        let of = &held.cases[case];
        if of.runs >= count {
            return Vec::new();
        }
        let seeds = self.seeds.iter().take(count).enumerate();
        let places = seeds.map(|(nth, &seed)| Place { case, nth, seed });
        places
            .filter(|p| of.places.get(p.nth).is_none_or(Range::is_empty))
            .collect()
    }

    /// Finished runs of a case.
    pub(super) fn runs(&self, case: usize) -> usize {
        self.held().cases[case].runs
    }

    /// Forgets the numbers of the runs of a case, which nobody may ask for again; that they are
    /// finished stays known.
    pub(super) fn release(&self, case: usize) {
        self.held().release(case);
    }

    /// The runs of a case, with what needs the baseline's filled in.
    pub(super) fn case(&self, case: usize) -> KeptCase<'_> {
        KeptCase { kept: self, case }
    }

    /// A run as it was measured, and what is known beside.
    fn read(&self, case: usize, nth: usize) -> Result<Option<Made>, StoreError> {
        self.held().read(case, nth).map_err(|e| refused("read", e))
    }

    fn places(&self, case: usize) -> usize {
        self.held().cases[case].places.len()
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The runs of a case.
pub(super) struct KeptCase<'a> {
    kept: &'a Kept<'a>,
    case: usize,
}

impl Runs for KeptCase<'_> {
    type Error = StoreError;

    fn each(&self, see: &mut dyn FnMut(&SeedRun)) -> Result<(), StoreError> {
        let baseline = self.kept.scenario.cases[self.case].baseline;
        for nth in 0..self.kept.places(self.case) {
            let Some(mut made) = self.kept.read(self.case, nth)? else {
                continue;
            };
            if let Some(baseline) = baseline {
                let base = self.kept.read(baseline, nth)?;
                metrics::hold_against(&mut made.metrics, base.as_ref().map(|b| &b.metrics));
            }
            see(&SeedRun {
                seed: self.kept.seeds[nth],
                metrics: made.metrics,
            });
        }
        Ok(())
    }
}

impl AllRuns for Kept<'_> {
    fn each(&self, see: &mut dyn FnMut(usize, &SeedRun)) -> Result<(), StoreError> {
        (0..self.scenario.cases.len())
            .try_for_each(|case| self.case(case).each(&mut |run| see(case, run)))
    }

    fn beside(&self, see: &mut dyn FnMut(StoredFiles, Option<Timing>)) -> Result<(), StoreError> {
        for case in 0..self.scenario.cases.len() {
            for (nth, &seed) in self.seeds.iter().enumerate().take(self.places(case)) {
                if let Some(made) = self.read(case, nth)? {
                    let timing = made.wall_s.map(|wall_s| Timing {
                        case,
                        seed,
                        wall_s,
                        packets_per_s: made.metrics.delivered_packets as f64 / wall_s.max(1e-9),
                        ended: None,
                    });
                    see(made.files, timing);
                }
            }
        }
        Ok(())
    }
}

impl Held {
    /// A record: the length of its head, the head, its numbers; numbers are eight bytes each, NaN
    /// where undefined.
    fn put(&mut self, place: Place, made: &Made) -> io::Result<()> {
        let m = &made.metrics;
        let head = Head {
            flows: (m.flows.iter())
                .map(|f| {
                    (
                        Cow::from(&f.name),
                        Cow::from(&f.stack),
                        self.list(&f.values),
                    )
                })
                .collect(),
            traffic: (m.traffic.iter())
                .map(|t| {
                    let (kind, stack) = (Cow::from(&t.kind), Cow::from(&t.stack));
                    (Cow::from(&t.name), kind, stack, self.list(&t.values))
                })
                .collect(),
            links: (m.links.iter())
                .map(|l| (Cow::from(&l.name), self.list(&l.values)))
                .collect(),
            metrics: self.list(&m.metrics),
            delivered_packets: m.delivered_packets,
            fidelity: m.fidelity.as_deref().map(Cow::Borrowed),
            partial: m.partial.as_deref().map(Cow::Borrowed),
            files: Cow::Borrowed(&made.files),
        };
        let head = serde_json::to_vec(&head)?;
        let mut record = Vec::with_capacity(head.len() + 4096);
        record.extend((head.len() as u32).to_le_bytes());
        record.extend(head);
        let flows = m.flows.iter().map(|f| &f.values);
        let traffic = m.traffic.iter().map(|t| &t.values);
        let links = m.links.iter().map(|l| &l.values);
        let rows = flows.chain(traffic).chain(links).chain([&m.metrics]);
        let numbers = [Some(m.simulated_s), made.wall_s].into_iter();
        for number in numbers.chain(rows.flat_map(|row| row.iter().map(|(_, value)| value))) {
            record.extend(number.unwrap_or(f64::NAN).to_le_bytes());
        }
        let len = record.len() as u64;
        let start = match self.free.get_mut(&room(len)).and_then(Vec::pop) {
            Some(start) => start,
            None => {
                let start = self.end;
                self.end += room(len);
                start
            }
        };
        self.file.seek(SeekFrom::Start(start))?;
        self.file.write_all(&record)?;

        let case = &mut self.cases[place.case];
        if case.places.len() <= place.nth {
            case.places.resize(place.nth + 1, 0..0);
        }
        case.places[place.nth] = start..start + len;
        case.runs += 1;
        if let Some(wall_s) = made.wall_s {
            case.made += 1;
            case.wall_s += wall_s;
        }
        self.runs += 1;
        Ok(())
    }

    fn release(&mut self, case: usize) {
        let case = &mut self.cases[case];
        case.released = true;
        for place in mem::take(&mut case.places).iter().filter(|p| !p.is_empty()) {
            let free = self.free.entry(room(place.end - place.start));
            free.or_default().push(place.start);
        }
    }

    /// Number of a list of names.
    fn list(&mut self, values: &Values) -> usize {
        let names = values.names();
        let known = self.names.iter().position(|n| n == names);
        known.unwrap_or_else(|| {
            self.names.push(names.clone());
            self.names.len() - 1
        })
    }

    fn read(&mut self, case: usize, nth: usize) -> io::Result<Option<Made>> {
        debug_assert!(!self.cases[case].released, "case {case} is gone");
        let place = self.cases[case].places.get(nth).cloned();
        let Some(place) = place.filter(|p| !p.is_empty()) else {
            return Ok(None);
        };
        let mut record = vec![0; (place.end - place.start) as usize];
        self.file.seek(SeekFrom::Start(place.start))?;
        self.file.read_exact(&mut record)?;

        let short = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let (size, rest) = record.split_first_chunk::<4>().ok_or_else(short)?;
        let size = u32::from_le_bytes(*size) as usize;
        let (head, numbers) = rest.split_at_checked(size).ok_or_else(short)?;
        let head: Head<'_> = serde_json::from_slice(head)?;
        let (numbers, _) = numbers.as_chunks::<8>();
        let mut numbers = numbers.iter().map(|bytes| {
            let number = f64::from_le_bytes(*bytes);
            (!number.is_nan()).then_some(number)
        });
        let simulated_s = numbers.next().flatten().ok_or_else(short)?;
        let wall_s = numbers.next().flatten();
        let mut row = |list: usize| {
            let names = &self.names[list];
            Values::with(names, numbers.by_ref().take(names.len()))
        };
        let flow = |(name, stack, list): (Cow<'_, str>, Cow<'_, str>, usize)| FlowMetrics {
            name: name.into_owned(),
            stack: stack.into_owned(),
            values: row(list),
        };
        let flows = head.flows.into_iter().map(flow).collect();
        let traffic = head.traffic.into_iter();
        let traffic = traffic.map(|(name, kind, stack, list)| TrafficMetrics {
            name: name.into_owned(),
            kind: kind.into_owned(),
            stack: stack.into_owned(),
            values: row(list),
        });
        let traffic = traffic.collect();
        let link = |(name, list): (Cow<'_, str>, usize)| LinkMetrics {
            name: name.into_owned(),
            values: row(list),
        };
        let metrics = RunMetrics {
            flows,
            traffic,
            links: head.links.into_iter().map(link).collect(),
            metrics: row(head.metrics),
            simulated_s,
            delivered_packets: head.delivered_packets,
            fidelity: head.fidelity.map(|f| Box::new(f.into_owned())),
            partial: head.partial.map(Cow::into_owned),
        };
        let files = head.files.into_owned();
        Ok(Some(Made {
            metrics,
            files,
            wall_s,
        }))
    }
}

/// What a record has beside numbers. A `usize` is a list of names.
#[derive(Serialize, Deserialize)]
struct Head<'a> {
    flows: Vec<(Text<'a>, Text<'a>, usize)>,
    traffic: Vec<(Text<'a>, Text<'a>, Text<'a>, usize)>,
    links: Vec<(Text<'a>, usize)>,
    metrics: usize,
    delivered_packets: u64,
    fidelity: Option<Cow<'a, Fidelity>>,
    partial: Option<Cow<'a, str>>,
    files: Cow<'a, StoredFiles>,
}

type Text<'a> = Cow<'a, str>;

fn refused(doing: &'static str, source: io::Error) -> StoreError {
    StoreError::Kept {
        doing,
        dir: temp_dir(),
        source,
    }
}

/// Bytes that a record of this length takes: records of a kind differ by a few digits, and each
/// fits into the place of another.
fn room(len: u64) -> u64 {
    len.next_multiple_of(256)
}

/// Bytes up to which the file stays in memory: some thousand runs.
const IN_MEMORY: usize = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_scenario::Overrides;

    fn made(seed: u64) -> Made {
        let x = seed as f64;
        let values = Values::from([("goodput_mbps", Some(x / 3.0)), ("recovery_time_s", None)]);
        let flow = FlowMetrics {
            name: "main".into(),
            stack: format!("reno, from {seed} s cubic"),
            values,
        };
        let metrics = RunMetrics {
            flows: vec![flow],
            traffic: vec![],
            links: vec![LinkMetrics {
                name: "l".into(),
                values: Values::from([("drops", Some(-x))]),
            }],
            metrics: Values::from([("jain", Some(0.1 + 0.2))]),
            simulated_s: 0.1,
            delivered_packets: u64::MAX - seed,
            fidelity: None,
            partial: (seed == 2).then(|| "cut".to_owned()),
        };
        Made {
            metrics,
            files: StoredFiles::default(),
            wall_s: seed.is_multiple_of(2).then_some(0.7),
        }
    }

    /// Far more than stays in memory, in another order than that of the seeds.
    #[test]
    fn runs_come_back_in_the_order_of_their_seeds_and_nothing_of_them_stays() {
        let text = "name = \"k\"\nduration = \"1s\"\n[path]\nrate = \"10Mbit/s\"\nrtt = \"10ms\"\n\
                    [[flow]]\nstack = \"reno\"\n";
        let scenario = Scenario::parse(text, "k.toml", &Overrides::default()).unwrap();
        let n = 60_000;
        let seeds: Vec<u64> = (1..=n).collect();
        let kept = Kept::new(&scenario, seeds.clone());
        assert_eq!(kept.missing(&[2]).len(), 2);
        for nth in (0..n as usize).rev() {
            let (case, seed) = (0, seeds[nth]);
            kept.put(Place { case, nth, seed }, &made(seed)).unwrap();
        }
        assert_eq!(
            (kept.len(), kept.missing(&[n as usize]).len()),
            (n as usize, 0)
        );
        {
            let held = kept.held();
            assert!(held.file.is_rolled(), "{} bytes in memory", held.end);
            assert_eq!(
                held.names.len(),
                3,
                "a list for flows, one for links, one for cases"
            );
            assert_eq!(held.cases[0].places.len(), n as usize);
        }
        let mut next = 1;
        kept.case(0)
            .each(&mut |run| {
                assert_eq!((run.seed, &run.metrics), (next, &made(next).metrics));
                next += 1;
            })
            .unwrap();
        assert_eq!(next, n + 1);
        let mut walls = 0;
        let mut walled = 0.0;
        kept.beside(&mut |_, timing| {
            walls += u64::from(timing.is_some());
            walled += timing.map_or(0.0, |t| t.wall_s);
        })
        .unwrap();
        assert!((walled - 0.7 * (n / 2) as f64).abs() < 1e-3, "{walled}");
        assert_eq!((walls, kept.wall_s(0)), (n / 2, None));
    }
    /// A thousand cases, each forgotten before the next but one: the file holds two of them.
    #[test]
    fn places_of_what_is_released_are_taken_again() {
        let text = "name = \"k\"\nduration = \"1s\"\n[path]\nrate = \"10Mbit/s\"\nrtt = \"10ms\"\n\
                    [[flow]]\nstack = \"reno\"\n[matrix]\n\"path.mtu\" = [1500, 1600]\n";
        let scenario = Scenario::parse(text, "k.toml", &Overrides::default()).unwrap();
        let mut kept = Kept::new(&scenario, vec![1, 2, 3]);
        kept.held().cases = vec![OfCase::default(); 1000];
        let mut size = 0;
        for case in 0..1000 {
            for (nth, seed) in [(0, 1), (1, 2), (2, 3)] {
                kept.put(Place { case, nth, seed }, &made(seed)).unwrap();
            }
            assert_eq!((kept.runs(case), kept.missing_of(case, 3)), (3, vec![]));
            assert_eq!(kept.read(case, 1).unwrap().unwrap(), made(2));
            if case > 0 {
                kept.release(case - 1);
            }
            if case == 1 {
                size = kept.held().end;
            }
        }
        assert_eq!(kept.held.get_mut().unwrap().end, size);
        assert_eq!((kept.len(), kept.missing_of(7, 3)), (3000, vec![]));
    }
}
