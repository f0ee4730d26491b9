//! What one node may do, told as a sequence: for a state and a call with its answer, the states after it.
//!
//! Time comes in through the leases. A lease counts from the moment of the decision, so an answer that has its
//! end tells that moment exactly; it must lie within the call. Where there is no such answer the bounds are the
//! call's own: a claim *can* have been live if its end lies after the call's beginning, and over if its end
//! lies before the call's end. Clocks are compared in whole milliseconds, as records have them.

use super::log::{Answer, Call, Id, Op, Why};

/// A span of milliseconds on the monotonic clock, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Span {
    pub(crate) first: i64,
    pub(crate) last: i64,
}

impl Span {
    fn at(ms: i64) -> Span {
        Span { first: ms, last: ms }
    }

    fn shift(self, ms: i64) -> Span {
        Span { first: self.first.saturating_add(ms), last: self.last.saturating_add(ms) }
    }

    fn meets(self, other: Span) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// A node between two calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) version: u64,
    pub(crate) generation: u64,
    pub(crate) phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Ready,
    /// The call that took it, and when its lease ends: exactly, if an answer has said so.
    Claimed {
        by: Id,
        ends: Span,
    },
    Done {
        by: Id,
        result: u64,
    },
}

/// A call as a step of the model.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// It happened, as answered.
    Answered(Op),
    /// It may have happened or not.
    Unknown(Op),
    /// What this call took was over before it could be told, and may have been given back.
    GivenBack(Op),
}

/// The steps of a call: none, if nothing can be learnt from it.
pub(crate) fn steps(op: &Op) -> Vec<Step> {
    let too_late = || Step::GivenBack(op.clone());
    match (&op.call, &op.answer) {
        (Call::Look | Call::Check { .. }, None | Some(Answer::Failed { .. })) => vec![],
        // An acquire that ran out of rounds may have been giving back what it took.
        (Call::Acquire { .. }, None | Some(Answer::Failed { .. })) => {
            vec![Step::Unknown(op.clone()), too_late()]
        }
        // "Nothing was changed".
        (_, Some(Answer::Failed { code, .. })) if code == "CONTENDED" => vec![],
        (_, None | Some(Answer::Failed { .. })) => vec![Step::Unknown(op.clone())],
        (_, Some(Answer::Refused { why: Why::TooLate, .. })) => vec![Step::Answered(op.clone()), too_late()],
        _ => vec![Step::Answered(op.clone())],
    }
}

impl Step {
    pub(crate) fn op(&self) -> &Op {
        match self {
            Step::Answered(op) | Step::Unknown(op) | Step::GivenBack(op) => op,
        }
    }

    /// Must it have happened by its end?
    pub(crate) fn is_certain(&self) -> bool {
        matches!(self, Step::Answered(_))
    }

    /// The states that it can lead to; none, if it can't happen here.
    pub(crate) fn after(&self, state: &State) -> Vec<State> {
        let next = match self {
            Step::Answered(op) => op.answered(state),
            Step::Unknown(op) => op.happened(state),
            Step::GivenBack(op) => op.gave_back(state),
        };
        next.into_iter().collect()
    }
}

impl State {
    pub(crate) const NEW: State = State { version: 0, generation: 0, phase: Phase::Ready };

    fn next(&self, phase: Phase) -> State {
        State { version: self.version + 1, phase, ..*self }
    }

    /// The claim's holder and end, if it is this claim's.
    fn held_by(&self, claim: Id) -> Option<Span> {
        match self.phase {
            Phase::Claimed { by, ends } if by == claim => Some(ends),
            _ => None,
        }
    }
}

impl Op {
    /// The call's time.
    fn span(&self) -> Span {
        let ms = |ns: u64| i64::try_from(ns / 1_000_000).unwrap_or(i64::MAX);
        Span { first: ms(self.called), last: ms(self.ended) }
    }

