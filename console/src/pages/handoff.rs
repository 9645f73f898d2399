//! The handoff: where an agent's link leads. A person sees who asks for what,
//! looks at every host a credential would go to, and enters the secret, which
//! goes straight to the vault. The link shows where; only the session decides.
//! What was typed is shown again after a slip, a secret never.

use super::connections::{onward, whom};
use super::{Frame, render};
use crate::Console;
use crate::error::Problem;
use crate::form::Fields;
use crate::session::Visitor;
use crate::{civil, visible};
use askama::Template;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use cambium_engine::port::{Permission, ProposalState};
use cambium_engine::{Acceptance, EngineError, HostView, Preset, ProposalView, Wants};
use cambium_proxy::{Connection, ConnectionStatus, Scheme, Secret};
use http::{HeaderMap, StatusCode, Uri};

#[derive(Template)]
#[template(path = "handoff.html")]
struct HandoffPage {
    frame: Frame,
    fault: Option<String>,
    path: String,
    open: bool,
    state: &'static str,
    agent: String,
    until: String,
    wants: Asked,
    /// What was typed before a slip.
    typed: Typed,
    secret: Option<SecretField>,
    /// Known of the vendor.
    known: Option<Known>,
}

/// What is asked for, ready to be shown.
enum Asked {
    Connection {
        vendor: String,
        hosts: Vec<HostRow>,
        placed: String,
        fields: Vec<(String, String)>,
        docs: Option<String>,
        policy: Vec<String>,
        agents: Vec<AgentRow>,
        signs_in: bool,
    },
    Credential {
        name: String,
        slug: String,
        hosts: Vec<String>,
        placed: String,
        reason: String,
        signs_in: bool,
        works: bool,
    },
    Permission {
        heading: &'static str,
        thing: String,
        means: &'static str,
    },
}

struct HostRow {
    name: String,
    port: u16,
    used_for: String,
    domain: String,
    reads_as: Option<String>,
    flags: Vec<String>,
    confirmed: bool,
    typed: String,
}

struct AgentRow {
    id: String,
    name: String,
    asks: bool,
    ticked: bool,
}

#[derive(Default)]
struct Typed {
    slug: String,
    display_name: String,
    every_agent: bool,
    same_account: bool,
}

/// How the secret is typed.
pub(super) struct SecretField {
    pub(super) says: &'static str,
    /// PEM has lines.
    pub(super) many: bool,
}

struct Known {
    name: String,
    credential: String,
    docs: String,
}

/// Where one is answered.
pub(crate) fn path(proposal: &ProposalView) -> String {
    let end = proposal.link.rsplit('/').next().unwrap_or_default();
    format!("/handoff/{}", visible::line(end))
}

pub(crate) async fn show(
    State(console): State<Console>,
    headers: HeaderMap,
    uri: Uri,
    Path(link): Path<String>,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&console, &headers, uri.path()).await?;
    let proposal = console.engine.proposal(&link).await?;
    page(&console, &visitor, proposal, StatusCode::OK, None, None).await
}

pub(crate) async fn answer(
    State(console): State<Console>,
    headers: HeaderMap,
    uri: Uri,
    Path(link): Path<String>,
    body: Bytes,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&console, &headers, uri.path()).await?;
    let mut fields = Fields::read(&body)?;
    visitor.check_form(&fields.take("form"))?;
    let proposal = console.engine.proposal(&link).await?;
    let done = match fields.take("answer").as_str() {
        "refuse" => {
            let refused = console.engine.refuse_proposal(&visitor.proof, &link).await;
            refused.map(|()| "/asks".to_owned())
        }
        "accept" => accept(&console, &visitor, &link, &proposal, &mut fields).await,
        _ => Err(EngineError::ArgumentInvalid {
            name: "answer".to_owned(),
            reason: "must be accept or refuse".to_owned(),
        }),
    };
    match done {
        Ok(onward) => Ok(Redirect::to(&onward).into_response()),
        Err(
            error @ (EngineError::ArgumentInvalid { .. }
            | EngineError::NameInvalid { .. }
            | EngineError::Taken(_)
            | EngineError::Refused(_)),
        ) => {
            let fault = Some(visible::line(&format!("{error}. Nothing was done.")));
            let status = StatusCode::BAD_REQUEST;
            page(&console, &visitor, proposal, status, fault, Some(fields)).await
        }
        Err(EngineError::AskSettled { .. }) => {
            let proposal = console.engine.proposal(&link).await?;
            let fault = "This was answered before. Your answer changed nothing.".to_owned();
            page(&console, &visitor, proposal, StatusCode::CONFLICT, Some(fault), None).await
        }
        Err(error) => Err(error.into()),
    }
}

