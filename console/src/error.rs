//! What a person is told when a page cannot be shown, and with which status.
//! The one place that maps the engine's errors to HTTP.

use crate::pages::{Frame, ProblemPage, render};
use axum::response::{IntoResponse, Redirect, Response};
use cambium_engine::EngineError;
use http::StatusCode;

/// Why a page is not shown.
#[derive(Debug)]
pub(crate) enum Problem {
    /// To the login, and back to this path after it.
    Login(String),
    /// A status, a stable code, what happened and what to do.
    Told { status: StatusCode, code: &'static str, message: String, next: String },
}

impl Problem {
    pub(crate) fn login(path: &str) -> Self {
        Self::Login(path.to_owned())
    }

    pub(crate) fn host() -> Self {
        Self::told(
            StatusCode::MISDIRECTED_REQUEST,
            "host_refused",
            "This address is not the console's.",
            "Open the address the server printed when it started.",
        )
    }

    pub(crate) fn origin() -> Self {
        Self::told(
            StatusCode::FORBIDDEN,
            "origin_refused",
            "This request came from another site.",
            "Nothing was done. Use the forms of the console itself.",
        )
    }

    pub(crate) fn form() -> Self {
        Self::told(
            StatusCode::FORBIDDEN,
            "form_refused",
            "This form does not belong to your session.",
            "Nothing was done. Open the page again and submit it anew.",
        )
    }

    pub(crate) fn session() -> Self {
        Self::told(
            StatusCode::UNAUTHORIZED,
            "session_required",
            "There is no session here, or it has ended.",
            "Log in.",
        )
    }

    pub(crate) fn streams() -> Self {
        Self::told(
            StatusCode::TOO_MANY_REQUESTS,
            "streams_full",
            "As many pages follow what happens as can.",
            "Close one, or reload this page when you want to know.",
        )
    }

    pub(crate) fn answer() -> Self {
        Self::told(
            StatusCode::BAD_REQUEST,
            "answer_refused",
            "The vendor's answer is longer than any is.",
            "Nothing was done. Begin the sign-in anew.",
        )
    }

    pub(crate) fn missing() -> Self {
        Self::told(
            StatusCode::NOT_FOUND,
            "page_not_found",
            "There is no such page.",
            "Go back to the asks.",
        )
    }

    pub(crate) fn told(
        status: StatusCode,
        code: &'static str,
        message: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self::Told { status, code, message: message.into(), next: next.into() }
    }
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        let status = match &error {
            EngineError::ToolNotFound(_)
            | EngineError::VersionNotFound { .. }
            | EngineError::ConnectionNotFound(_)
            | EngineError::AgentNotFound(_)
            | EngineError::AskNotFound(_)
            | EngineError::ProposalNotFound(_)
            | EngineError::RunNotFound(_)
            | EngineError::JobNotFound(_) => StatusCode::NOT_FOUND,
            EngineError::AskSettled { .. }
            | EngineError::Taken(_)
            | EngineError::SdkNotListed { .. } => StatusCode::CONFLICT,
            EngineError::PersonRequired
            | EngineError::Unauthenticated
            | EngineError::AgentPaused(_)
            | EngineError::ProposalRefused(_)
            | EngineError::Refused(_) => StatusCode::FORBIDDEN,
            EngineError::NameInvalid { .. }
            | EngineError::InputInvalid(_)
            | EngineError::ArgumentInvalid { .. }
            | EngineError::CheckFailed(_)
            | EngineError::DryRunFailed(_)
            | EngineError::ComponentRefused(_)
            | EngineError::DocumentRefused(_)
            | EngineError::AcquireUnconfigured(_)
            | EngineError::OutOfRange { .. } => StatusCode::BAD_REQUEST,
            EngineError::Busy | EngineError::ProposalsFull(_) => StatusCode::TOO_MANY_REQUESTS,
            EngineError::RunFailed { .. }
            | EngineError::Store(_)
            | EngineError::ComponentsUnavailable(_)
            | EngineError::SandboxUnavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::told(status, error.code(), error.to_string(), error.next())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        match self {
            Self::Login(path) => Redirect::to(&format!("/login?next={path}")).into_response(),
            Self::Told { status, code, message, next } => {
                render(status, &ProblemPage { frame: Frame::bare(), code, message, next })
            }
        }
    }
}
