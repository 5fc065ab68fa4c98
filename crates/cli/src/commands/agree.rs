//! `fullpipe agree`.

use std::num::NonZeroUsize;
use std::path::Path;

use fullpipe_cc::StackSpec;
use fullpipe_grounds::{CAUSES, Cause, Entry, Setting, Switched, stand_in, with_stand_in};
use fullpipe_net::io::WaitStrategy;
use fullpipe_report::{agreement, figure};
use fullpipe_results::agreement::study::{
    Agreement, CauseVerdict, Furthest, PairAgreement, StudyOptions, Switch, Turned, agree as study,
    cause_directory, directory,
};
use fullpipe_results::capture::Captures;
use fullpipe_results::compare::{Comparison, Row, Verdict};
use fullpipe_results::run::Options;
use fullpipe_results::store::{Earlier, ResultDir};
use fullpipe_run::Ground;
use fullpipe_scenario::{Overrides, Scenario};

use super::compare;
use super::run::{INTERRUPT, RUNS_FINISH, listen_for_interrupts, load};
use crate::args::{Agree, ShortFormat, ShowProgress};
use crate::exit::{Exit, Failure};
use crate::ground::{Flags, Foreign};
use crate::progress::Progress;
use crate::table::{Align, Table};
use crate::{ground, output};

