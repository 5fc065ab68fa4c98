//! Parameters of a stack that a running flow has: what may be changed, and the stack that results.

use alloc::borrow::ToOwned;
use alloc::vec::Vec;

use super::spec::Part;
use super::{Kind, StackError, StackSpec, find, nearest};
use crate::params::{ParamError, Params};

/// What else of a running flow can be changed, beside its stack's parameters.
const BESIDES: [&str; 3] = ["stack", "window", "rate"];

/// Short names for the two parameters of AIMD, as the papers write them.
const SHORT: [(&str, &str); 2] = [("a", "increase"), ("b", "decrease")];

/// Laws without parameters, each with the law that it is at that one's defaults.
const SPECIAL: [(&str, &str); 1] = [("reno", "aimd")];

impl StackSpec {
    /// The same stack with other parameters, for a flow that runs already. A name is a parameter of
    /// the window law, or else of another part; `part.name` says of which. `a` and `b` stand for
    /// `increase` and `decrease`. Reno, which has no parameters, becomes `aimd` by them.
    ///
    /// ```
    /// use fullpipe_cc::StackSpec;
    ///
    /// let reno = StackSpec::parse("reno+limited").unwrap();
    /// let tuned = reno.changed(&[("a", "6"), ("max_ssthresh", "200")]).unwrap();
    /// assert_eq!(tuned.to_string(), "aimd(increase=6)+limited(max_ssthresh=200)");
    /// ```
    ///
    /// # Errors
    /// A name that no part has, a value outside its range, parameters that contradict each other,
    /// or the initial window, which a running flow has behind it.
    pub fn changed(&self, settings: &[(&str, &str)]) -> Result<StackSpec, StackError> {
        let mut other = self.clone();
        for (name, value) in settings {
            other.change(name, value)?;
        }
        for part in &mut other.parts {
            let name = part.entry.name;
            part.component = part
                .entry
                .component(&part.params)
                .map_err(|why| StackError::of_param(name, ParamError::Contradiction { why }))?;
        }
        Ok(other)
    }

    fn change(&mut self, name: &str, value: &str) -> Result<(), StackError> {
        let (of, plain) = match name.split_once('.') {
            Some((part, name)) => (Some(part), name),
            None => (None, name),
        };
        let in_full = SHORT.iter().find(|(short, _)| *short == plain);
        let plain = in_full.map_or(plain, |(_, long)| *long);
        if of.is_none_or(|of| self.parts[0].entry.answers_to(of)) {
            self.widen(plain)?;
        }
        let mut parts = self.parts.iter_mut();
        let part = parts.find(|p| of.is_none_or(|of| p.entry.answers_to(of)) && p.has(plain));
        match part {
            Some(part) => part.replace(plain, value),
            // A short name resembles nothing.
            None if in_full.is_some() => Err(self.unknown(name, false)),
            None => Err(self.unknown(plain, true)),
        }
    }

    /// A law without parameters becomes the one that it is a case of, if that one has `name`.
    fn widen(&mut self, name: &str) -> Result<(), StackError> {
        let leader = &mut self.parts[0];
        let special = SPECIAL.iter().find(|(law, _)| *law == leader.entry.name);
        if let Some((_, general)) = special {
            let entry = find(general)?;
            if entry.params.iter().any(|p| p.name == name) {
                leader.entry = entry;
                leader.params = Params::defaults(entry.params);
            }
        }
        Ok(())
    }

    fn unknown(&self, name: &str, may_resemble: bool) -> StackError {
        let parts = self.parts.iter().filter(|p| p.entry.kind != Kind::Sending);
        let specs = parts.flat_map(|p| p.entry.params.iter().chain(p.common_specs()));
        let known: Vec<&'static str> = specs.map(|s| s.name).filter(|n| *n != "iw").collect();
        StackError::UnknownParam {
            component: self.parts[0].entry.name,
            nearest: nearest(name, known.iter().copied().chain(BESIDES)).filter(|_| may_resemble),
            name: name.to_owned(),
            known,
        }
    }

