//! What a door answers: the vendor's reply as it comes from the session, or a
//! refusal as JSON. A body that is cut short ends the connection, so that it
//! never reads as whole.

use crate::{Body, Refusal, Reply};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, StatusCode};
use http_body::Frame;
use hyper::Response;
use serde_json::json;
use std::io::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Says that a status is ours and not the vendor's.
const REFUSAL: &str = "cambium-refusal";

/// A body on its way to the sandbox.
pub(super) struct Answer(Body);

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        self.0.poll_chunk(context).map(|chunk| {
            chunk.map(|chunk| match chunk {
                Ok(bytes) => Ok(Frame::data(bytes)),
                Err(refusal) => Err(Error::other(refusal.code())),
            })
        })
    }
}

/// The vendor's reply.
pub(super) fn answered(reply: Reply) -> Response<Answer> {
    let mut response = Response::new(Answer(reply.body));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::BAD_GATEWAY);
    for (name, value) in reply.headers {
        // Both come from what http parsed.
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(&value))
        {
            response.headers_mut().append(name, value);
        }
    }
    response
}

/// A refusal, in the words an agent gets.
pub(super) fn refused(refusal: &Refusal) -> Response<Answer> {
    let said = json!({
        "error": {
            "code": refusal.code(),
            "message": refusal.to_string(),
            "next": refusal.next(),
            "retryable": refusal.retryable(),
        }
    });
    let mut response = Response::new(Answer(Body::whole(said.to_string().into())));
    *response.status_mut() = status(refusal);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(REFUSAL, HeaderValue::from_static(refusal.code()));
    response
}

fn status(refusal: &Refusal) -> StatusCode {
    match refusal {
        Refusal::RunClosed(_) => StatusCode::UNAUTHORIZED,
        Refusal::BodyTooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
        Refusal::RateLimited(_) | Refusal::RunRequestCap(_) => StatusCode::TOO_MANY_REQUESTS,
        Refusal::UpstreamTimeout(_) => StatusCode::GATEWAY_TIMEOUT,
        Refusal::TlsFailed(_)
        | Refusal::UpstreamTruncated(_)
        | Refusal::UpstreamProtocol(_)
        | Refusal::ResponseTooLarge(_)
        | Refusal::OutcomeUnknown(_) => StatusCode::BAD_GATEWAY,
        Refusal::VaultLocked(_)
        | Refusal::CredentialUnavailable(_)
        | Refusal::ClockSkew(_)
        | Refusal::ProxyFailed(_)
        | Refusal::AuditUnavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        Refusal::PathInvalid(_)
        | Refusal::UrlInvalid(_)
        | Refusal::PathAmbiguous(_)
        | Refusal::PathNotRelative(_)
        | Refusal::PathTooLong(_)
        | Refusal::HostNotInConnection(_)
        | Refusal::MethodInvalid(_)
        | Refusal::BodyOnRead(_)
        | Refusal::HeaderRefused(_) => StatusCode::BAD_REQUEST,
        Refusal::OutsideCallSites(_)
        | Refusal::MethodExceedsHint(_)
        | Refusal::BodyTooLargeForApproval(_)
        | Refusal::BodyUnreadableForApproval(_)
        | Refusal::AddressDenied(_)
        | Refusal::SelfAddress(_)
        | Refusal::CredentialPath(_)
        | Refusal::ConnectionRevoked(_)
        | Refusal::ConnectionNotInScope(_)
        | Refusal::ToolDenied(_)
        | Refusal::AwaitingApproval(_)
        | Refusal::AskDismissed(_)
        | Refusal::ApprovalExpired(_) => StatusCode::FORBIDDEN,
    }
}