/// Runs the command.
pub fn agree(args: &Agree) -> Result<Exit, Failure> {
    let entries = args.grounds.iter().map(|name| ground::entry(name));
    let entries = entries.collect::<Result<Vec<_>, _>>()?;
    if args.grounds.len() < 2 {
        let message = "one ground agrees with itself";
        let hint = "name two or more: `--grounds sim,kernel`";
        return Err(Failure::new(Exit::Usage, message).hint(hint));
    }
    if let Some(twice) =
        (1..args.grounds.len()).find(|&i| args.grounds[..i].contains(&args.grounds[i]))
    {
        let message = format!(
            "ground `{}` stands twice: it agrees with itself",
            args.grounds[twice]
        );
        let hint = "name different ones: `--grounds sim,kernel`";
        return Err(Failure::new(Exit::Usage, message).hint(hint));
    }
    let scenario = scenario(args)?;
    let passing;
    let out: &Path = match &args.out {
        Some(dir) => dir,
        None => {
            passing = tempfile::tempdir().map_err(|e| {
                Failure::new(
                    Exit::Environment,
                    format!("no directory for the results: {e}"),
                )
                .hint("name one: `--out DIR`")
            })?;
            passing.path()
        }
    };
    let mut settings = ground::settings(args.kernel.clone(), &INTERRUPT);
    settings.running.at_once = args.jobs.unwrap_or(NonZeroUsize::MIN);
    settings.kernel.module = args.kernel_module.clone();
    if args.spin {
        settings.sockets.wait = WaitStrategy::Spin;
    }
    settings.sockets.pin = args.pin;
    about_grounds(args, &entries)?;
    own_module(args, &entries, &scenario)?;
    let stands_in = args.own_is.as_ref();
    let grounds = entries.iter().map(|entry| {
        let ground = (entry.build)(settings.clone())?;
        Ok::<_, Failure>(match stands_in.filter(|_| !entry.takes(Setting::Kernel)) {
            Some(stack) => with_stand_in(ground, stack),
            None => ground,
        })
    });
    let grounds = grounds.collect::<Result<Vec<_>, _>>()?;
    // A cause that the directory has tried costs nothing when its runs are taken over.
    let tried_before = |c: &Cause| {
        let mut others = args.grounds.iter().skip(1);
        args.resume && others.any(|other| cause_directory(out, other, c.name).is_dir())
    };
    let named = |c: &Cause| args.causes.is_empty() || args.causes.iter().any(|n| n == c.name);
    let wanted = |c: &Cause| !args.no_causes && (named(c) || tried_before(c));
    let of_grounds = CAUSES
        .iter()
        .filter(|c| {
            args.grounds
                .iter()
                .any(|g| c.ground.is_none_or(|on| g == on))
        })
        .filter(|c| concerns(c, &scenario, stands_in));
    let (of_grounds, left): (Vec<&Cause>, Vec<&Cause>) = of_grounds.partition(|c| wanted(c));
    let left: Vec<(&str, Option<&str>)> = left.iter().map(|c| (c.name, c.ground)).collect();
    let mut switched: Vec<(&Cause, Switched)> = Vec::new();
    for cause in of_grounds {
        if let Some(ground) = cause.switched(&settings) {
            switched.push((cause, standing(ground?, cause, stands_in)));
        }
    }
    let switches: Vec<Switch<'_>> = switched
        .iter()
        .map(|(cause, switched)| Switch {
            name: cause.name,
            about: cause.about,
            turned: match switched {
                Switched::Now(ground) => Turned::Now(&**ground),
                Switched::Later(on, make) => Turned::Later(on, &**make),
                Switched::Phase(turn) => Turned::Phase(&**turn),
            },
        })
        .collect();
    listen_for_interrupts(RUNS_FINISH)?;
    let progress = Progress::new(&scenario.name, ShowProgress::Auto.unless(args.quiet));
    let options = StudyOptions {
        run: Options {
            jobs: args.jobs.map_or(0, usize::from),
            out: Some(out),
            earlier: match args.replace {
                true => Earlier::Replaced,
                false => Earlier::resumed(args.resume),
            },
            captures: Captures::default(),
            cases: None,
            progress: &progress,
            interrupt: &INTERRUPT,
        },
        with_flagged: args.with_flagged,
        left: &left,
    };
    let said = |line: &str| {
        if !args.quiet {
            output::say(line);
        }
    };
    let borrowed: Vec<&dyn Ground> = grounds.iter().map(|g| &**g).collect();
    let found = study(&scenario, &borrowed, &switches, &options, &said);
    progress.finish();
    let mut found = found?;
    found.own_is = stands_in.map(ToString::to_string);
    if !args.quiet {
        let notes: Vec<String> = grounds.iter().flat_map(|ground| ground.notes()).collect();
        let new = |i: &usize| !notes[..*i].contains(&notes[*i]);
        let notes = (0..notes.len()).filter(new).map(|i| &notes[i]);
        notes.for_each(|note| output::warning(note));
    }
    let tried = |name: &&String| {
        let mut all = found.pairs.iter().flat_map(|pair| &pair.causes);
        all.any(|tried| tried.cause == **name)
    };
    let parts = found
        .pairs
        .iter()
        .any(|pair| beyond(&pair.comparison).next().is_some());
    for name in args.causes.iter().filter(|name| parts && !tried(name)) {
        said(&format!(
            "cause `{name}`: not tried: no flow can show it, its ground is not among these, the test \
             bed added nothing, or no two senders share a buffer that fills"
        ));
    }
    if args.out.is_some() {
        pictures(out, &found)?;
        let page = agreement::write(out, &found)?;
        said(&format!("report: {}", page.display()));
    }
    match args.format {
        ShortFormat::Table => output::data(&text(&found))?,
        ShortFormat::Json => output::data(&agreement::json(&found))?,
    }
    let part = |pair: &PairAgreement| {
        let c = &pair.comparison;
        !pair.is_empty() && (!c.agree || c.rows.is_empty())
    };
    Ok(compare::exit(found.pairs.iter().any(part), found.flagged))
}

fn scenario(args: &Agree) -> Result<Scenario, Failure> {
    let overrides = Overrides {
        set: args.set.clone(),
        seed: None,
        repeat: args.repeat,
        quick: args.quick,
        world: Vec::new(),
    };
    let (mut scenarios, studies) = load(std::slice::from_ref(&args.scenario), &overrides)?;
    match (scenarios.pop(), studies.is_empty()) {
        (Some(scenario), true) => Ok(scenario),
        _ => {
            let message = format!("`{}` is a study of several scenarios", args.scenario);
            Err(Failure::new(Exit::Usage, message).hint("name one of its scenarios"))
        }
    }
}

