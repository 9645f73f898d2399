//! A download a vendor hands over to another host: followed only for a GET,
//! only where a person named the host, without the credential and without
//! anything of the module's, at most [`HOPS`] times. Each hop has its intent
//! row, its own guard and its own client, like any other request.

use super::carry::{Head, Parcel, late};
use super::send::{closed, unrecorded};
use crate::credential::Placement;
use crate::target::{Target, authority};
use crate::upstream::{Incomplete, Outgoing, Upstream};
use crate::{AuditKind, Connection, Effect, Host, Refusal, Scheme, headers};
use bytes::Bytes;
use http::header::LOCATION;
use std::pin::Pin;
use tokio::time::Sleep;

/// Most hops: a store's front door, its region and its object.
const HOPS: usize = 3;

/// Headers of the module that a hop still needs to mean the same thing.
const KEPT: &[&str] = &["accept", "accept-encoding", "range", "user-agent"];

/// Goes after a redirect as far as the person allowed; whatever else it is
/// comes back as it came.
pub(super) async fn follow(
    parcel: &mut Parcel,
    placement: &Placement,
    mut reply: Incomplete,
    deadline: &mut Pin<Box<Sleep>>,
    head: &mut Head,
) -> Result<Incomplete, Refusal> {
    let held = &parcel.draft.held;
    if held.effect != Effect::Read || held.method != "GET" {
        return Ok(reply);
    }
    let mut host = parcel.inner.spec.connection.hosts[parcel.draft.target.host].clone();
    for hop in 1.. {
        let Some(location) = location(placement, &reply) else { return Ok(reply) };
        let Some((next, target)) = next(parcel, &host, &location, hop > 1)? else {
            return Ok(reply);
        };
        if hop > HOPS {
            return Err(Refusal::HostNotInConnection(format!(
                "the download goes on to {} after {HOPS} hops; no more are followed",
                next.host.name
            )));
        }
        host = next.host.clone();
        parcel.trail.aims(&target);
        parcel.trail.note(&format!("download_hop:{hop}"));
        let intent = parcel.trail.row(AuditKind::Intent, false);
        intent.stored().await.map_err(unrecorded)?;
        let since = parcel.trail.ticks();
        let sending = fetch(parcel, &next, &target);
        let answer = tokio::select! {
            biased;
            () = parcel.inner.stop.cancelled() => Err(closed()),
            () = head.closed() => Err(Refusal::RunClosed("the request was given up".into())),
            () = &mut *deadline => Err(late(&target.authority)),
            answer = sending => answer,
        };
        parcel.trail.vendor_us += parcel.trail.ticks().saturating_sub(since);
        reply = answer?;
        parcel.trail.status = Some(reply.status.as_u16());
    }
    Ok(reply)
}

/// A hop's host, and whether the person's exceptions count for it.
struct Hop {
    host: Host,
    named: bool,
}

/// Where a reply points, if it points anywhere and holds no secret.
fn location(placement: &Placement, reply: &Incomplete) -> Option<String> {
    if !matches!(reply.status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let value = reply.headers.get(LOCATION)?.to_str().ok()?;
    // A vendor that puts the key into the address would have us carry it off.
    let (_, secrets) = placement.redactor.text(value);
    (secrets == 0).then(|| value.to_owned())
}

/// The next hop, or `None` where the module decides: the connection's own
/// host, and a host nobody allowed. `under_way` says that it is no longer the
/// module's to decide.
fn next(
    parcel: &Parcel,
    here: &Host,
    location: &str,
    under_way: bool,
) -> Result<Option<(Hop, Target)>, Refusal> {
    let connection = &parcel.inner.spec.connection;
    let allowed = &connection.overrides.follow_downloads;
    if allowed.is_empty() {
        return Ok(None);
    }
    let host = match named_host(location) {
        Some(host) => host,
        // Another place on the host the last hop went to.
        None if under_way && location.starts_with('/') && !location.starts_with("//") => {
            here.clone()
        }
        None if under_way => {
            let why = format!("{} sends the download to no https address", here.name);
            return Err(Refusal::HostNotInConnection(why));
        }
        None => return Ok(None),
    };
    let entry = authority(&host);
    let named = allowed.contains(&entry);
    let any = allowed.iter().any(|one| one == "*")
        && host.port == 443
        && crate::resolve::check_host(&host.name, &[]).is_ok();
    let own = connection.hosts.iter().any(|one| authority(one) == entry);
    if !under_way && !named && (own || !any) {
        return Ok(None);
    }
    if !named && !any {
        return Err(Refusal::HostNotInConnection(format!(
            "the download goes on to {}, which is not among the hosts to follow to",
            host.name
        )));
    }
    let hop = Hop { host, named };
    let target = Target::read(&reach(connection, &hop), None, location, true, limits(parcel))?;
    Ok(Some((hop, target)))
}

/// The host of an absolute https address, as it stands there.
fn named_host(location: &str) -> Option<Host> {
    let rest = location.strip_prefix("https://")?;
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let (name, port) = match rest[..end].split_once(':') {
        Some((name, port)) => (name, port.parse().ok()?),
        None => (&rest[..end], 443),
    };
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.';
    let fits = !name.is_empty() && name.bytes().all(plain);
    fits.then(|| Host { label: name.to_owned(), name: name.to_owned(), port })
}

/// A connection that reaches the one host of a hop, with no credential.
fn reach(connection: &Connection, hop: &Hop) -> Connection {
    let mut reach = connection.clone();
    reach.hosts = vec![hop.host.clone()];
    reach.scheme = Scheme::None;
    reach.overrides.encoded_slash = true;
    if !hop.named {
        reach.exceptions.clear();
    }
    reach
}

fn limits(parcel: &Parcel) -> &crate::Limits {
    &parcel.inner.shared.parts.limits
}

async fn fetch(parcel: &Parcel, hop: &Hop, target: &Target) -> Result<Incomplete, Refusal> {
    let given = &parcel.draft.held.headers;
    let kept: Vec<_> =
        given.iter().filter(|(name, _)| KEPT.contains(&name.as_str())).cloned().collect();
    let reach = reach(&parcel.inner.spec.connection, hop);
    let upstream = Upstream::new(&reach, None, parcel.inner.shared.network())?;
    let path_and_query = target.path_and_query();
    let outgoing = Outgoing {
        method: "GET",
        effect: Effect::Read,
        again: true,
        authority: &target.authority,
        path_and_query: &path_and_query,
        headers: headers::wire(&kept)?,
        body: Bytes::new(),
    };
    upstream.send(outgoing).await
}
