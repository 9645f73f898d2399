//! Adding a connection to a vendor whose hosts and scheme are known: a person
//! picks it, fills what only they know, and enters the secret, which goes
//! straight to the vault. Any other vendor is proposed by an agent, whose hosts
//! are looked at one by one, or added in a terminal.

use super::connections::{onward, whom};
use super::handoff::{SecretField, secret_field};
use super::{Frame, render};
use crate::Console;
use crate::error::Problem;
use crate::form::Fields;
use crate::session::Visitor;
use crate::visible;
use askama::Template;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use cambium_engine::{EngineError, NewConnection, Preset, presets, read_host, read_scheme};
use cambium_proxy::{Connection, Secret};
use http::{HeaderMap, StatusCode, Uri};

#[derive(Template)]
#[template(path = "vendors.html")]
struct VendorsPage {
    frame: Frame,
    vendors: &'static [Preset],
}

#[derive(Template)]
#[template(path = "add.html")]
struct AddPage {
    frame: Frame,
    fault: Option<String>,
    known: &'static Preset,
    policy: Vec<String>,
    /// Field, what goes there, and what was typed.
    asked: Vec<(&'static str, &'static str, String)>,
    secret: Option<SecretField>,
    slug: String,
    display_name: String,
    /// Id, name, and whether it was ticked.
    agents: Vec<(String, String, bool)>,
    every_agent: bool,
}

pub(crate) async fn vendors(
    State(console): State<Console>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&console, &headers, uri.path()).await?;
    let frame = Frame::of(&console, &visitor).await?;
    Ok(render(StatusCode::OK, &VendorsPage { frame, vendors: presets() }))
}

pub(crate) async fn show(
    State(console): State<Console>,
    headers: HeaderMap,
    uri: Uri,
    Path(vendor): Path<String>,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&console, &headers, uri.path()).await?;
    page(&console, &visitor, known(&vendor)?, None).await
}

pub(crate) async fn add(
    State(console): State<Console>,
    headers: HeaderMap,
    uri: Uri,
    Path(vendor): Path<String>,
    body: Bytes,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&console, &headers, uri.path()).await?;
    let mut fields = Fields::read(&body)?;
    visitor.check_form(&fields.take("form"))?;
    let known = known(&vendor)?;
    match make(&console, &visitor, known, &mut fields).await {
        Ok(made) => Ok(Redirect::to(&onward(&made)).into_response()),
        Err(
            error @ (EngineError::ArgumentInvalid { .. }
            | EngineError::NameInvalid { .. }
            | EngineError::Taken(_)
            | EngineError::Refused(_)),
        ) => {
            let fault = visible::line(&format!("{error}. Nothing was done."));
            page(&console, &visitor, known, Some((fault, fields))).await
        }
        Err(error) => Err(error.into()),
    }
}

async fn make(
    console: &Console,
    visitor: &Visitor,
    known: &Preset,
    fields: &mut Fields,
) -> Result<Connection, EngineError> {
    let typed = fields.take("secret");
    let secret = (!typed.is_empty()).then(|| Secret::new(typed.into_bytes()));
    let wrong = |name: &str, reason: &str| EngineError::ArgumentInvalid {
        name: name.to_owned(),
        reason: reason.to_owned(),
    };
    let mut scheme = known.scheme.clone();
    let name = scheme.remove("scheme");
    for asked in &known.ask {
        let typed = fields.text(&named(&asked.field)).trim();
        if typed.is_empty() {
            return Err(wrong(&asked.field, &format!("is empty: {}", asked.what)));
        }
        scheme.insert(asked.field.clone(), typed.into());
    }
    let name = name.as_ref().and_then(|name| name.as_str()).unwrap_or_default();
    let new = NewConnection {
        slug: fields.text("slug").trim().to_owned(),
        vendor: known.vendor.clone(),
        display_name: fields.text("display_name").trim().to_owned(),
        hosts: known.hosts.iter().filter_map(|host| read_host(host)).collect(),
        scheme: read_scheme(name, scheme, &[]).map_err(|why| wrong("scheme", &why))?,
        exceptions: Vec::new(),
        ca_pem: None,
        overrides: known.policy.clone(),
        agents: whom(console, fields).await?,
    };
    console.engine.create_connection(&visitor.proof, new, secret).await
}

/// As it is, or with a fault as it was typed, the secret left out.
async fn page(
    console: &Console,
    visitor: &Visitor,
    known: &'static Preset,
    slip: Option<(String, Fields)>,
) -> Result<Response, Problem> {
    let frame = Frame::of(console, visitor).await?;
    let status = if slip.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let (fault, before) = slip.unzip();
    let typed = |name: &str| before.as_ref().map(|form| visible::line(form.text(name)));
    let agents = console.engine.agents().await?;
    let ticked: Vec<_> = before.iter().flat_map(|form| form.all("agent")).collect();
    // Whose only agent there is, it is for; among more a person chooses.
    let only = before.is_none() && agents.len() == 1;
    let page = AddPage {
        frame,
        fault,
        known,
        policy: known.policy.lines().iter().map(|line| visible::line(line)).collect(),
        asked: known
            .ask
            .iter()
            .map(|one| {
                let typed = typed(&named(&one.field)).unwrap_or_default();
                (one.field.as_str(), one.what.as_str(), typed)
            })
            .collect(),
        secret: scheme_of(known).as_ref().and_then(secret_field),
        slug: typed("slug").unwrap_or_else(|| known.vendor.clone()),
        display_name: typed("display_name").unwrap_or_else(|| known.name.clone()),
        agents: agents
            .iter()
            .map(|agent| {
                let id = agent.id.as_str();
                (visible::line(id), visible::line(&agent.name), only || ticked.contains(&id))
            })
            .collect(),
        every_agent: before.as_ref().is_some_and(|form| form.says("every_agent", "yes")),
    };
    Ok(render(status, &page))
}

/// Its scheme with something in each field the person fills, to see what the
/// secret is.
fn scheme_of(known: &Preset) -> Option<cambium_proxy::Scheme> {
    let mut fields = known.scheme.clone();
    let name = fields.remove("scheme")?;
    for asked in &known.ask {
        fields.insert(asked.field.clone(), "x".into());
    }
    read_scheme(name.as_str()?, fields, &[]).ok()
}

/// The form's name of an asked field.
fn named(field: &str) -> String {
    format!("field-{field}")
}

fn known(vendor: &str) -> Result<&'static Preset, Problem> {
    Preset::named(vendor).ok_or_else(Problem::missing)
}
