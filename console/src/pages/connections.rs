//! The connections as cards: vendor, hosts, scheme and standing, the tools
//! authored against each and its last calls, and the two things a person does
//! with one: taking it back and giving it again. No page ever has a stored
//! secret to show: the engine gives out none.

use super::agents::slip;
use super::runs::{Call, call};
use super::{Frame, render};
use crate::Console;
use crate::chart::{Chart, chart};
use crate::error::Problem;
use crate::form::Fields;
use crate::session::Visitor;
use crate::visible;
use askama::Template;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use cambium_engine::port::RunRow;
use cambium_engine::{EngineError, Version};
use cambium_proxy::{AgentId, Connection, ConnectionStatus, Secret};
use http::{HeaderMap, StatusCode, Uri};

/// Runs looked through for the last calls of each connection.
const RUNS: u32 = 500;
/// Calls on a card.
const CALLS: usize = 5;

#[derive(Template)]
#[template(path = "connections.html")]
struct ListPage {
    frame: Frame,
    fault: Option<String>,
    connections: Vec<Card>,
}

/// An agent, and whether the connection is for it by name.
struct Whom {
    id: String,
    name: String,
    ticked: bool,
}

struct Card {
    slug: String,
    name: String,
    vendor: String,
    hosts: Vec<String>,
    scheme: String,
    status: &'static str,
    revoked: bool,
    exceptions: Vec<String>,
    policy: Vec<String>,
    own_authority: bool,
    /// A person can sign in at the vendor's.
    signs_in: bool,
    takes_secret: bool,
    tools: Vec<String>,
    calls: Vec<Call>,
    chart: Option<Chart>,
    agents: Vec<Whom>,
    every_agent: bool,
}

pub(crate) async fn list(
    State(console): State<Console>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&console, &headers, uri.path()).await?;
    page(&console, &visitor, StatusCode::OK, None).await
}

pub(crate) async fn change(
    State(console): State<Console>,
    headers: HeaderMap,
    Path(slug): Path<String>,
    body: Bytes,
) -> Result<Response, Problem> {
    // A form came here, so there was a page: the login leads back to it.
    let visitor = Visitor::of(&console, &headers, "/connections").await?;
    let mut fields = Fields::read(&body)?;
    visitor.check_form(&fields.take("form"))?;
    let engine = &console.engine;
    let id = engine.connection(&slug).await?.id;
    let typed = fields.take("secret");
    let secret = (!typed.is_empty()).then(|| Secret::new(typed.into_bytes()));
    let done = match fields.text("do") {
        "revoke" => engine.revoke_connection(&visitor.proof, &id).await,
        "reconnect" => engine.reconnect_connection(&visitor.proof, &id, secret).await.map(drop),
        "agents" => match whom(&console, &fields).await {
            Ok(agents) => engine.change_scope(&visitor.proof, &id, &agents).await,
            Err(error) => Err(error),
        },
        _ => Err(EngineError::ArgumentInvalid {
            name: "do".to_owned(),
            reason: "must be revoke, reconnect or agents".to_owned(),
        }),
    };
    match done {
        Ok(()) => Ok(Redirect::to("/connections").into_response()),
        Err(error) => {
            let fault = Some(slip(error)?);
            page(&console, &visitor, StatusCode::BAD_REQUEST, fault).await
        }
    }
}

/// Where a person goes on once a connection is made.
pub(super) fn onward(made: &Connection) -> String {
    match made.status {
        ConnectionStatus::Pending => format!("/connections/{}/authorize", made.slug),
        ConnectionStatus::Connected | ConnectionStatus::Revoked => "/connections".to_owned(),
    }
}

/// Whom a connection is for, as it was ticked; empty means every agent.
pub(super) async fn whom(console: &Console, fields: &Fields) -> Result<Vec<AgentId>, EngineError> {
    let mut agents = Vec::new();
    if !fields.says("every_agent", "yes") {
        for named in fields.all("agent") {
            agents.push(console.engine.agent(named).await?.id);
        }
        if agents.is_empty() {
            return Err(EngineError::ArgumentInvalid {
                name: "agents".to_owned(),
                reason: "tick at least one agent, or every agent".to_owned(),
            });
        }
    }
    Ok(agents)
}

async fn page(
    console: &Console,
    visitor: &Visitor,
    status: StatusCode,
    fault: Option<String>,
) -> Result<Response, Problem> {
    let engine = &console.engine;
    let frame = Frame::of(console, visitor).await?;
    let (tools, runs) = (engine.tools().await?, engine.runs(RUNS).await?);
    let agents = engine.agents().await?;
    let connections = engine.connections().await?;
    let mut cards = Vec::with_capacity(connections.len());
    for connection in &connections {
        let mut card = card(connection, &tools);
        let of = |run: &&RunRow| run.connection == connection.id;
        card.chart = chart(runs.iter().filter(of));
        card.calls = runs.iter().filter(of).take(CALLS).map(|run| call(run, &agents)).collect();
        let scope = engine.scope_of(&connection.id).await?;
        card.every_agent = scope.is_empty();
        card.agents = agents
            .iter()
            .map(|agent| Whom {
                id: visible::line(agent.id.as_str()),
                name: visible::line(&agent.name),
                ticked: scope.contains(&agent.id),
            })
            .collect();
        cards.push(card);
    }
    let connections = cards;
    Ok(render(status, &ListPage { frame, fault, connections }))
}

fn card(connection: &Connection, tools: &[Version]) -> Card {
    let authored = tools.iter().filter(|version| version.tool.vendor() == connection.vendor);
    Card {
        slug: visible::line(&connection.slug),
        name: visible::line(&connection.display_name),
        vendor: visible::line(&connection.vendor),
        hosts: connection
            .hosts
            .iter()
            .map(|host| visible::line(&format!("{}:{} ({})", host.name, host.port, host.label)))
            .collect(),
        scheme: visible::line(&connection.scheme.placed()),
        status: match connection.status {
            ConnectionStatus::Connected => "connected",
            ConnectionStatus::Pending => "waits for you to sign in",
            ConnectionStatus::Revoked => "revoked",
        },
        revoked: connection.status == ConnectionStatus::Revoked,
        exceptions: connection
            .exceptions
            .iter()
            .map(|exception| format!("{} port {}", exception.cidr, exception.port))
            .collect(),
        policy: connection.overrides.lines().iter().map(|line| visible::line(line)).collect(),
        own_authority: connection.ca_pem.is_some(),
        signs_in: connection.scheme.needs_sign_in()
            && connection.status != ConnectionStatus::Revoked,
        takes_secret: connection.scheme.takes_secret(),
        tools: authored.map(|version| visible::line(&version.tool.to_string())).collect(),
        calls: Vec::new(),
        chart: None,
        agents: Vec::new(),
        every_agent: false,
    }
}
