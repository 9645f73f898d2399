//! The agents: the list of them, and the form that makes one. Its token is
//! shown on the answer to that form and nowhere again.

use super::start::{Harness, harnesses};
use super::{Frame, render};
use crate::Console;
use crate::error::Problem;
use crate::session::Visitor;
use crate::{civil, visible};
use askama::Template;
use axum::extract::{Form, State};
use axum::response::Response;
use cambium_engine::{Agent, EngineError, NewAgent};
use http::{HeaderMap, StatusCode, Uri};
use serde::Deserialize;

#[derive(Template)]
#[template(path = "agents.html")]
struct ListPage {
    frame: Frame,
    fault: Option<String>,
    agents: Vec<Row>,
    typed: NewForm,
}

pub(super) struct Row {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) cap: u32,
    pub(super) idle_days: u32,
    pub(super) paused: bool,
    pub(super) created: String,
}

#[derive(Template)]
#[template(path = "token.html")]
struct TokenPage {
    frame: Frame,
    id: String,
    name: String,
    token: String,
    fresh: bool,
    harnesses: Vec<Harness>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewForm {
    #[serde(default)]
    form: String,
    name: String,
    cap: String,
    idle_days: String,
}

pub(crate) async fn list(
    State(console): State<Console>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&console, &headers, uri.path()).await?;
    let (form, name) = Default::default();
    let typed = NewForm { form, name, cap: "20".into(), idle_days: "21".into() };
    page(&console, &visitor, StatusCode::OK, None, typed).await
}

pub(crate) async fn create(
    State(console): State<Console>,
    headers: HeaderMap,
    uri: Uri,
    Form(new): Form<NewForm>,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&console, &headers, uri.path()).await?;
    visitor.check_form(&new.form)?;
    let made = async {
        let name = new.name.clone();
        let cap = whole("cap", &new.cap, "a whole number from 1 to 500")?;
        let idle_days = whole("idle window", &new.idle_days, "a whole number from 1 to 3650")?;
        let agent = NewAgent { name, cap, idle_days };
        console.engine.create_agent(&visitor.proof, agent).await
    };
    match made.await {
        Ok((agent, token)) => token_page(&console, &visitor, &agent, token, true).await,
        Err(error) => {
            let fault = slip(error)?;
            page(&console, &visitor, StatusCode::BAD_REQUEST, Some(fault), new).await
        }
    }
}

/// A token, the one time it can be shown.
pub(super) async fn token_page(
    console: &Console,
    visitor: &Visitor,
    agent: &Agent,
    token: String,
    fresh: bool,
) -> Result<Response, Problem> {
    let frame = Frame::of(console, visitor).await?;
    let (id, name) = (visible::line(agent.id.as_str()), visible::line(&agent.name));
    let harnesses = harnesses(console);
    Ok(render(StatusCode::OK, &TokenPage { frame, id, name, token, fresh, harnesses }))
}

/// What a person can put right in the same form, as a sentence; all else is a
/// page of its own.
pub(super) fn slip(error: EngineError) -> Result<String, Problem> {
    match error {
        EngineError::OutOfRange { .. }
        | EngineError::Taken(_)
        | EngineError::ArgumentInvalid { .. }
        | EngineError::Refused(_)
        | EngineError::PersonRequired => {
            Ok(visible::line(&format!("{error}: {}. Nothing was done.", error.next())))
        }
        other => Err(other.into()),
    }
}

/// A number as it was typed.
pub(super) fn whole(
    name: &'static str,
    typed: &str,
    rule: &'static str,
) -> Result<u32, EngineError> {
    let value = typed.chars().take(32).collect();
    typed.trim().parse().map_err(|_| EngineError::OutOfRange { name, value, rule })
}

async fn page(
    console: &Console,
    visitor: &Visitor,
    status: StatusCode,
    fault: Option<String>,
    typed: NewForm,
) -> Result<Response, Problem> {
    let frame = Frame::of(console, visitor).await?;
    let agents = console.engine.agents().await?.iter().map(row).collect();
    let typed = NewForm {
        form: String::new(),
        name: visible::line(&typed.name),
        cap: visible::line(&typed.cap),
        idle_days: visible::line(&typed.idle_days),
    };
    Ok(render(status, &ListPage { frame, fault, agents, typed }))
}

pub(super) fn row(agent: &Agent) -> Row {
    Row {
        id: visible::line(agent.id.as_str()),
        name: visible::line(&agent.name),
        cap: agent.cap,
        idle_days: agent.idle_days,
        paused: agent.paused,
        created: civil::time(agent.created_ms),
    }
}