/// Does what was asked for; answers where to go on.
async fn accept(
    console: &Console,
    visitor: &Visitor,
    link: &str,
    proposal: &ProposalView,
    fields: &mut Fields,
) -> Result<String, EngineError> {
    let engine = &console.engine;
    let typed = fields.take("secret");
    let secret = (!typed.is_empty()).then(|| Secret::new(typed.into_bytes()));
    if let Wants::Permission { .. } = proposal.wants {
        engine.accept_permission(&visitor.proof, link).await?;
        return Ok("/asks".to_owned());
    }
    if let Wants::Credential { .. } = proposal.wants {
        let secret = secret.ok_or_else(|| EngineError::ArgumentInvalid {
            name: "secret".to_owned(),
            reason: "is empty".to_owned(),
        })?;
        let same = fields.says("same_account", "yes");
        engine.accept_credential(&visitor.proof, link, secret, same).await?;
        return Ok("/connections".to_owned());
    }
    let agents = whom(console, fields).await?;
    let words = |name| fields.all(name).map(str::trim).map(str::to_ascii_lowercase).collect();
    let acceptance = Acceptance {
        slug: fields.text("slug").trim().to_owned(),
        display_name: fields.text("display_name").trim().to_owned(),
        agents,
        confirmed: words("confirmed"),
        typed: words("typed"),
    };
    let made = engine.accept_connection(&visitor.proof, link, acceptance, secret).await?;
    Ok(onward(&made))
}

async fn page(
    console: &Console,
    visitor: &Visitor,
    proposal: ProposalView,
    status: StatusCode,
    fault: Option<String>,
    before: Option<Fields>,
) -> Result<Response, Problem> {
    let frame = Frame::of(console, visitor).await?;
    let path = path(&proposal);
    let typed = typed(&proposal, before.as_ref());
    let (known, secret) = match &proposal.wants {
        Wants::Connection { vendor, scheme, .. } => (Preset::named(vendor), secret_field(scheme)),
        Wants::Credential { connection, .. } => {
            let signs_in = connection.scheme.needs_sign_in();
            let field = secret_field(&connection.scheme).filter(|_| !signs_in);
            (Preset::named(&connection.vendor), field)
        }
        Wants::Permission { .. } => (None, None),
    };
    let wants = match proposal.wants {
        Wants::Connection { vendor, hosts, scheme, docs_url, overrides, .. } => {
            let agents = console.engine.agents().await?;
            let ticked: Vec<_> = before.iter().flat_map(|form| form.all("agent")).collect();
            let agents = agents.iter().map(|agent| AgentRow {
                id: visible::line(agent.id.as_str()),
                name: visible::line(&agent.name),
                asks: agent.id == proposal.agent,
                ticked: match before {
                    Some(_) => ticked.contains(&agent.id.as_str()),
                    None => agent.id == proposal.agent,
                },
            });
            Asked::Connection {
                vendor: visible::line(&vendor),
                agents: agents.collect(),
                hosts: hosts.iter().map(|host| host_row(host, before.as_ref())).collect(),
                placed: visible::line(&scheme.placed()),
                fields: scheme_fields(&scheme),
                docs: docs_url.as_deref().map(visible::line),
                policy: overrides.lines().iter().map(|line| visible::line(line)).collect(),
                signs_in: scheme.needs_sign_in(),
            }
        }
        Wants::Credential { connection, reason } => credential(&connection, &reason),
        Wants::Permission { permission, connection } => {
            allowing(&permission, connection.as_deref())
        }
    };
    let page = HandoffPage {
        frame,
        fault,
        path,
        open: proposal.state == ProposalState::Open,
        state: match proposal.state {
            ProposalState::Open => "waiting for you",
            ProposalState::Accepted => "done",
            ProposalState::Refused => "refused",
            ProposalState::Expired => "expired without an answer",
        },
        agent: visible::line(&proposal.agent_name),
        until: civil::time(proposal.expires_ms),
        wants,
        typed,
        secret,
        known: known.map(|preset| Known {
            name: preset.name.clone(),
            credential: preset.credential.clone(),
            docs: preset.docs.clone(),
        }),
    };
    Ok(render(status, &page))
}

