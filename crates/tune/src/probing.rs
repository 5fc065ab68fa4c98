//! What the daemon finds out about paths by itself: another process measures one path after the
//! other, and what it found is kept in a file with its age.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fullpipe_policy::measured::{read, written};
use fullpipe_policy::{Measured, Measurements, PathFacts};

use crate::folder;

/// Measures paths, one at a time.
#[derive(Debug)]
pub struct Probing {
    file: PathBuf,
    known: Measurements,
    /// The program, which takes a host as its last argument and prints a measurement; `None`:
    /// nothing is measured.
    program: Option<Vec<std::ffi::OsString>>,
    running: Option<Running>,
    /// When a host was asked that did not answer, or whose answer is not valid.
    failed: BTreeMap<String, Instant>,
}

#[derive(Debug)]
struct Running {
    host: String,
    child: Child,
    since: Instant,
}

/// Outcome of a probe.
#[derive(Debug)]
pub enum Probed {
    /// Something is known that was not.
    Measured(String, Measured),
    /// Host, and what the program complained of.
    Failed(String, String),
}

/// A probe that takes longer has gone astray.
const LONGEST: Duration = Duration::from_secs(60);
/// Until such a host is asked again.
const AGAIN: Duration = Duration::from_secs(300);

impl Probing {
    /// What was measured before is in `file`.
    ///
    /// # Errors
    /// It is there and cannot be read.
    pub fn open(file: PathBuf, program: Option<&Command>) -> io::Result<Self> {
        let known = match folder::text(&file) {
            Ok(text) => read(&text),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Measurements::new(),
            Err(e) => return Err(e),
        };
        let words = |command: &Command| {
            let program = command.get_program().to_owned();
            std::iter::once(program)
                .chain(command.get_args().map(Into::into))
                .collect()
        };
        Ok(Self {
            file,
            known,
            program: program.map(words),
            running: None,
            failed: BTreeMap::new(),
        })
    }

    /// Measurements of this daemon and those before it.
    pub fn known(&self) -> &Measurements {
        &self.known
    }

    /// Has everything measured anew.
    pub fn forget(&mut self) {
        for measured in self.known.values_mut() {
            measured.at = 0;
        }
        self.failed.clear();
    }

    /// Begins the next probe that `paths` want, or ends the one that runs.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn look(&mut self, paths: &[&PathFacts]) -> io::Result<Option<Probed>> {
        if let Some(mut running) = self.running.take() {
            return match running.child.try_wait() {
                Ok(Some(status)) => self.ended(running, status.success()).map(Some),
                Ok(None) if running.since.elapsed() < LONGEST => {
                    self.running = Some(running);
                    Ok(None)
                }
                _ => {
                    let _ = running.child.kill();
                    let _ = running.child.wait();
                    Ok(Some(self.fail(running.host, "no end of it".to_owned())))
                }
            };
        }
        let Some(program) = &self.program else {
            return Ok(None);
        };
        let due = paths.iter().find_map(|facts| {
            let (host, every) = facts.probe.as_ref()?;
            let known = self.known.get(host);
            let lasts = every.as_secs_f64() as u64;
            let fresh = known.is_some_and(|m| m.valid && m.counts(now(), lasts));
            let tried = self.failed.get(host);
            let rests = tried.is_some_and(|at| at.elapsed() < AGAIN);
            (!fresh && !rests).then(|| host.clone())
        });
        let Some(host) = due else { return Ok(None) };
        let mut command = Command::new(&program[0]);
        command.args(&program[1..]).arg(&host);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        match command.spawn() {
            Ok(child) => {
                let since = Instant::now();
                self.running = Some(Running { host, child, since });
                Ok(None)
            }
            Err(e) => Ok(Some(self.fail(host, e.to_string()))),
        }
    }

    fn ended(&mut self, mut running: Running, well: bool) -> io::Result<Probed> {
        let mut said = String::new();
        let mut complained = String::new();
        if let Some(out) = &mut running.child.stdout {
            let _ = out.take(MOST).read_to_string(&mut said);
        }
        if let Some(out) = &mut running.child.stderr {
            let _ = out.take(MOST).read_to_string(&mut complained);
        }
        let value = serde_json::from_str(&said).unwrap_or_default();
        match Measured::from_json(&value).filter(|_| well) {
            Some(Measured {
                limit: Some(limit), ..
            }) => {
                let why = format!("its server allows no more than {limit}");
                Ok(self.fail(running.host, why))
            }
            Some(measured) if !measured.valid && self.knows_valid(&running.host) => {
                let why = "the hosts were late (not valid); what was measured before counts";
                Ok(self.fail(running.host, why.to_owned()))
            }
            Some(measured) => {
                match measured.valid {
                    true => self.failed.remove(&running.host),
                    // Better than nothing, until there is a better one.
                    false => self.failed.insert(running.host.clone(), Instant::now()),
                };
                self.known.insert(running.host.clone(), measured);
                let new = self.file.with_extension("new");
                fs::write(&new, written(&self.known))?;
                fs::rename(&new, &self.file)?;
                Ok(Probed::Measured(running.host, measured))
            }
            None => {
                let why = complained.lines().next().unwrap_or("it printed nothing");
                let why = why.trim_start_matches("error: ").to_owned();
                Ok(self.fail(running.host, why))
            }
        }
    }

    fn knows_valid(&self, host: &str) -> bool {
        self.known.get(host).is_some_and(|m| m.valid)
    }

    fn fail(&mut self, host: String, why: String) -> Probed {
        self.failed.insert(host.clone(), Instant::now());
        Probed::Failed(host, why)
    }
}

