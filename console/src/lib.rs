//! What a person looks at and decides in: login, the first steps, the asks with their exact
//! requests, the connections agents ask for and where their secrets are
//! entered, the agents and what stands in their working sets, the tools, the
//! runs and the audit.
//!
//! Plain pages and forms. The one script brings an open page up to date and
//! nothing needs it. Every page is behind the exact Host and
//! Origin checks of `guard`, every form carries the session's token, and
//! whatever an agent or a vendor wrote goes through `visible`. Deciding is the
//! engine's: this crate shows what it is told and hands over what a person
//! answered.

mod chart;
mod civil;
mod colour;
mod decoded;
mod error;
mod form;
mod guard;
mod live;
mod pages;
mod script;
mod session;
mod visible;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use cambium_engine::Engine;
use cambium_proxy::AuditSink;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Largest form, bytes: a secret of 64 KiB, percent-encoded, with room.
const FORM_BYTES_MAX: usize = 256 * 1024;

/// How the console is served.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Values of `Host` that are answered: `127.0.0.1:7171`.
    pub hosts: Vec<String>,
    /// Values of `Origin` that forms may come from: `http://127.0.0.1:7171`.
    pub origins: Vec<String>,
    /// Said on each page: a missing sandbox layer, agents under the same user.
    pub notices: Vec<String>,
    /// Ends what would be open for long, when the server stops.
    pub stop: CancellationToken,
}

/// Where the audit is read.
#[derive(Clone)]
pub struct Audit {
    /// Holds the rows.
    pub sink: Arc<dyn AuditSink>,
    /// Name of this node's chain.
    pub node: String,
}

/// What every handler is given.
#[derive(Clone)]
struct Console {
    engine: Arc<Engine>,
    audit: Audit,
    settings: Arc<Settings>,
    streams: Arc<live::Streams>,
}

/// All pages of the console.
pub fn router(engine: Arc<Engine>, audit: Audit, settings: Settings) -> Router {
    let console = Console { engine, audit, settings: Arc::new(settings), streams: Arc::default() };
    Router::new()
        .route("/", get(pages::home))
        .route("/style.css", get(pages::stylesheet))
        .route(script::path(), get(script::show))
        .route("/live", get(live::follow))
        .route("/login", get(pages::login::show).post(pages::login::submit))
        .route("/logout", post(pages::login::leave))
        .route("/asks", get(pages::asks::list))
        .route("/asks/{id}", get(pages::asks::show).post(pages::asks::decide))
        .route("/handoff/{link}", get(pages::handoff::show).post(pages::handoff::answer))
        .route("/agents", get(pages::agents::list).post(pages::agents::create))
        .route("/agents/{id}", get(pages::agent::show).post(pages::agent::change))
        .route("/start", get(pages::start::show))
        .route("/start/{id}", get(pages::start::connected))
        .route("/toolbox", get(pages::toolbox::list))
        .route("/toolbox/{tool}", get(pages::tool::show).post(pages::tool::try_it))
        .route("/runs", get(pages::runs::list))
        .route("/audit", get(pages::audit::list))
        .route("/connect", get(pages::add::vendors))
        .route("/connect/{vendor}", get(pages::add::show).post(pages::add::add))
        .route("/connections", get(pages::connections::list))
        .route("/connections/{slug}", post(pages::connections::change))
        .route(
            "/connections/{slug}/authorize",
            get(pages::sign_in::show).post(pages::sign_in::begin),
        )
        .route("/oauth/callback", get(pages::sign_in::returned))
        .route("/oauth/complete", get(pages::sign_in::complete))
        .fallback(pages::missing)
        .layer(DefaultBodyLimit::max(FORM_BYTES_MAX))
        .layer(from_fn_with_state(console.settings.clone(), guard::check))
        .layer(from_fn(guard::harden))
        .with_state(console)
}
