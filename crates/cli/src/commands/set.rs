//! `fullpipe set`.

use fullpipe_net::orders;

use crate::args::Set;
use crate::exit::{Exit, Failure};
use crate::output;

/// Runs the command.
pub fn set(args: &Set) -> Result<Exit, Failure> {
    let flow = args.flow.as_deref().unwrap_or("*");
    if args
        .words
        .as_ref()
        .is_some_and(|words| words.trim().is_empty())
    {
        let hint = "write for example a=6,b=0.3; without this word the flows are shown";
        return Err(Failure::new(Exit::Usage, "nothing is changed").hint(hint));
    }
    let request = match &args.words {
        Some(words) => format!("set {flow} {words}"),
        None => "show".to_owned(),
    };
    if request.contains('\n') {
        return Err(Failure::new(Exit::Usage, "a change is one line"));
    }
    let answer = orders::ask(&args.path, &request).map_err(|error| {
        let what = format!("{}: {error}", args.path.display());
        let hint = "name the socket of a running `fullpipe send --control PATH`";
        Failure::new(Exit::Environment, what).hint(hint)
    })?;
    if let Some(refusal) = answer.strip_prefix("error: ") {
        let refusal = refusal.trim_end();
        return Err(match refusal.split_once("\nhint: ") {
            Some((what, hint)) => Failure::new(Exit::Usage, what).hint(hint),
            None => Failure::new(Exit::Usage, refusal),
        });
    }
    output::data(&answer)?;
    Ok(Exit::Ok)
}
