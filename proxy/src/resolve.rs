//! Names to addresses, through the guard: one look-up, and the addresses that
//! come out of [`guarded`] are the ones dialled, so nothing can change between
//! the check and the connection. What an address is, is `address.rs`'s; dialling
//! is `upstream.rs`'s.

use crate::address::{Denied, judge};
use crate::{BoxFuture, Exception, Host, Limits, Refusal};
use std::net::{IpAddr, SocketAddr};

/// Where addresses of a name come from. The guard runs on every answer, so a
/// test that injects answers still meets it.
pub trait Resolve: Send + Sync {
    /// All addresses of a host name, in the order they should be tried.
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>>;
}

/// The machine's own resolver. The proxy bounds it with its DNS deadline.
#[derive(Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// The addresses of a public host, looked up once and guarded like a vendor's:
/// for a notice that a person's own configuration sends, never for a tool.
pub async fn public_addresses(name: &str, port: u16) -> Result<Vec<SocketAddr>, Refusal> {
    check_host(name, &[])?;
    let host = Host { label: name.to_owned(), name: name.to_owned(), port };
    guarded(&SystemResolver, &host, &[], &[], &Limits::default()).await
}

/// Names that stand for metadata whatever they resolve to.
const METADATA_NAMES: &[&str] = &["metadata.google.internal", "metadata", "instance-data"];

/// The addresses of a host that may be dialled. Denied ones are dropped from a
/// mixed answer; when none is left the host is refused.
pub(crate) async fn guarded(
    resolver: &dyn Resolve,
    host: &Host,
    exceptions: &[Exception],
    own: &[SocketAddr],
    limits: &Limits,
) -> Result<Vec<SocketAddr>, Refusal> {
    if METADATA_NAMES.contains(&host.name.trim_end_matches('.')) {
        return Err(Refusal::AddressDenied(format!("{} is a cloud metadata service", host.name)));
    }
    let found = match host.name.parse::<IpAddr>() {
        Ok(literal) => vec![literal],
        Err(_) => look_up(resolver, &host.name, limits).await?,
    };
    let mut allowed = Vec::new();
    let mut denied = None;
    for address in found.into_iter().take(limits.addresses) {
        let address = address.to_canonical();
        match judge(address, host.port, exceptions, own) {
            Ok(()) => allowed.push(SocketAddr::new(address, host.port)),
            Err(reason) => {
                tracing::warn!(host = %host.name, %address, ?reason, "address not dialled");
                denied.get_or_insert(reason);
            }
        }
    }
    match denied {
        _ if !allowed.is_empty() => Ok(allowed),
        Some(Denied::Own) => {
            Err(Refusal::SelfAddress(format!("{} is one of our own listeners", host.name)))
        }
        Some(Denied::Class(class)) => {
            Err(Refusal::AddressDenied(format!("{} resolves to {}", host.name, class.words())))
        }
        None => Err(Refusal::UpstreamTimeout(format!("{} has no address", host.name))),
    }
}

async fn look_up(
    resolver: &dyn Resolve,
    name: &str,
    limits: &Limits,
) -> Result<Vec<IpAddr>, Refusal> {
    match tokio::time::timeout(limits.dns, resolver.resolve(name)).await {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(error)) => {
            tracing::warn!(host = name, %error, "name look-up failed");
            Err(Refusal::UpstreamTimeout(format!("the name {name} could not be looked up")))
        }
        Err(_) => {
            Err(Refusal::UpstreamTimeout(format!("the name {name} was not looked up in time")))
        }
    }
}

/// Whether a host may stand in a connection, before any look-up. A literal
/// address needs an exception that covers it; a name needs the shape of a
/// public one.
pub(crate) fn check_host(host: &str, exceptions: &[Exception]) -> Result<(), Refusal> {
    let denied = |why: &str| Err(Refusal::AddressDenied(format!("the host {why}")));
    if let Ok(address) = host.parse::<IpAddr>() {
        let lifted = exceptions
            .iter()
            .any(|exception| judge(address, exception.port, exceptions, &[]).is_ok());
        let spelled = address.to_string() == host;
        return if lifted
            && spelled
            && crate::address::classify(address) != crate::address::Class::Public
        {
            Ok(())
        } else {
            denied("is an address; give a name, or an exception with its range and port")
        };
    }
    if host.is_empty() || host.len() > 253 {
        return denied("is empty or longer than 253 bytes");
    }
    let labels: Vec<&str> = host.split('.').collect();
    let label_fits = |label: &&str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    if !labels.iter().all(label_fits) {
        return denied("is not a lower-case ASCII name without a port, wildcard or final dot");
    }
    if METADATA_NAMES.contains(&host) {
        return denied("is a cloud metadata service");
    }
    let last = labels.last().copied().unwrap_or_default();
    // Parsers read a name whose last label is a number as an IPv4 address.
    let numeric = last.bytes().all(|b| b.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_hexdigit()));
    if numeric {
        return denied("reads as an IPv4 address");
    }
    let local = last == "localhost" || labels.len() < 2;
    if local && exceptions.is_empty() {
        return denied("is local; a connection to it needs an exception with its range and port");
    }
    Ok(())
}
