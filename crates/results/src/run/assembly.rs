//! Results of cases, each put together when its runs are there, in the order of the cases: whoever
//! takes them need not wait for the last run, and nothing has to keep what was taken.

use std::collections::BTreeSet;
use std::io;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use super::RunError;
use super::kept::Kept;
use crate::precision::Judgement;
use crate::result::{
    CaseLine, CaseResult, ExpectationResult, Interrupted, RunResult, VERSION, by_seed, judged_at,
    points,
};
use crate::store::{StoreError, Variables};
use fullpipe_scenario::Scenario;

/// Takes the cases of a scenario one by one.
pub trait CaseSink: Sync {
    /// A case with the expectations that apply to it. Cases come in their order, one at a time;
    /// after an interrupt those follow that have only some of their runs, without expectations.
    ///
    /// # Errors
    /// If nobody can be given it: no further run is started.
    fn case(&self, index: usize, line: &CaseLine<'_>) -> io::Result<()>;
}

/// Who takes the cases, and what the result still has of them.
#[derive(Clone, Copy)]
pub struct Taken<'a> {
    /// Gets each case as soon as its runs, and those that it is held against, are there. Runs are
    /// started in the order of the cases, not the longest first.
    pub by: &'a dyn CaseSink,
    /// Whether the metrics stay in memory.
    pub keep: Keep,
}

/// What a result has of cases that were taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// All metrics of every case.
    #[default]
    All,
    /// No metric of a case: its parameters, seeds and times, flows where there are several, and
    /// what is to be said about it; of the expectations those that failed or are unclear. A
    /// directory gets everything all the same.
    Remarks,
}

/// Puts the result together.
pub(super) struct Assembly<'a> {
    scenario: &'a Scenario,
    ground: &'a str,
    /// The other host of a path that is not the scenario's.
    peer: Option<&'a str>,
    kept: &'a Kept<'a>,
    taken: Option<Taken<'a>>,
    /// The result goes into a directory.
    stored: bool,
    /// See [`by_seed`].
    by_seed: BTreeSet<String>,
    /// Where expectations are judged, by case.
    points: Vec<Judged>,
    state: Mutex<State>,
}

/// A place at which an expectation is judged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Judged {
    case: usize,
    expectation: usize,
    /// Its number among the points of the expectation.
    nth: usize,
    /// The case it is held against.
    peer: Option<usize>,
}

struct State {
    /// The case whose turn it is.
    next: usize,
    cases: Vec<CaseResult>,
    expectations: Vec<Placed>,
    variables: Variables,
    /// For each case how many of those to come look at its runs; empty where nothing is released.
    lookers: Vec<u32>,
    /// A case could not be handed over.
    failed: bool,
}

/// The number of an expectation, that of one of its points, and what came of it there.
type Placed = ((usize, usize), ExpectationResult);

/// What is known of the seeds of every case when some of them are looked at.
#[derive(Clone, Copy)]
pub(super) struct Stage<'a> {
    /// Seeds of each case.
    pub(super) counts: &'a [usize],
    /// Judgement of `[measure] precision`, by case.
    pub(super) judged: &'a [Option<Judgement>],
    /// No case gets further seeds.
    pub(super) last: bool,
}

impl Stage<'_> {
    fn is_settled(&self, case: usize) -> bool {
        self.last || self.judged[case].as_ref().is_some_and(|j| !j.more)
    }
}

