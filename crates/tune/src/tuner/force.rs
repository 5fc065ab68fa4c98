//! Rules that come into force: what fits into the maps, written to the half that nobody reads, and
//! each flow's part of a path that is divided.

use std::collections::BTreeMap;
use std::mem;

use fullpipe_policy::{Compiled, OnDaemonLoss, Rule};

use super::{Own, TuneError, Tuner, ceiling, give_back};
use crate::divide::{self, Flows};
use crate::image::{Image, Numbers, Unfit};
use crate::kernel::Kernel;

/// Rules that the maps have room for.
#[derive(Debug)]
pub(super) struct Fitted {
    compiled: Compiled,
    each: Vec<Rule>,
    shares: Flows,
    numbers: Numbers,
}

impl<K: Kernel> Tuner<K> {
    /// Has rules in force and moves flows, or leaves both as they were: flows that were moved
    /// before the failure are moved back with the next look.
    pub(super) fn replace(
        &mut self,
        compiled: Compiled,
        own: BTreeMap<u64, Own>,
    ) -> Result<(), TuneError> {
        if !self.began {
            let left = self.kernel.flows(&[])?;
            let back = give_back(
                &mut self.kernel,
                &mut self.journal,
                &self.prefix,
                left,
                |_| true,
            )?;
            self.log.extend(back.lines);
            back.noted?;
            self.began = true;
        }
        let rules = self.compiled.clone();
        let own = std::mem::replace(&mut self.own, own);
        if let Err(e) = self.install(compiled) {
            self.own = own;
            return Err(e);
        }
        if let Err(e) = self.settle() {
            self.own = own;
            if let Err(why) = self.put(rules) {
                self.log
                    .push(format!("the rules before are not in force again: {why}"));
            }
            return Err(e);
        }
        Ok(())
    }

    /// Rules as they would be in force, each flow's part of them.
    ///
    /// # Errors
    /// [`Unfit`].
    pub(super) fn fit(&self, compiled: Compiled) -> Result<(Fitted, Image), Unfit> {
        let mut numbers = self.numbers.clone();
        let own = self.own.values().map(|own| &own.rule);
        let all = compiled.rules.iter().chain(own);
        numbers.assign(all.map(|rule| rule.name.as_str()));
        let shares = self.count_shares(&compiled, &numbers);
        let rules = compiled.rules.iter();
        let rules = rules.map(|rule| divide::part(rule, &rule.name, &shares));
        let parts = Compiled {
            rules: rules.collect(),
            ..compiled.clone()
        };
        let own = self.own.values();
        let own = own.map(|own| divide::part(&own.rule, &own.path, &shares));
        let own: Vec<Rule> = own.collect();
        let image = Image::new(&parts, own.iter(), &numbers, &self.prefix)?;
        let fitted = Fitted {
            each: [parts.rules, own].concat(),
            compiled,
            shares,
            numbers,
        };
        Ok((fitted, image))
    }

    /// Writes rules.
    pub(super) fn put(&mut self, compiled: Compiled) -> Result<(), TuneError> {
        let (mut fitted, image) = self.fit(compiled)?;
        let mut control = self.control.clone();
        control.active ^= 1;
        control.generation = control.generation.wrapping_add(1);
        control.keep = fitted.compiled.on_daemon_loss == OnDaemonLoss::Keep;
        control.heartbeat_us = self.kernel.now_us();
        control.never = image.never.clone();
        self.note_ceilings(&fitted.each)?;
        // The half that nobody reads, then one word that says which half is read.
        let written = self.kernel.fill(control.active, &image);
        if let Err(e) = written.and_then(|()| self.kernel.control(&control)) {
            // What is written down stays what flows have.
            self.note_ceilings(&self.each.clone())?;
            return Err(e.into());
        }
        for old in &self.compiled.rules {
            if !fitted.compiled.rules.contains(old) {
                self.arms.forget(&old.name);
            }
        }
        self.control = control;
        self.exchange(&mut fitted);
        Ok(())
    }

    /// Puts these rules in the place of those in force, and the other way round.
    pub(super) fn exchange(&mut self, fitted: &mut Fitted) {
        mem::swap(&mut self.compiled, &mut fitted.compiled);
        mem::swap(&mut self.each, &mut fitted.each);
        mem::swap(&mut self.shares, &mut fitted.shares);
        mem::swap(&mut self.numbers, &mut fitted.numbers);
    }

    /// How many flows each path that divides has now, those with parameters of their own too.
    fn count_shares(&self, compiled: &Compiled, numbers: &Numbers) -> Flows {
        let dividing = compiled.rules.iter().filter(|r| r.divide);
        let mut flows: Flows = dividing.map(|rule| (rule.name.clone(), 0)).collect();
        for (cookie, known) in self.known.iter().filter(|(_, known)| !known.refused) {
            let name = known.rule.and_then(|number| numbers.name(number));
            let own = self.own.get(cookie);
            let own = own.filter(|own| Some(own.rule.name.as_str()) == name);
            let path = own.map(|own| own.path.as_str()).or(name);
            if let Some(n) = path.and_then(|path| flows.get_mut(path)) {
                *n += 1;
            }
        }
        flows
    }

    /// Flows have come or gone: windows and rates are theirs at the next ACK, buffers with the next
    /// look.
    pub(super) fn divide(&mut self) -> Result<(), TuneError> {
        match self.count_shares(&self.compiled, &self.numbers) == self.shares {
            true => Ok(()),
            false => self.put(self.compiled.clone()),
        }
    }

    /// Ceilings of pacing that change reach flows at the next ACK, without an order: they are
    /// written down before.
    pub(super) fn note_ceilings(&mut self, rules: &[Rule]) -> Result<(), TuneError> {
        let mut changed = Vec::new();
        for known in self.known.values() {
            let name = known.rule.and_then(|n| self.numbers.name(n));
            let rule = self.named(rules, name);
            let (Some(rule), Some(entry)) = (rule, self.journal.entry(known.key)) else {
                continue;
            };
            if entry.given.ceiling != ceiling(rule) {
                let mut entry = entry.clone();
                entry.given.ceiling = ceiling(rule);
                changed.push((known.key, entry));
            }
        }
        Ok(self.journal.touch(changed)?)
    }
}
