//! How far one watch is, and with what it goes on after a break. Pure.

use strata_model::status::{Reason, Status};

/// From where a watch starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// With the state as it is, then what follows.
    #[default]
    State,
    /// With what follows this revision.
    After(u64),
}

/// Where a watch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// It has nothing, or a part of the initial state only: it needs all.
    Nothing,
    /// It has everything up to this revision.
    At(u64),
}

/// What a refused watch does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Starts anew with the whole state, at once.
    Restart,
    /// Tries again after a pause, from where it is.
    Retry,
    /// Is over.
    GiveUp,
}

impl From<Start> for Cursor {
    fn from(start: Start) -> Self {
        match start {
            Start::State => Self::Nothing,
            Start::After(revision) => Self::At(revision),
        }
    }
}

impl Cursor {
    /// Everything up to `revision` has been delivered, after a complete initial state.
    pub fn advance(&mut self, revision: u64) {
        if let Self::At(at) = self {
            *at = (*at).max(revision);
        }
    }

    /// The initial state is complete.
    pub fn complete(&mut self, revision: u64) {
        *self = Self::At(revision);
    }
}

/// What to do when the server closed a watch with a status.
pub fn after(status: &Status) -> Then {
    let too_new = status
        .details
        .as_ref()
        .is_some_and(|d| d.causes.iter().any(|c| c.reason == "ResourceVersionTooLarge"));
    match status.reason {
        _ if too_new => Then::Restart,
        Some(Reason::Expired | Reason::Gone) => Then::Restart,
        Some(
            Reason::TooManyRequests
            | Reason::InternalError
            | Reason::ServerTimeout
            | Reason::ServiceUnavailable
            | Reason::InsufficientStorage
            | Reason::Timeout
            | Reason::Unknown,
        )
        | None => Then::Retry,
        Some(
            Reason::BadRequest
            | Reason::Unauthorized
            | Reason::Forbidden
            | Reason::NotFound
            | Reason::MethodNotAllowed
            | Reason::NotAcceptable
            | Reason::AlreadyExists
            | Reason::Conflict
            | Reason::RequestEntityTooLarge
            | Reason::UnsupportedMediaType
            | Reason::Invalid,
        ) => Then::GiveUp,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_initial_state_is_no_place_to_resume_from() {
        let mut cursor = Cursor::from(Start::State);
        cursor.advance(9);
        assert_eq!(cursor, Cursor::Nothing);
        cursor.complete(5);
        cursor.advance(9);
        cursor.advance(7);
        assert_eq!(cursor, Cursor::At(9));
    }

    #[test]
    fn what_a_refusal_leads_to() {
        assert_eq!(after(&Status::expired("compacted")), Then::Restart);
        assert_eq!(after(&Status::failure(Reason::ServiceUnavailable, "stopping")), Then::Retry);
        assert_eq!(after(&Status::failure(Reason::Forbidden, "no")), Then::GiveUp);
    }
}