    /// Whether a flow that runs already can go on with this stack.
    ///
    /// # Errors
    /// The stack says how the initial window leaves.
    pub fn joins_running_flow(&self) -> Result<(), StackError> {
        let late = |p: &&Part| p.entry.kind == Kind::Sending || p.params.is_given("iw");
        match self.parts.iter().find(late) {
            Some(part) => Err(part.too_late()),
            None => Ok(()),
        }
    }
}

impl Part {
    fn has(&self, name: &str) -> bool {
        let mut specs = self.entry.params.iter().chain(self.common_specs());
        specs.any(|s| s.name == name)
    }

    fn replace(&mut self, name: &str, value: &str) -> Result<(), StackError> {
        if self.entry.kind == Kind::Sending || name == "iw" {
            return Err(self.too_late());
        }
        let own = self.entry.params.iter().any(|s| s.name == name);
        let params = if own {
            &mut self.params
        } else {
            &mut self.common
        };
        let component = self.entry.name;
        params
            .replace(name, value)
            .map_err(|error| StackError::of_param(component, error))
    }

    fn too_late(&self) -> StackError {
        StackError::Contradiction {
            component: self.entry.name,
            why: "the initial window of a running flow has left".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(
        stack: &str,
        settings: &[(&str, &str)],
    ) -> Result<alloc::string::String, StackError> {
        let spec = StackSpec::parse(stack).unwrap();
        spec.changed(settings).map(|s| s.to_string())
    }

    #[test]
    fn a_name_finds_its_part() {
        for (stack, settings, expected) in [
            (
                "aimd(increase=4)",
                &[("a", "6"), ("b", "0.3")][..],
                "aimd(increase=6,decrease=0.3)",
            ),
            ("reno", &[("b", "0.3")], "aimd(decrease=0.3)"),
            ("reno", &[("ecn_keep", "0.8")], "reno(ecn_keep=0.8)"),
            (
                "reno+limited",
                &[("max_ssthresh", "50")],
                "reno+limited(max_ssthresh=50)",
            ),
            (
                "highspeed",
                &[("low_window", "31")],
                "highspeed(low_window=31)",
            ),
            ("bbr", &[("beta", "0.8")], "bbr(beta=0.8)"),
            (
                "cubic(beta=0.6)+spread(t_max=4ms)",
                &[("cubic.beta", "0.5")],
                "cubic(beta=0.5)+spread(t_max=4ms)",
            ),
        ] {
            assert_eq!(changed(stack, settings).as_deref(), Ok(expected), "{stack}");
        }
    }

    #[test]
    fn what_cannot_be_changed_is_refused() {
        let why = |stack, name, value| {
            let error = changed(stack, &[(name, value)]).unwrap_err();
            format!("{error}; {}", error.hint().unwrap_or_default())
        };
        assert_eq!(
            why("aimd", "increse", "6"),
            "`aimd` has no parameter `increse`; did you mean `increase`? known: increase, \
             decrease, ecn_keep"
        );
        assert_eq!(
            why("aimd", "b", "2"),
            "`aimd(decrease)`: `2` is outside 1e-6 to 0.999 fraction; `decrease` takes 1e-6 to \
             0.999 fraction; 0.5 without it"
        );
        assert_eq!(
            why("reno+spread(t_max=4ms)", "t_max", "8ms"),
            "`spread`: the initial window of a running flow has left; "
        );
        assert!(why("cubic", "a", "6").starts_with("`cubic` has no parameter `a`; known: "));
        assert!(why("cubic", "windw", "6").contains("did you mean `window`?"));
        assert!(why("cubic", "limited.max_ssthresh", "6").contains("no parameter"));
        let joins = |stack: &str| StackSpec::parse(stack).unwrap().joins_running_flow();
        assert!(joins("reno+spread").is_err() && joins("cubic+hystart").is_ok());
    }
}