impl<'a> Assembly<'a> {
    pub(super) fn new(
        scenario: &'a Scenario,
        (ground, peer): (&'a str, Option<&'a str>),
        kept: &'a Kept<'a>,
        taken: Option<Taken<'a>>,
        stored: bool,
    ) -> Assembly<'a> {
        let mut places = Vec::new();
        if taken.is_some() {
            for (expectation, e) in scenario.expectations.iter().enumerate() {
                let all = points(e).into_iter().enumerate();
                places.extend(all.map(|(nth, (case, peer))| Judged {
                    case,
                    expectation,
                    nth,
                    peer,
                }));
            }
            places.sort_unstable();
        }
        let assembly = Assembly {
            scenario,
            ground,
            peer,
            kept,
            taken,
            stored,
            by_seed: by_seed(scenario),
            points: places,
            state: Mutex::new(State {
                next: 0,
                cases: Vec::with_capacity(scenario.cases.len()),
                expectations: Vec::new(),
                variables: Variables::default(),
                lookers: Vec::new(),
                failed: false,
            }),
        };
        if !stored && assembly.keep() == Keep::Remarks {
            let mut lookers = vec![0; scenario.cases.len()];
            for case in 0..scenario.cases.len() {
                let at = assembly.looks_at(case);
                at.into_iter().for_each(|other| lookers[other] += 1);
            }
            assembly.locked().lookers = lookers;
        }
        assembly
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self) -> Keep {
        self.taken.map_or(Keep::All, |taken| taken.keep)
    }

    /// The cases, each behind those that it is held against.
    pub(super) fn order(&self) -> Vec<usize> {
        let all = self.scenario.cases.len();
        let mut listed = vec![false; all];
        let mut order = Vec::with_capacity(all);
        for case in 0..all {
            for other in self.looks_at(case) {
                if !mem::replace(&mut listed[other], true) {
                    order.push(other);
                }
            }
        }
        order
    }

    /// The cases whose runs the result of a case needs, itself among them.
    fn looks_at(&self, case: usize) -> BTreeSet<usize> {
        let peers = self.points_of(case).iter().filter_map(|point| point.peer);
        let all = peers.chain([case]);
        all.flat_map(|case| [Some(case), self.scenario.cases[case].baseline])
            .flatten()
            .collect()
    }

    fn points_of(&self, case: usize) -> &[Judged] {
        let from = self.points.partition_point(|point| point.case < case);
        let to = self.points.partition_point(|point| point.case <= case);
        &self.points[from..to]
    }

    /// Hands over the cases that are complete, up to the first that is not. Called by every thread
    /// that has finished a run; while one of them is at it the others do not wait for it here.
    ///
    /// # Errors
    /// If a run cannot be read again, or a case not be given away.
    pub(super) fn advance(&self, stage: &Stage<'_>) -> Result<(), RunError> {
        loop {
            let mut state = match self.state.try_lock() {
                Ok(state) => state,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return Ok(()),
            };
            // Half a row may be out: nothing goes behind it.
            if state.failed {
                return Ok(());
            }
            while self.is_complete(state.next, stage) {
                let handed = self.hand_over(&mut state, stage);
                state.failed = handed.is_err();
                handed?;
            }
            let next = state.next;
            drop(state);
            // A run that was finished meanwhile has found the door closed.
            if !self.is_complete(next, stage) {
                return Ok(());
            }
        }
    }

    fn is_complete(&self, case: usize, stage: &Stage<'_>) -> bool {
        let has_runs = |case: usize| self.kept.runs(case) >= stage.counts[case];
        case < stage.counts.len()
            && stage.is_settled(case)
            && has_runs(case)
            && self.looks_at(case).into_iter().all(has_runs)
    }

    fn hand_over(&self, state: &mut State, stage: &Stage<'_>) -> Result<(), RunError> {
        let index = state.next;
        let mut case = self.case(index, stage)?;
        state.variables.add(&case);
        if let Some(taken) = self.taken {
            if let Some(wall) = self.kept.wall_s(index) {
                case.took(wall);
            }
            let judged = self.judged(index, &case, stage)?;
            let expectations = judged.iter().map(|(_, e)| e).collect();
            self.give(&taken, index, &case, expectations, None)?;
            if taken.keep == Keep::Remarks {
                case = case.without_metrics();
                let stays = |e: &ExpectationResult| self.stored || !e.pass || e.unclear;
                let judged = judged.into_iter().filter(|(_, e)| stays(e));
                state.expectations.extend(judged);
            }
        }
        state.cases.push(case);
        state.next += 1;
        if !state.lookers.is_empty() {
            for other in self.looks_at(index) {
                state.lookers[other] -= 1;
                if state.lookers[other] == 0 {
                    self.kept.release(other);
                }
            }
        }
        Ok(())
    }

    fn give(
        &self,
        taken: &Taken<'_>,
        index: usize,
        case: &CaseResult,
        expectations: Vec<&ExpectationResult>,
        interrupted: Option<Interrupted>,
    ) -> Result<(), RunError> {
        let line = CaseLine {
            fullpipe: VERSION,
            scenario: &self.scenario.name,
            ground: self.ground,
            peer: self.peer,
            network: None,
            began: None,
            duration_s: None,
            interrupted,
            case,
            expectations,
        };
        taken.by.case(index, &line).map_err(RunError::Output)
    }

    /// The result of a case whose runs are there, without wall times.
    pub(super) fn case(&self, index: usize, stage: &Stage<'_>) -> Result<CaseResult, StoreError> {
        let case = &self.scenario.cases[index];
        let mut result = CaseResult::new(case, &self.kept.case(index), &self.by_seed)?;
        result.made_on(self.ground);
        result.precision = stage.judged[index].as_ref().map(|j| j.reached.clone());
        Ok(result)
    }

    /// What the expectations say of a case.
    fn judged(
        &self,
        index: usize,
        case: &CaseResult,
        stage: &Stage<'_>,
    ) -> Result<Vec<Placed>, StoreError> {
        let mut all = Vec::new();
        for point in self.points_of(index) {
            let peer = match point.peer {
                Some(peer) => Some(self.case(peer, stage)?),
                None => None,
            };
            let at = (index, point.peer);
            let find = |i: usize| {
                if i == index {
                    Some(case)
                } else {
                    peer.as_ref()
                }
            };
            let e = &self.scenario.expectations[point.expectation];
            let judged = judged_at(e, at, find);
            all.extend(judged.map(|judged| ((point.expectation, point.nth), judged)));
        }
        Ok(all)
    }

    /// The whole result, when all cases were handed over, and the names of its variables.
    pub(super) fn finish(&self) -> (RunResult, Variables) {
        let mut state = self.locked();
        let cases = mem::take(&mut state.cases);
        let result = match self.keep() {
            Keep::All => RunResult::new(self.scenario, self.ground, cases),
            Keep::Remarks => {
                let mut judged = mem::take(&mut state.expectations);
                judged.sort_by_key(|(place, _)| *place);
                let judged = judged.into_iter().map(|(_, e)| e);
                RunResult::of(self.scenario, self.ground, cases, judged.collect())
            }
        };
        (result, mem::take(&mut state.variables))
    }

    /// The result of the runs that are there, when no further one is made. Expectations are about
    /// all of them: none is judged.
    pub(super) fn so_far(&self, interrupted: Interrupted) -> Result<RunResult, RunError> {
        let mut state = self.locked();
        let mut cases = mem::take(&mut state.cases);
        for index in state.next..self.scenario.cases.len() {
            if self.kept.runs(index) == 0 {
                continue;
            }
            let case = &self.scenario.cases[index];
            let mut result = CaseResult::new(case, &self.kept.case(index), &BTreeSet::new())?;
            result.made_on(self.ground);
            if let Some(taken) = self.taken {
                self.give(&taken, index, &result, Vec::new(), Some(interrupted))?;
                if taken.keep == Keep::Remarks {
                    result = result.without_metrics();
                }
            }
            cases.push(result);
        }
        Ok(RunResult {
            interrupted: Some(interrupted),
            ..RunResult::of(self.scenario, self.ground, cases, Vec::new())
        })
    }
}
