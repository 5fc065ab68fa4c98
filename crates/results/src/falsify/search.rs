//! The search for one wrong world per expectation: the cheapest case first, and no world further
//! than the first one in which the expectation fails there.

use std::collections::BTreeSet;

use super::Trial;
use crate::result::{CaseResult, ExpectationResult, Point, judged_at, points};
use crate::run::{Bench, RunError, cost};
use fullpipe_scenario::Expectation;

/// A search in progress.
pub(super) struct Search<'a, 'b> {
    trial: &'a Trial,
    bench: &'a mut Bench<'b>,
    /// By expectation: its points, the cheapest first.
    points: Vec<Vec<Point>>,
    /// Every case, the cheapest first.
    cases: Vec<usize>,
    /// Expectations that fail in no world so far.
    open: BTreeSet<usize>,
    /// Worlds of the file that no expectation has failed in.
    uncaught: BTreeSet<usize>,
}

impl<'a, 'b> Search<'a, 'b> {
    pub fn new(trial: &'a Trial, bench: &'a mut Bench<'b>) -> Self {
        let cases = &trial.scenario.cases;
        let costs: Vec<f64> = cases.iter().map(|case| cost(&case.run_spec(0))).collect();
        let of_point = |(case, peer): &Point| costs[*case] + peer.map_or(0.0, |p| costs[p]);
        let cheapest_first = |e: &Expectation| {
            let mut points = points(e);
            points.sort_by(|a, b| of_point(a).total_cmp(&of_point(b)));
            points
        };
        let all = &trial.scenario.expectations;
        let named = (1..trial.places.len()).filter(|w| {
            let world = &trial.worlds[w - 1];
            world.line.is_some() && world.inert.is_none()
        });
        let mut by_cost: Vec<usize> = (0..cases.len()).collect();
        by_cost.sort_by(|&a, &b| costs[a].total_cmp(&costs[b]));
        Self {
            cases: by_cost,
            points: all.iter().map(cheapest_first).collect(),
            open: (0..all.len()).collect(),
            uncaught: named.collect(),
            trial,
            bench,
        }
    }

    /// Runs what has to be run.
    pub fn run(mut self) -> Result<(), RunError> {
        let worlds: Vec<usize> = (1..self.trial.places.len()).collect();
        let kind = |w: usize| {
            let world = &self.trial.worlds[w - 1];
            (world.line.is_some(), world.one_sided)
        };
        let in_turn = |named, one_sided| {
            let of_kind = worlds.iter().copied();
            of_kind.filter(move |&w| kind(w) == (named, one_sided))
        };
        let (named, one_sided) = (in_turn(true, false), in_turn(false, true));
        let (named, one_sided): (Vec<_>, Vec<_>) = (named.collect(), one_sided.collect());
        let others: Vec<usize> = in_turn(false, false).collect();
        // What is said to be inert: at the cheapest case that it changes.
        for &world in &worlds {
            if self.trial.worlds[world - 1].inert.is_some() {
                let (here, there) = (&self.trial.places[0], &self.trial.places[world]);
                let mut changed = self.cases.iter().filter(|&&i| here[i] != there[i]);
                let places = changed.next().map(|&i| [here[i], there[i]]);
                self.bench.need(places.into_iter().flatten())?;
            }
        }
        // World by world at the cheapest point: most expectations need no more than a few. A
        // comparison notices most surely what differs on one side.
        for world in named {
            self.look(0, &[world], &self.open.clone())?;
        }
        for world in one_sided {
            let compares = |e: &&usize| !self.trial.scenario.expectations[**e].pairs.is_empty();
            let open = self.open.iter().filter(compares).copied().collect();
            self.look(0, &[world], &open)?;
        }
        for world in others {
            self.look(0, &[world], &self.open.clone())?;
        }
        // What is left may be toothless: every world, point by point. Where the file says that no
        // world is known, none is looked for.
        let excused = |e: &usize| self.trial.scenario.expectations[*e].toothless.is_some();
        self.open.retain(|e| !excused(e));
        let most = self.points.iter().map(Vec::len).max().unwrap_or(0);
        for rank in 1..most {
            self.look(rank, &worlds, &self.open.clone())?;
        }
        // A world of the file has to be caught by somebody.
        let everybody: BTreeSet<usize> = (0..self.points.len()).collect();
        for rank in 0..most {
            let left: Vec<usize> = self.uncaught.iter().copied().collect();
            self.look(rank, &left, &everybody)?;
        }
        Ok(())
    }

    /// Holds these expectations, at the point of this rank, against these worlds.
    fn look(
        &mut self,
        rank: usize,
        worlds: &[usize],
        expectations: &BTreeSet<usize>,
    ) -> Result<(), RunError> {
        let at = |e: usize| Some((e, *self.points[e].get(rank)?));
        let asked: Vec<(usize, Point)> = expectations.iter().filter_map(|&e| at(e)).collect();
        if worlds.is_empty() || asked.is_empty() {
            return Ok(());
        }
        let places = asked.iter().flat_map(|(_, point)| self.places(*point, 0));
        self.bench.need(places.collect::<Vec<_>>())?;
        let hold = |&(e, point): &(usize, Point)| self.passes(e, point, 0) == Some(true);
        let asked: Vec<(usize, Point)> = asked.into_iter().filter(hold).collect();
        let mut pairs: Vec<(usize, Point, usize)> = Vec::new();
        for &(e, point) in &asked {
            let expectation = &self.trial.scenario.expectations[e];
            let differs = |w: &&usize| {
                self.places(point, **w) != self.places(point, 0)
                    && self.trial.applies(expectation, **w - 1)
            };
            pairs.extend(worlds.iter().filter(differs).map(|&w| (e, point, w)));
        }
        let places = pairs
            .iter()
            .flat_map(|(_, point, w)| self.places(*point, *w));
        self.bench.need(places.collect::<Vec<_>>())?;
        for (e, point, world) in pairs {
            if self.fails(e, point, world) {
                self.open.remove(&e);
                self.uncaught.remove(&world);
            }
        }
        Ok(())
    }

    /// Where the cases of a point are in the union.
    fn places(&self, (case, peer): Point, world: usize) -> Vec<usize> {
        let places = &self.trial.places[world];
        [Some(case), peer]
            .into_iter()
            .flatten()
            .map(|i| places[i])
            .collect()
    }

    /// Whether an expectation fails at a point in a world. That what is measured is gone is none.
    fn fails(&self, e: usize, point: Point, world: usize) -> bool {
        let expectation = &self.trial.scenario.expectations[e];
        let gone = || world > 0 && self.trial.is_gone(expectation, world - 1);
        let judged = self.judged(e, point, world);
        judged.is_some_and(|judged| !judged.pass && (judged.observed.is_some() || !gone()))
    }

    /// Whether an expectation holds at a point in a world, where that is known.
    fn passes(&self, e: usize, point: Point, world: usize) -> Option<bool> {
        Some(self.judged(e, point, world)?.pass)
    }

    fn judged(&self, e: usize, point: Point, world: usize) -> Option<ExpectationResult> {
        let of = |i: usize| -> Option<CaseResult> {
            let place = self.trial.places[world][i];
            self.bench.result(place, &self.trial.scenario.cases[i])
        };
        let case = of(point.0)?;
        let peer = point.1.and_then(of);
        let found = |i: usize| match i == point.0 {
            true => Some(&case),
            false => peer.as_ref(),
        };
        judged_at(&self.trial.scenario.expectations[e], point, found)
    }
}
