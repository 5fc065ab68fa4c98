//! The tables of a case, read.

use fullpipe_units::Span;

use crate::files::Files;
use crate::keys::{Flow, Link, Measures, Path, Route, Traffic};
use crate::matrix::{Config, Names};
use crate::value::{At, Record, Table, member_path};

/// The tables of a case.
pub(super) struct Tables<'a> {
    pub path: At<'a, Path>,
    pub measure: At<'a, Measures>,
    pub flows: Vec<Named<'a, Flow>>,
    pub traffic: Vec<Named<'a, Traffic>>,
    pub links: Vec<Named<'a, Link>>,
    pub routes: Vec<At<'a, Route>>,
}

/// A table of a list whose tables have names.
pub(super) struct Named<'a, T> {
    pub name: &'a str,
    pub at: At<'a, T>,
}

/// Everything that a case is resolved from.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    pub tables: &'a Tables<'a>,
    pub files: &'a Files,
    pub duration: Span,
}

impl<'a> Tables<'a> {
    pub fn new(config: &'a Config, names: &'a Names) -> Self {
        fn named<'a, T: Table>(
            section: &str,
            records: &'a [Record],
            names: &'a [String],
        ) -> Vec<Named<'a, T>> {
            let of = |(record, name): (&'a Record, &'a String)| Named {
                name,
                at: At::new(record, member_path(section, name)),
            };
            records.iter().zip(names).map(of).collect()
        }
        let route = |(i, record)| At::new(record, format!("route[{}]", i + 1));
        Self {
            path: At::new(&config.path, "path"),
            measure: At::new(&config.measure, "measure"),
            flows: named("flow", &config.flows, &names.flows),
            traffic: named("traffic", &config.traffic, &names.traffic),
            links: named("link", &config.links, &names.links),
            routes: config.routes.iter().enumerate().map(route).collect(),
        }
    }
}
