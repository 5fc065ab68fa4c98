//! What a tuner that runs on this host says of flows, if there is one (`fullpipe tune run`).
//!
//! Its socket takes a line of JSON and answers with one; everybody may ask.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

/// Name of the socket in the tuner's folder.
pub const SOCKET: &str = "socket";
/// Of the daemon, for a request and for its answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// What a flow has of a policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tuned {
    /// Name of the path.
    pub path: String,
    /// Left as it was, for comparison.
    pub control: bool,
    /// Increase in force, segments per round trip; [`None`] before the first, and where the
    /// kernel's own algorithm runs.
    pub a: Option<f64>,
    /// Fraction that a loss removes, in force.
    pub b: Option<f64>,
}

/// Asks a tuner.
///
/// # Errors
/// Nobody listens there, or it answers that it cannot (`error` of the answer).
pub fn ask(socket: &Path, request: &Value) -> io::Result<Value> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    stream.write_all(format!("{request}\n").as_bytes())?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    let answer: Value = serde_json::from_str(&line).map_err(io::Error::other)?;
    match answer["error"].as_str() {
        Some(why) => Err(io::Error::other(why.to_owned())),
        None => Ok(answer),
    }
}

/// The flows that have a path, by cookie.
///
/// # Errors
/// See [`ask`].
pub fn tuned(socket: &Path) -> io::Result<HashMap<u64, Tuned>> {
    let answer = ask(socket, &json!({ "verb": "flows" }))?;
    let flows = answer["flows"].as_array().into_iter().flatten();
    let tuned = flows.filter_map(|flow| {
        let tuned = Tuned {
            path: flow["path"].as_str()?.to_owned(),
            control: flow["arm"] == "control",
            a: flow["a_segments"].as_f64(),
            b: flow["b_fraction"].as_f64(),
        };
        Some((flow["cookie"].as_u64()?, tuned))
    });
    Ok(tuned.collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::thread;

    use super::*;

    #[test]
    fn an_answer_is_read_and_a_refusal_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join(SOCKET);
        assert!(tuned(&socket).is_err(), "nobody listens");
        let listener = UnixListener::bind(&socket).unwrap();
        let answers = [
            r#"{"flows":[{"cookie":7,"path":"lab","arm":"policy","a_segments":4.5,"b_fraction":null}]}"#,
            r#"{"error":"busy"}"#,
        ];
        let serve = thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut line = String::new();
                BufReader::new(stream.try_clone().unwrap())
                    .read_line(&mut line)
                    .unwrap();
                assert_eq!(line, "{\"verb\":\"flows\"}\n");
                stream.write_all(format!("{answer}\n").as_bytes()).unwrap();
            }
        });
        let flow = Tuned {
            path: "lab".to_owned(),
            a: Some(4.5),
            ..Tuned::default()
        };
        assert_eq!(tuned(&socket).unwrap(), HashMap::from([(7, flow)]));
        assert_eq!(tuned(&socket).unwrap_err().to_string(), "busy");
        serve.join().unwrap();
    }
}
