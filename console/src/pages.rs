//! What all pages share: the frame around them, how one is answered, and the
//! few that stand alone. Each page is a template with the values it shows;
//! foreign text is made visible before it gets there and escaped inside it.

pub(crate) mod add;
pub(crate) mod agent;
pub(crate) mod agents;
pub(crate) mod asks;
pub(crate) mod audit;
pub(crate) mod connections;
pub(crate) mod handoff;
pub(crate) mod login;
pub(crate) mod runs;
pub(crate) mod sign_in;
pub(crate) mod start;
pub(crate) mod tool;
pub(crate) mod toolbox;

use crate::Console;
use crate::error::Problem;
use crate::script;
use crate::session::Visitor;
use askama::Template;
use axum::response::{Html, IntoResponse, Redirect, Response};
use http::StatusCode;
use http::header::CONTENT_TYPE;

/// What stands around a page.
pub(crate) struct Frame {
    /// Said on each page.
    notices: Vec<String>,
    /// The session's form token; empty without a session.
    form: String,
    /// Where the script is.
    script: &'static str,
    /// How many asks and proposals wait.
    open: usize,
}

impl Frame {
    /// For a page without a session.
    pub(crate) fn bare() -> Self {
        Self { notices: Vec::new(), form: String::new(), script: script::path(), open: 0 }
    }

    /// For a page of a session.
    pub(crate) async fn of(console: &Console, visitor: &Visitor) -> Result<Self, Problem> {
        Ok(Self {
            notices: console.settings.notices.clone(),
            form: visitor.form_token(),
            script: script::path(),
            open: console.engine.waiting().await?,
        })
    }
}

/// Something went otherwise than asked.
#[derive(Template)]
#[template(path = "problem.html")]
pub(crate) struct ProblemPage {
    pub(crate) frame: Frame,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) next: String,
}

/// A page with its status.
pub(crate) fn render(status: StatusCode, page: &impl Template) -> Response {
    match page.render() {
        Ok(text) => (status, Html(text)).into_response(),
        Err(error) => {
            tracing::error!(%error, "a page could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

pub(crate) async fn home() -> Redirect {
    Redirect::to("/asks")
}

pub(crate) async fn missing() -> Problem {
    Problem::missing()
}

pub(crate) async fn stylesheet() -> Response {
    ([(CONTENT_TYPE, "text/css; charset=utf-8")], include_str!("../templates/style.css"))
        .into_response()
}