    /// The moment at which a lease of this length was given that ends at `ends`, if it is within the call.
    fn moment(&self, ends: i64, lease_ms: i64) -> Option<Span> {
        Some(Span::at(ends - lease_ms)).filter(|moment| moment.meets(self.span()))
    }

    fn answered(&self, state: &State) -> Option<State> {
        match (&self.call, self.answer.as_ref()?) {
            (Call::Look, seen @ Answer::Seen { .. }) => self.saw(state, seen).then(|| state.clone()),
            (Call::Acquire { lease_ms, .. }, &Answer::Taken { version, generation, ends, from, forced }) => {
                let next =
                    self.take(state, self.moment(ends, *lease_ms)?, Span::at(ends), Some((from, forced)))?;
                (next.version == version && next.generation == generation).then_some(next)
            }
            (Call::Check { claim }, &Answer::Live { version, generation, remaining }) => {
                let ends = state.held_by(*claim)?;
                let live = remaining > 0 && ends.shift(-remaining).meets(self.span());
                (live && (state.version, state.generation) == (version, generation)).then(|| state.clone())
            }
            (Call::Renew { claim, lease_ms }, &Answer::Renewed { version, generation, ends }) => {
                let next = self.renew(state, *claim, self.moment(ends, *lease_ms)?, Span::at(ends))?;
                (next.version == version && next.generation == generation).then_some(next)
            }
            (Call::Release { .. }, &Answer::Released { version, generation })
            | (Call::Complete { .. }, &Answer::Completed { version, generation, replay: false }) => {
                let next = self.settle(state)?;
                (next.version == version && next.generation == generation).then_some(next)
            }
            (Call::Complete { claim, result }, &Answer::Completed { version, generation, replay: true }) => {
                let same = state.phase == Phase::Done { by: *claim, result: *result };
                (same && (state.version, state.generation) == (version, generation)).then(|| state.clone())
            }
            (_, Answer::Refused { version, generation, why }) => {
                self.refused(state, *version, *generation, why)
            }
            _ => None,
        }
    }

    /// What a call without an answer did, if it did anything.
    fn happened(&self, state: &State) -> Option<State> {
        match &self.call {
            Call::Look | Call::Check { .. } => None,
            Call::Acquire { lease_ms, .. } => {
                self.take(state, self.span(), self.span().shift(*lease_ms), None)
            }
            Call::Renew { claim, lease_ms } => {
                self.renew(state, *claim, self.span(), self.span().shift(*lease_ms))
            }
            Call::Release { .. } | Call::Complete { .. } => self.settle(state),
        }
    }

    /// Taken, decided at some moment of `moment`. `told`: from whom, and whether against a live claim.
    fn take(
        &self,
        state: &State,
        moment: Span,
        ends: Span,
        told: Option<(Option<Id>, bool)>,
    ) -> Option<State> {
        let Call::Acquire { seen, force, .. } = self.call else { return None };
        let (from, live, over) = match state.phase {
            Phase::Ready => (None, false, true),
            Phase::Claimed { by, ends } => (Some(by), moment.first < ends.last, ends.first <= moment.last),
            Phase::Done { .. } => return None,
        };
        let legal = match told {
            None => over || force,
            Some((told_from, forced)) => told_from == from && if forced { force && live } else { over },
        };
        let expected = seen.is_none_or(|seen| seen == state.version);
        let next =
            State { generation: state.generation + 1, ..state.next(Phase::Claimed { by: self.id, ends }) };
        (legal && expected).then_some(next)
    }

    fn renew(&self, state: &State, claim: Id, moment: Span, ends: Span) -> Option<State> {
        let old = state.held_by(claim)?;
        (moment.first < old.last).then(|| state.next(Phase::Claimed { by: claim, ends }))
    }

    fn settle(&self, state: &State) -> Option<State> {
        let (claim, phase) = match self.call {
            Call::Release { claim } => (claim, Phase::Ready),
            Call::Complete { claim, result } => (claim, Phase::Done { by: claim, result }),
            _ => return None,
        };
        let ends = state.held_by(claim)?;
        (self.span().first < ends.last).then(|| state.next(phase))
    }

