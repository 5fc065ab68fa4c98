//! Whether the seed of a run decides anything in it. Where it does not, further seeds repeat one
//! run.

use fullpipe_cc::Kind;

use super::{
    ArrivalSpec, Arrivals, CrossSpec, Departures, Discipline, FlowSpec, LinkSpec, Loss, RunSpec,
    SizeLaw, Spacing, Waveform,
};
use fullpipe_units::Span;

impl RunSpec {
    /// True if something in the run may be drawn from its seed; false: every seed gives the same
    /// run in virtual time. A queue discipline other than drop-tail, a module of Linux and a
    /// model-based controller count as drawing, whether they do or not.
    pub fn is_random(&self) -> bool {
        // Every field, so that a new one is not forgotten.
        let Self {
            seed: _,
            duration: _,
            measure_from: _,
            interval: _,
            links,
            flows,
            arrivals,
            cross,
            trace: _,
            capture: _,
        } = self;
        links.iter().any(of_link)
            || flows.iter().any(of_flow)
            || arrivals.iter().any(of_arrivals)
            || cross.iter().any(of_cross)
    }

    /// True if two flows or more start at times that no seed moves, so that they meet in the same
    /// phase in every run.
    pub fn starts_in_phase(&self) -> bool {
        let fixed = self.flows.iter().filter(|f| f.start_spread == Span::ZERO);
        fixed.count() > 1
    }
}

fn of_link(link: &LinkSpec) -> bool {
    let LinkSpec {
        name: _,
        rate: _,
        delay: _,
        delay_spread,
        buffer: _,
        discipline,
        loss,
        loss_of_acks: _,
        jitter,
        reorder,
        policer: _,
        schedule,
        trace: _,
        watched: _,
        is_interface: _,
    } = link;
    let losses = || schedule.iter().filter_map(|change| change.loss.as_ref());
    *delay_spread != Span::ZERO
        || *discipline != Discipline::DropTail
        || *loss != Loss::None
        || *jitter != Span::ZERO
        || reorder.is_some()
        || losses().any(|loss| *loss != Loss::None)
}

fn of_flow(flow: &FlowSpec) -> bool {
    let FlowSpec {
        name: _,
        stack,
        sender,
        receiver: _,
        forward: _,
        back: _,
        local_queue: _,
        start: _,
        start_spread,
        stop: _,
        drops,
        arrival_drops,
        changes,
        reverse: _,
        preset: _,
        written: _,
    } = flow;
    let later = changes.iter().filter_map(|c| c.change.stack.as_ref());
    let draws = |kind| matches!(kind, Kind::Module | Kind::Model);
    *start_spread != Span::ZERO
        || std::iter::once(stack).chain(later).any(|s| draws(s.kind()))
        || sender.artificial_loss.probability > 0.0
        || drops.probability > 0.0
        || arrival_drops.probability > 0.0
}

fn of_arrivals(class: &ArrivalSpec) -> bool {
    let ArrivalSpec {
        template,
        arrivals,
        sizes,
        session,
        seeded_by: _,
    } = class;
    !matches!(arrivals, Arrivals::Every(_))
        || session.goes_on()
        || !matches!(sizes, SizeLaw::Fixed(_))
        || of_flow(template)
}

fn of_cross(cross: &CrossSpec) -> bool {
    match &cross.departures {
        Departures::Every(_) => false,
        Departures::Rate(waveform, spacing) => {
            *spacing != Spacing::Even || matches!(waveform, Waveform::OnOff { .. })
        }
    }
}