fn credential(connection: &Connection, reason: &str) -> Asked {
    Asked::Credential {
        name: visible::line(&connection.display_name),
        slug: visible::line(&connection.slug),
        hosts: connection.hosts.iter().map(|host| visible::line(&host.name)).collect(),
        placed: visible::line(&connection.scheme.placed()),
        reason: visible::lines(reason),
        signs_in: connection.scheme.needs_sign_in(),
        works: connection.status == ConnectionStatus::Connected,
    }
}

/// What a yes would allow, in plain words.
fn allowing(permission: &Permission, connection: Option<&Connection>) -> Asked {
    match permission {
        Permission::ReadPages { host } => Asked::Permission {
            heading: "Let an agent read pages of",
            thing: visible::line(host),
            means: "It reads them without any credential of yours, as often as it likes. What it \
                    puts into an address reaches that host, so allow hosts you would let it write \
                    to; and what a page says may try to talk it into something.",
        },
        Permission::MakeTools { .. } => Asked::Permission {
            heading: "Have tools made for an agent against",
            thing: connection.map_or_else(String::new, |found| visible::line(&found.slug)),
            means: "Each is checked and tried in a dry run, which reads from the vendor, before it \
                    is published; a tool that writes still asks you. A model you configured may \
                    be asked to write it.",
        },
    }
}

fn typed(proposal: &ProposalView, before: Option<&Fields>) -> Typed {
    match (before, &proposal.wants) {
        (Some(form), _) => Typed {
            slug: visible::line(form.text("slug")),
            display_name: visible::line(form.text("display_name")),
            every_agent: form.says("every_agent", "yes"),
            same_account: form.says("same_account", "yes"),
        },
        (None, Wants::Connection { slug, display_name, .. }) => Typed {
            slug: visible::line(slug),
            display_name: visible::line(display_name),
            ..Typed::default()
        },
        (None, Wants::Credential { .. } | Wants::Permission { .. }) => Typed::default(),
    }
}

fn host_row(host: &HostView, before: Option<&Fields>) -> HostRow {
    let among = |name| before.is_some_and(|form| form.all(name).any(|text| text == host.name));
    HostRow {
        confirmed: among("confirmed"),
        typed: if among("typed") { visible::line(&host.name) } else { String::new() },
        name: visible::line(&host.name),
        port: host.port,
        used_for: visible::line(&host.used_for),
        domain: host.domain.as_deref().map_or_else(|| "nobody".to_owned(), visible::line),
        reads_as: host.reads_as.as_deref().map(visible::line),
        flags: host.flags.iter().map(|flag| visible::line(flag)).collect(),
    }
}

/// The fields of a scheme, as the agent filled them.
fn scheme_fields(scheme: &Scheme) -> Vec<(String, String)> {
    let fields = serde_json::to_value(scheme).unwrap_or_default();
    let fields = fields.as_object().into_iter().flatten();
    let shown = fields.filter(|(name, value)| *name != "scheme" && !value.is_null());
    shown
        .map(|(name, value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            (visible::line(name), visible::line(&text))
        })
        .collect()
}

pub(super) fn secret_field(scheme: &Scheme) -> Option<SecretField> {
    let (says, many) = match scheme {
        Scheme::None => return None,
        Scheme::Bearer => ("Token", false),
        Scheme::ApiKeyHeader { .. } | Scheme::ApiKeyQuery { .. } | Scheme::Hmac(_) => {
            ("Key", false)
        }
        Scheme::Basic { username: Some(_) } => ("Password", false),
        Scheme::Basic { username: None } => ("Key", false),
        Scheme::Cookie { .. } => ("Cookie", false),
        Scheme::UrlPath { .. } => ("Token", false),
        Scheme::AwsSigv4(_) => ("Secret access key", true),
        Scheme::JwtAssertion(_) => ("Private key (PEM)", true),
        Scheme::Mtls => ("Certificate and private key (PEM)", true),
        Scheme::Oauth2ClientCredentials(_) | Scheme::Oauth2AuthorizationCode(_) => {
            ("Client secret", false)
        }
    };
    scheme.takes_secret().then_some(SecretField { says, many })
}
