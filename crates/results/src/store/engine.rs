//! Fingerprints of the sources that decide what a run returns; made by the build script.

/// That of runs on `ground`, a ground's name, perhaps with more words behind it
/// ([`plan`](super::plan)).
pub fn of(ground: &str) -> &'static str {
    match ground.split(' ').next() {
        Some("udp") => env!("FULLPIPE_ENGINE_UDP"),
        _ => env!("FULLPIPE_ENGINE"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_runs_over_sockets_depend_on_the_endpoint() {
        assert_eq!(of("sim"), env!("FULLPIPE_ENGINE"));
        assert_ne!(of("udp"), of("sim"));
        assert_eq!(of("udp to 192.0.2.1:6220"), of("udp"));
    }
}