    fn gave_back(&self, state: &State) -> Option<State> {
        let ends = state.held_by(self.id)?;
        (ends.first <= self.span().last).then(|| state.next(Phase::Ready))
    }

    fn saw(&self, state: &State, seen: &Answer) -> bool {
        let Answer::Seen { version, generation, state: name, owner, ends: told } = seen else { return false };
        let (by, ends) = match state.phase {
            Phase::Ready => (None, None),
            Phase::Claimed { by, ends } => (Some(by), Some(ends)),
            Phase::Done { by, .. } => (Some(by), None),
        };
        let same_end = match (ends, told) {
            (Some(ends), Some(told)) => ends.meets(Span::at(*told)),
            (None, None) => true,
            _ => false,
        };
        (state.version, state.generation) == (*version, *generation)
            && state.phase.name() == name
            && by == *owner
            && same_end
    }

    /// A refusal leaves everything as it is, but for what was published too late to be any good.
    fn refused(&self, state: &State, version: u64, generation: u64, why: &Why) -> Option<State> {
        let span = self.span();
        match (why, &self.call) {
            (Why::TooLate, Call::Acquire { lease_ms, .. }) => {
                let ends = Span { first: span.first.saturating_add(*lease_ms), last: span.last };
                return self
                    .take(state, span, ends, None)
                    .filter(|next| ends.first <= ends.last && next.version <= version);
            }
            (Why::Over, Call::Renew { claim, lease_ms }) if version == state.version + 1 => {
                let ends = Span { first: span.first.saturating_add(*lease_ms), last: span.last };
                return self.renew(state, *claim, span, ends).filter(|_| ends.first <= ends.last);
            }
            _ => {}
        }
        let current = (state.version, state.generation) == (version, generation);
        (current && self.is_reason(state, why)).then(|| state.clone())
    }

    fn is_reason(&self, state: &State, why: &Why) -> bool {
        let span = self.span();
        let held = |owner: Id, generation: u64, remaining: i64| {
            let ends = state.held_by(owner).filter(|_| generation == state.generation && remaining > 0);
            ends.is_some_and(|ends| ends.shift(-remaining).meets(span))
        };
        match (why, &self.call) {
            (&Why::Held { owner, generation, remaining }, Call::Acquire { force: false, .. }) => {
                held(owner, generation, remaining)
            }
            (&Why::Done { owner }, Call::Acquire { .. }) => {
                matches!(state.phase, Phase::Done { by, .. } if by == owner)
            }
            (Why::StaleVersion, Call::Acquire { seen: Some(seen), .. }) => *seen != state.version,
            (_, Call::Look | Call::Acquire { .. }) => false,
            (Why::NoRecord, _) => state.version == 0,
            (
                &Why::Replaced { owner, generation, remaining },
                Call::Check { claim }
                | Call::Renew { claim, .. }
                | Call::Release { claim }
                | Call::Complete { claim, .. },
            ) => owner != *claim && held(owner, generation, remaining),
            (Why::Over, _) => matches!(state.phase, Phase::Claimed { ends, .. } if ends.first <= span.last),
            (Why::NotHeld { state: name }, call) => {
                let own = matches!((call, state.phase), (Call::Complete { claim, .. }, Phase::Done { by, .. }) if *claim == by);
                !own && state.version > 0
                    && name == state.phase.name()
                    && !matches!(state.phase, Phase::Claimed { .. })
            }
            (Why::OtherResult, Call::Complete { claim, result }) => {
                matches!(state.phase, Phase::Done { by, result: other } if by == *claim && other != *result)
            }
            _ => false,
        }
    }
}

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Phase::Ready => "ready",
            Phase::Claimed { .. } => "claimed",
            Phase::Done { .. } => "done",
        }
    }
}
