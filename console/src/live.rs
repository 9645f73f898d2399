//! Tells an open page that something changed: a stream of server-sent events
//! that carry a name and no data. What changed is on the page itself, which its
//! script asks for again under the same session; so nothing an agent or a
//! vendor wrote goes this way. A stream belongs to a session and ends with it,
//! and there are few of them.

use crate::Console;
use crate::error::Problem;
use crate::session::Visitor;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use cambium_engine::{Changes, SessionEnd, Topic};
use futures_util::stream::unfold;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Uri};
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// Streams of one session: a page that cannot be seen has none, and a browser
/// keeps six connections to a host, of which the pages need some.
const PER_SESSION: usize = 4;
/// Streams of all sessions.
const IN_ALL: usize = 32;
/// From one telling to the next: what changes in between is told together.
const PAUSE: Duration = Duration::from_millis(500);
/// Silence after which something is sent, so that a connection that is gone is
/// found.
const HEARTBEAT: Duration = Duration::from_secs(20);
/// A browser that lost its stream comes back after this, milliseconds.
const BACK_AFTER_MS: u32 = 2_000;

/// The streams that are open, by the form token of their session.
#[derive(Default)]
pub(crate) struct Streams(Mutex<HashMap<String, usize>>);

/// One of them, until it is dropped.
struct Place {
    streams: Arc<Streams>,
    session: String,
}

impl Streams {
    fn take(self: &Arc<Self>, session: String) -> Result<Place, Problem> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mine = open.get(&session).copied().unwrap_or_default();
        if mine >= PER_SESSION || open.values().sum::<usize>() >= IN_ALL {
            return Err(Problem::streams());
        }
        open.insert(session.clone(), mine + 1);
        Ok(Place { streams: self.clone(), session })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.streams.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = open.get(&self.session).copied().unwrap_or_default().saturating_sub(1);
        match left {
            0 => open.remove(&self.session),
            left => open.insert(self.session.clone(), left),
        };
    }
}

/// An open stream.
struct Line {
    console: Console,
    visitor: Visitor,
    changes: Changes,
    /// When the session ends by itself. By the clock on the wall: the other one
    /// stands still while the machine sleeps.
    ends: SessionEnd,
    /// Nothing is told before.
    quiet: Instant,
    greeted: bool,
    _place: Place,
}

pub(crate) async fn follow(
    State(console): State<Console>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    // Another port of this machine is the same site, and gets the cookie sent.
    if headers.get_all("sec-fetch-site").iter().any(|from| from.as_bytes() != b"same-origin") {
        return Err(Problem::origin());
    }
    // To a stream the way to the login is of no use.
    let visitor = match Visitor::of(&console, &headers, uri.path()).await {
        Err(Problem::Login(_)) => return Err(Problem::session()),
        other => other?,
    };
    let place = console.streams.take(visitor.form_token())?;
    // Before the session is looked at: an end in between is heard.
    let changes = console.engine.changes();
    let ends = console.engine.session_ends(visitor.token()).await?;
    let line = Line {
        console,
        visitor,
        changes,
        ends,
        quiet: Instant::now(),
        greeted: false,
        _place: place,
    };
    let told = unfold(line, |mut line| async {
        let text = line.next().await?;
        Some((Ok::<_, Infallible>(text), line))
    });
    Ok(([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(told)).into_response())
}

impl Line {
    /// What is sent next; `None` ends the stream.
    async fn next(&mut self) -> Option<String> {
        if !std::mem::replace(&mut self.greeted, true) {
            return Some(format!("retry: {BACK_AFTER_MS}\n\n"));
        }
        let Self { console, visitor, changes, ends, quiet, .. } = self;
        loop {
            let heard = async {
                sleep_until(*quiet).await;
                changes.next().await
            };
            let topics = tokio::select! {
                biased;
                () = console.settings.stop.cancelled() => return None,
                topics = heard => topics?,
                () = sleep(HEARTBEAT.min(console.engine.left(*ends))) => Vec::new(),
            };
            if console.engine.left(*ends).is_zero() {
                return None;
            }
            if topics.is_empty() {
                return Some(":\n\n".to_owned());
            }
            if topics.contains(&Topic::Sessions)
                && console.engine.session(visitor.token()).await.is_err()
            {
                return None;
            }
            let text: String = topics.into_iter().filter_map(name).map(event).collect();
            if !text.is_empty() {
                *quiet = Instant::now() + PAUSE;
                return Some(text);
            }
        }
    }
}

/// What a page calls a topic; a session's end is told by the stream's.
fn name(topic: Topic) -> Option<&'static str> {
    match topic {
        Topic::Asks => Some("asks"),
        Topic::Lists => Some("lists"),
        Topic::Runs => Some("runs"),
        Topic::Sessions => None,
    }
}

/// An event without a `data` line would not be one.
fn event(name: &str) -> String {
    format!("event: {name}\ndata:\n\n")
}
