//! Numbers that papers, RFCs, kernels and the Net100 and SLAC pages print, and such as were
//! computed from their formulas, met by the laws and the running controllers.
//!
//! "Computed" numbers come from scripts written for this purpose; one round is one RTT in which the
//! window is acknowledged in one step, `w += a(w)`, unless a test says "per segment".

mod aimd;
mod bic;
mod cubic;
mod fast;
mod highspeed;
mod htcp;
mod hybla;
mod hystart;
mod illinois;
mod increase;
mod ledbat;
mod limited;
mod lp;
mod net100;
mod scalable;
mod settled;
mod stepped;
mod vegas;
mod veno;
mod westwood;
mod yeah;

/// Asserts `|got - want| <= tolerance`, naming the case.
#[track_caller]
fn near(got: f64, want: f64, tolerance: f64, what: impl std::fmt::Display) {
    assert!(
        (got - want).abs() <= tolerance,
        "{what}: {got}, published {want}"
    );
}
