//! Login and logout. Until a passphrase is set, the one-time code from the
//! server's terminal opens the console and sets the passphrase in the same
//! form; afterwards the passphrase does, or a code for whoever lost it.

use super::{Frame, render};
use crate::Console;
use crate::error::Problem;
use crate::session::{Visitor, set_cookie};
use askama::Template;
use axum::extract::{Form, Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use cambium_engine::{EngineError, PersonCredential, PersonProof};
use http::header::SET_COOKIE;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;

/// As the engine has it; looked at first so that a slip does not cost the code.
const PASSPHRASE_CHARS: std::ops::RangeInclusive<usize> = 8..=1024;
/// Longest code, bytes.
const CODE_BYTES: usize = 64;

#[derive(Deserialize)]
pub(crate) struct Wanted {
    #[serde(default)]
    next: String,
    /// Of the link the server shows: filled in, and sent only by the person.
    #[serde(default)]
    code: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Login {
    #[serde(default)]
    next: String,
    #[serde(default)]
    code: String,
    #[serde(default)]
    passphrase: String,
    #[serde(default)]
    again: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Leave {
    #[serde(default)]
    form: String,
}

#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage {
    frame: Frame,
    setup: bool,
    next: String,
    code: String,
    fault: Option<String>,
}

pub(crate) async fn show(
    State(console): State<Console>,
    Query(wanted): Query<Wanted>,
) -> Result<Response, Problem> {
    let code = typed_code(&wanted.code);
    page(&console, StatusCode::OK, &wanted.next, code, None).await
}

pub(crate) async fn submit(
    State(console): State<Console>,
    Form(login): Form<Login>,
) -> Result<Response, Problem> {
    // Whoever sets the passphrase begins.
    let first = console.engine.needs_setup().await?;
    let next = match local(&login.next) {
        "/asks" if first => "/start".to_owned(),
        next => next.to_owned(),
    };
    let code = typed_code(&login.code);
    let passphrase = !first && login.code.is_empty();
    match enter(&console, login).await {
        Ok(proof) => {
            let token = console.engine.open_session(&proof).await?;
            Ok(with_cookie(Redirect::to(&next).into_response(), Some(&token)))
        }
        Err(EngineError::PersonRequired) => {
            let fault = match passphrase {
                true => "The passphrase is wrong.",
                false => {
                    "The code is wrong, used or expired: it is good once and for ten minutes. \
                     `cambium code` in a terminal shows another."
                }
            };
            let fault = fault.to_owned();
            page(&console, StatusCode::FORBIDDEN, &next, code, Some(fault)).await
        }
        Err(error @ (EngineError::OutOfRange { .. } | EngineError::ArgumentInvalid { .. })) => {
            let fault = Some(error.to_string());
            page(&console, StatusCode::BAD_REQUEST, &next, code, fault).await
        }
        Err(error) => Err(error.into()),
    }
}

pub(crate) async fn leave(
    State(console): State<Console>,
    headers: HeaderMap,
    Form(leave): Form<Leave>,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&console, &headers, "/asks").await?;
    visitor.check_form(&leave.form)?;
    console.engine.close_session(visitor.token()).await?;
    Ok(with_cookie(Redirect::to("/login").into_response(), None))
}

async fn enter(console: &Console, login: Login) -> Result<PersonProof, EngineError> {
    let engine = &console.engine;
    if !engine.needs_setup().await? {
        let credential = if login.code.is_empty() {
            PersonCredential::Passphrase(login.passphrase)
        } else {
            PersonCredential::Code(login.code)
        };
        return engine.prove_person(credential).await;
    }
    if login.passphrase != login.again {
        return Err(EngineError::ArgumentInvalid {
            name: "passphrase".to_owned(),
            reason: "the two do not match".to_owned(),
        });
    }
    let length = login.passphrase.chars().count();
    if !PASSPHRASE_CHARS.contains(&length) {
        return Err(EngineError::OutOfRange {
            name: "the passphrase",
            value: format!("{length} characters"),
            rule: "8 to 1024 characters long",
        });
    }
    let proof = engine.prove_person(PersonCredential::Code(login.code)).await?;
    engine.set_passphrase(&proof, PersonCredential::Passphrase(login.passphrase)).await?;
    Ok(proof)
}

async fn page(
    console: &Console,
    status: StatusCode,
    next: &str,
    code: String,
    fault: Option<String>,
) -> Result<Response, Problem> {
    let setup = console.engine.needs_setup().await?;
    let mut frame = Frame::bare();
    frame.notices.clone_from(&console.settings.notices);
    let next = local(next).to_owned();
    Ok(render(status, &LoginPage { frame, setup, next, code, fault }))
}

/// A code as codes are spelled; anything else is not filled in.
fn typed_code(code: &str) -> String {
    let plain = code.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if plain && code.len() <= CODE_BYTES { code.to_owned() } else { String::new() }
}

/// A path of the console; anything else would send a person who just logged in
/// where somebody else wants them.
fn local(path: &str) -> &str {
    let plain = path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-_".contains(&byte));
    if plain && path.starts_with('/') && !path.starts_with("//") && path != "/login" {
        path
    } else {
        "/asks"
    }
}

fn with_cookie(mut response: Response, token: Option<&str>) -> Response {
    if let Some(cookie) = set_cookie(token) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::local;

    #[test]
    fn only_paths_of_the_console_are_returned_to() {
        for path in ["/asks/0af", "/agents", "/toolbox/acme__list-orders"] {
            assert_eq!(local(path), path);
        }
        for path in
            ["", "asks", "//evil.test", "/\\evil.test", "https://evil.test", "/a?b", "/login"]
        {
            assert_eq!(local(path), "/asks", "{path}");
        }
    }
}
