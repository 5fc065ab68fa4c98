//! Traffic that is no lasting flow: classes of short flows, each over a socket of its own, and
//! datagrams and probes, which the driver sends.

use std::fmt::Write as _;

use fullpipe_run::{CrossSpec, FlowSpec, RunSpec};
use fullpipe_units::Time;

use super::flow::{FIRST_PORT, sides};
use super::{Plan, Traffic, address, class_file};
use crate::switches::Switches;

impl Plan {
    pub(super) fn class(&mut self, class: usize, s: &Switches, spec: &RunSpec, traffic: &Traffic) {
        let template = &spec.arrivals[class].template;
        let first = traffic.first_of_class(spec)[class];
        let (near, far) = sides(template);
        let mss = u64::from(template.sender.mss);
        let mut flows = String::new();
        for (k, (start, segments)) in traffic.classes[class].iter().enumerate() {
            let (i, bytes) = (first + k, segments * mss);
            if k == 0 {
                let unending = FlowSpec {
                    stop: None,
                    ..template.clone()
                };
                self.known(i, &unending, s, bytes, true);
            } else {
                let _ = writeln!(self.net, "like {i} {first} {bytes}");
            }
            let (start, from, to) = (start.as_nanos(), address(near, i), address(far, i));
            let _ = writeln!(flows, "{start} {from} {to} {bytes}");
        }
        let port = FIRST_PORT + spec.flows.len() + class;
        let (rcvbuf, clamp) = s.window;
        let file = class_file(class);
        let _ = writeln!(self.apps, "take {far} {port} {rcvbuf} {clamp}");
        let (module, pace) = (&s.module, s.pace);
        let _ = writeln!(self.apps, "class {near} {port} {module} {pace} {file}");
        self.classes.push(flows);
    }

    pub(super) fn cross(&mut self, i: usize, cross: &CrossSpec, departures: &[Time]) {
        let answered = u8::from(cross.answered);
        let _ = writeln!(self.net, "cross {i} {answered} {}", cross.packet);
        self.route("there", i, &cross.forward);
        if cross.answered {
            self.route("back", i, &cross.back);
        }
        for some in departures.chunks(256) {
            let some: Vec<String> = some.iter().map(|t| t.as_nanos().to_string()).collect();
            let _ = writeln!(self.net, "depart {i} {}", some.join(" "));
        }
    }
}
