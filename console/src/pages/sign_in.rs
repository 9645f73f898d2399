//! Signing in at a vendor's: the page that begins it, the place the vendor's
//! answer comes back to, and the end. The answer arrives from another site, so
//! the browser keeps the session's cookie back; a page without a session
//! therefore passes it on to one of our own, where the cookie is sent. Only
//! there anything happens, and only for the session that began it.

use super::{Frame, render};
use crate::Console;
use crate::error::Problem;
use crate::session::Visitor;
use crate::visible;
use askama::Template;
use axum::extract::{Form, Path, Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use cambium_engine::{EngineError, SignInAnswer};
use cambium_proxy::{Connection, ConnectionStatus, Secret};
use http::header::HOST;
use http::{HeaderMap, StatusCode, Uri};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

/// Longest parameter of an answer, bytes: as long as links get.
const PARAMETER_BYTES: usize = 4 * 1024;

/// What a vendor's answer may hold; what else it holds is nobody's.
#[derive(Deserialize, Default)]
pub(crate) struct Brought {
    #[serde(default)]
    state: String,
    code: Option<String>,
    error: Option<String>,
    iss: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Begin {
    #[serde(default)]
    form: String,
    #[serde(default)]
    same_account: String,
}

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    frame: Frame,
    slug: String,
    name: String,
    placed: String,
    connected: bool,
    /// The vendor's link, once it was asked for.
    link: Option<String>,
}

#[derive(Template)]
#[template(path = "returned.html")]
struct ReturnedPage {
    frame: Frame,
    onward: String,
}

pub(crate) async fn show(
    State(console): State<Console>,
    headers: HeaderMap,
    uri: Uri,
    Path(slug): Path<String>,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&console, &headers, uri.path()).await?;
    let connection = wanted(&console, &slug).await?;
    page(&console, &visitor, &connection, None).await
}

pub(crate) async fn begin(
    State(console): State<Console>,
    headers: HeaderMap,
    uri: Uri,
    Path(slug): Path<String>,
    Form(begin): Form<Begin>,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&console, &headers, uri.path()).await?;
    visitor.check_form(&begin.form)?;
    let connection = wanted(&console, &slug).await?;
    // The guard has let only our own hosts through.
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).ok_or_else(Problem::host)?;
    let back = format!("http://{host}/oauth/callback");
    let same = begin.same_account == "yes";
    let begun =
        console.engine.begin_sign_in(&visitor.proof, visitor.token(), &slug, &back, same).await;
    page(&console, &visitor, &connection, Some(begun?)).await
}

/// Reached from the vendor's site: shows nothing, does nothing, passes on.
pub(crate) async fn returned(Query(brought): Query<Brought>) -> Result<Response, Problem> {
    let mut onward = String::from("/oauth/complete?");
    let parts = [
        ("state", Some(brought.state)),
        ("code", brought.code),
        ("error", brought.error),
        ("iss", brought.iss),
    ];
    for (name, value) in parts {
        let Some(value) = value else { continue };
        if value.len() > PARAMETER_BYTES {
            return Err(Problem::answer());
        }
        onward.push_str(&format!("{name}={}&", utf8_percent_encode(&value, NON_ALPHANUMERIC)));
    }
    onward.pop();
    Ok(render(StatusCode::OK, &ReturnedPage { frame: Frame::bare(), onward }))
}

pub(crate) async fn complete(
    State(console): State<Console>,
    headers: HeaderMap,
    Query(brought): Query<Brought>,
) -> Result<Response, Problem> {
    // The answer is not kept over a login: it is good in its own session only.
    let visitor = Visitor::of(&console, &headers, "/connections").await?;
    let answer = SignInAnswer {
        state: brought.state,
        code: brought.code.map(|code| Secret::new(code.into_bytes())),
        error: brought.error,
        issuer: brought.iss,
    };
    console.engine.finish_sign_in(&visitor.proof, visitor.token(), answer).await?;
    Ok(Redirect::to("/connections").into_response())
}

/// A connection one can sign in for.
async fn wanted(console: &Console, slug: &str) -> Result<Connection, Problem> {
    let connection = console.engine.connection(slug).await?;
    if !connection.scheme.needs_sign_in() {
        return Err(EngineError::ConnectionNotFound(slug.chars().take(64).collect()).into());
    }
    Ok(connection)
}

async fn page(
    console: &Console,
    visitor: &Visitor,
    connection: &Connection,
    link: Option<String>,
) -> Result<Response, Problem> {
    let page = SignInPage {
        frame: Frame::of(console, visitor).await?,
        slug: visible::line(&connection.slug),
        name: visible::line(&connection.display_name),
        placed: visible::line(&connection.scheme.placed()),
        connected: connection.status == ConnectionStatus::Connected,
        link,
    };
    Ok(render(StatusCode::OK, &page))
}