/// Refuses what is about a ground that is not among these.
fn about_grounds(args: &Agree, entries: &[&Entry]) -> Result<(), Failure> {
    let flags: [Flags; 4] = [
        (&["`--kernel`"], args.kernel.is_some(), Setting::Kernel),
        (
            &["`--kernel-module`"],
            args.kernel_module.is_some(),
            Setting::Kernel,
        ),
        (&["`--spin`"], args.spin, Setting::Datagrams),
        (&["`--pin`"], args.pin.is_some(), Setting::Datagrams),
    ];
    let Some(foreign) = Foreign::of(entries, &flags) else {
        return Ok(());
    };
    let message = format!("{}, which is not among these", foreign.message());
    let hint = format!("write `--grounds sim,{}`", foreign.grounds[0]);
    Err(Failure::new(Exit::Usage, message).hint(hint))
}

/// Whether this ground runs a module of the user's own.
fn has_own_module(ground: &str) -> bool {
    ground::entry(ground).is_ok_and(|entry| entry.takes(Setting::Kernel))
}

/// Refuses a module of the user's own on grounds that cannot run it, where nothing stands for it.
fn own_module(args: &Agree, entries: &[&Entry], scenario: &Scenario) -> Result<(), Failure> {
    let mut others = entries.iter().filter(|entry| !entry.takes(Setting::Kernel));
    let (Some(other), None) = (others.next(), &args.own_is) else {
        return Ok(());
    };
    let other = other.name;
    let mut specs = scenario.cases.iter().map(|case| case.run_spec(0));
    let is_own = specs.any(|spec| {
        let templates = spec.arrivals.iter().map(|a| &a.template);
        let mut flows = spec.flows.iter().chain(templates);
        flows.any(|flow| !flow.stack.has_law())
    });
    if !is_own {
        return Ok(());
    }
    let message = format!(
        "`own-linux` is a module for the kernel of ground linux, and ground {other} is to run it"
    );
    let hint = format!(
        "write `--grounds {other},linux --kernel-module FILE --own-is STACK`: {other} then runs \
         STACK in its place"
    );
    Err(Failure::new(Exit::Usage, message).hint(hint))
}

/// The switched ground with the stack that stands for the user's own module.
fn standing(switched: Switched, cause: &Cause, stack: Option<&StackSpec>) -> Switched {
    let runs_it = cause.ground.is_some_and(has_own_module);
    let Some(stack) = stack.filter(|_| !runs_it).cloned() else {
        return switched;
    };
    match switched {
        Switched::Now(ground) => Switched::Now(with_stand_in(ground, &stack)),
        Switched::Later(on, make) => {
            let late = move |late| with_stand_in(make(late), &stack);
            Switched::Later(on, Box::new(late))
        }
        // The stack stands on the pair's own grounds.
        phase @ Switched::Phase(_) => phase,
    }
}

/// Whether a flow of any case can show it.
fn concerns(cause: &Cause, scenario: &Scenario, stands_in: Option<&StackSpec>) -> bool {
    let mut specs = scenario.cases.iter().map(|c| c.run_spec(0));
    specs.any(|spec| {
        let runs_it = cause.ground.is_some_and(has_own_module);
        let spec = match stands_in.filter(|_| !runs_it) {
            Some(stack) => stand_in(&spec, stack),
            None => spec,
        };
        let templates = spec.arrivals.iter().map(|a| &a.template);
        let mut flows = spec.flows.iter().chain(templates);
        flows.any(|f| cause.concerns(f))
    })
}

/// The windows of each pair over each other.
fn pictures(out: &Path, found: &Agreement) -> Result<(), Failure> {
    let first = ResultDir::open(&directory(out, &found.grounds[0]))?;
    for other in &found.grounds[1..] {
        let result = ResultDir::open(&directory(out, other))?;
        figure::write_overlay(&first, &result, &out.join(agreement::pictures(other)))?;
    }
    Ok(())
}

fn text(found: &Agreement) -> String {
    let pairs: Vec<String> = found.pairs.iter().map(pair).collect();
    let own = match &found.own_is {
        Some(stack) => format!("`{stack}` in place of `own-linux` on every ground but linux\n"),
        None => String::new(),
    };
    own + &pairs.join("\n")
}