impl Drop for Probing {
    fn drop(&mut self) {
        if let Some(running) = &mut self.running {
            let _ = running.child.kill();
            let _ = running.child.wait();
        }
    }
}

/// Bytes of an answer.
const MOST: u64 = 65_536;

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |t| t.as_secs())
}

#[cfg(test)]
mod tests {
    use fullpipe_policy::{Policy, Source};

    use super::*;

    fn policy(known: &Measurements) -> Policy {
        let text = "[[path]]\nname = \"lab\"\nto = \"192.0.2.0/24\"\nstack = \"reno\"\n\
                    probe = \"192.0.2.7\"\nprobe_every = \"1min\"\nbuffers = \"bdp*2\"\n";
        let source = Source {
            name: "policy.toml".into(),
            text: text.into(),
        };
        Policy::parse_with(&[source], known).unwrap()
    }

    /// A program that says what it is told to.
    fn says(text: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{text} # $0")]);
        command
    }

    fn until_something(probing: &mut Probing, policy: &Policy) -> Probed {
        let paths: Vec<&PathFacts> = policy.facts().collect();
        let begin = Instant::now();
        loop {
            if let Some(probed) = probing.look(&paths).unwrap() {
                return probed;
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "no answer");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn what_was_measured_is_kept_and_used() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("measured");
        let at = now();
        let answer = format!(
            "echo '{{\"rate_bps\": 100000000, \"rtt_ns\": 80000000, \"buffer_bytes\": 450000, \
             \"lost\": true, \"at\": {at}}}'"
        );
        let mut probing = Probing::open(file.clone(), Some(&says(&answer))).unwrap();
        let before = policy(probing.known());
        assert!(before.compiled.rules.is_empty(), "it waits");
        let Probed::Measured(host, measured) = until_something(&mut probing, &before) else {
            panic!("it answers");
        };
        assert_eq!((host.as_str(), measured.at), ("192.0.2.7", at));
        let after = policy(probing.known());
        // 666 whole packets of 1500 B, 1448 of them payload.
        assert_eq!(
            after.compiled.rules[0].send_buffer,
            Some(2 * 666 * 1448 + 1448)
        );
        // Fresh: nobody is asked. The next daemon knows it.
        let paths: Vec<&PathFacts> = after.paths.iter().collect();
        assert!(probing.look(&paths).unwrap().is_none() && probing.running.is_none());
        let mut again = Probing::open(file, Some(&says("false"))).unwrap();
        assert_eq!(again.known(), probing.known());
        again.forget();
        assert!(matches!(
            until_something(&mut again, &after),
            Probed::Failed(..)
        ));
    }

    #[test]
    fn a_file_that_is_damaged_is_measured_anew() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("measured");
        fs::write(&file, b"{\"192.0.2.7\": \xff").unwrap();
        let probing = Probing::open(file, Some(&says("false"))).unwrap();
        assert!(probing.known().is_empty());
    }

    /// The path has more than what a server lets through: nothing is known of its rate.
    #[test]
    fn a_rate_that_the_server_limits_is_not_the_path_s() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("measured");
        for (limit, due) in [
            (
                "\"server_max_rate_bps\": 150000000",
                "its server allows no more than 150Mbit/s (`serve --max-rate`)",
            ),
            (
                "\"server_max_bytes\": 2000000",
                "its server allows no more than 2MB (`serve --max-bytes`)",
            ),
        ] {
            let answer = format!(
                "echo '{{\"rate_bps\": 151000000, \"rtt_ns\": 80000000, \"buffer_bytes\": 450000, \
                 \"lost\": false, {limit}, \"at\": {}}}'",
                now()
            );
            let mut probing = Probing::open(file.clone(), Some(&says(&answer))).unwrap();
            let waiting = policy(probing.known());
            let Probed::Failed(_, why) = until_something(&mut probing, &waiting) else {
                panic!("it is stored: {limit}");
            };
            assert_eq!((why.as_str(), probing.known().len()), (due, 0));
            assert!(!file.exists());
        }
    }

    #[test]
    fn a_host_that_does_not_answer_is_asked_again_later() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("measured");
        for (program, said) in [
            (
                "echo 'error: nobody is there' >&2; exit 3",
                "nobody is there",
            ),
            ("echo 12", "it printed nothing"),
        ] {
            let mut probing = Probing::open(file.clone(), Some(&says(program))).unwrap();
            let waiting = policy(probing.known());
            let Probed::Failed(host, why) = until_something(&mut probing, &waiting) else {
                panic!("{program}");
            };
            assert_eq!((host.as_str(), why.as_str()), ("192.0.2.7", said));
            let paths: Vec<&PathFacts> = waiting.facts().collect();
            assert!(probing.look(&paths).unwrap().is_none() && probing.running.is_none());
        }
    }
}
