//! The connections: vendor, hosts, scheme and standing. No page ever has a
//! stored secret to show: the engine gives out none.

use super::{Frame, render};
use crate::Console;
use crate::error::Problem;
use crate::session::Visitor;
use crate::visible;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use cambium_proxy::{Connection, ConnectionStatus};
use http::{HeaderMap, StatusCode, Uri};

#[derive(Template)]
#[template(path = "connections.html")]
struct ListPage {
    frame: Frame,
    connections: Vec<Row>,
}

struct Row {
    slug: String,
    name: String,
    vendor: String,
    hosts: Vec<String>,
    scheme: String,
    status: &'static str,
    exceptions: Vec<String>,
    policy: Vec<String>,
    own_authority: bool,
    /// A person can sign in at the vendor's.
    signs_in: bool,
}

pub(crate) async fn list(
    State(console): State<Console>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&console, &headers, uri.path()).await?;
    let frame = Frame::of(&console, &visitor).await?;
    let connections = console.engine.connections().await?.iter().map(row).collect();
    Ok(render(StatusCode::OK, &ListPage { frame, connections }))
}

fn row(connection: &Connection) -> Row {
    Row {
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
        exceptions: connection
            .exceptions
            .iter()
            .map(|exception| format!("{} port {}", exception.cidr, exception.port))
            .collect(),
        policy: connection.overrides.lines().iter().map(|line| visible::line(line)).collect(),
        own_authority: connection.ca_pem.is_some(),
        signs_in: connection.scheme.needs_sign_in()
            && connection.status != ConnectionStatus::Revoked,
    }
}