fn beyond(comparison: &Comparison) -> impl Iterator<Item = &Row> {
    let rows = comparison.rows.iter();
    rows.filter(|r| r.judged && r.verdict == Verdict::Beyond)
}

fn pair(pair: &PairAgreement) -> String {
    let mut out = match pair.is_empty() {
        true => compare::not_compared(&pair.comparison),
        false => compare::text(&pair.comparison, "", false),
    };
    out += &compare::left_out(&pair.left_out);
    let apart: Vec<&Row> = beyond(&pair.comparison).collect();
    if !apart.is_empty() {
        out += "\nbeyond:\n";
        out += &compare::table(&pair.comparison, &apart);
    }
    let follows = match pair.conclusion.says.as_slice() {
        [] => String::new(),
        says => format!("\nwhat follows: {}\n", says.join("\n  ")),
    };
    if pair.causes.is_empty() {
        return out + &follows;
    }
    let mut table = Table::new();
    table.column(Align::Left, &["cause"]);
    table.column(Align::Left, &["on"]);
    table.column(Align::Right, &["beyond,", "before"]);
    table.column(Align::Right, &["", "switched"]);
    table.column(Align::Right, &["furthest,", "before"]);
    table.column(Align::Right, &["", "switched"]);
    table.column(Align::Left, &["verdict"]);
    for tried in &pair.causes {
        let verdict = match tried.verdict {
            CauseVerdict::Explains => "explains it",
            CauseVerdict::InPart => "in part",
            CauseVerdict::No => "no",
            CauseVerdict::Worse => "worse",
            CauseVerdict::Untried => tried.why_not.as_deref().unwrap_or("untried"),
        };
        table.row(vec![
            tried.cause.clone(),
            tried.ground.clone(),
            tried.before.to_string(),
            tried.after.map_or("-".to_owned(), |n| n.to_string()),
            Furthest::text(tried.furthest_before.as_ref()),
            Furthest::text(tried.furthest_after.as_ref()),
            verdict.to_owned(),
        ]);
    }
    out + "\n" + &table.text() + "\n" + FURTHEST + &follows
}

/// What the columns of the causes are.
const FURTHEST: &str = "\
beyond: numbers and distances over their thresholds; furthest: the largest of them, as a multiple of
its threshold, without counts that have to be equal
";

#[cfg(test)]
mod tests {
    use fullpipe_results::agreement::study::{Chance, Conclusion, TestBed};
    use fullpipe_results::compare::{Side, View};
    use fullpipe_results::result::Params;

    use super::*;

    #[test]
    fn without_a_case_nothing_agrees() {
        let side = |ground: &str, untrue: Option<&str>| Side {
            fullpipe: String::new(),
            scenario: "one".to_owned(),
            ground: ground.to_owned(),
            kernel: None,
            brought: Vec::new(),
            warmup: None,
            untrue: untrue.map(str::to_owned),
            test_bed: None,
        };
        let nothing = PairAgreement {
            comparison: Comparison {
                a: side("sim", None),
                b: side("kernel", Some("2 of 2 runs")),
                rows: Vec::new(),
                distances: Vec::new(),
                missing: Vec::new(),
                left_out: Vec::new(),
                unknown: Vec::new(),
                view: View::Agreement,
                single: false,
                agree: true,
            },
            left_out: vec![Params::default()],
            causes: Vec::new(),
            conclusion: Conclusion {
                test_bed: TestBed::Flagged,
                chance: Chance::Untried,
                explained_by: Vec::new(),
                in_part_by: Vec::new(),
                worse_with: Vec::new(),
                furthest: None,
                not_tried: Vec::new(),
                unexercised: Vec::new(),
                says: Vec::new(),
            },
        };
        let text = pair(&nothing);
        assert!(
            text.starts_with("nothing of one on sim and kernel could be compared\n"),
            "{text}"
        );
        assert!(text.contains("kernel is NOT VALID: 2 of 2 runs"), "{text}");
        assert!(!text.contains("agree"), "{text}");
    }
}
