//! Names to addresses, through the guard: one look-up, and the addresses that
//! come out of [`permitted`] are the ones dialled, so nothing can change
//! between the check and the connection. Dialling itself is `upstream.rs`'s.

use crate::BoxFuture;
use std::net::IpAddr;

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
