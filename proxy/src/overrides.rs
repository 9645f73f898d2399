//! What a person may change of the policy for one connection, and nobody else.
//! Everything is off until they say so; what an agent or a vendor's document
//! proposes may only make it stricter ([`Overrides::only_raises`]). This file
//! holds the values, their bounds and their words; `effect.rs`, `target.rs`,
//! `headers.rs` and `session/` act on them.

use crate::sdk::{SDKS, Sdk};
use crate::{Effect, Limits};
use serde::{Deserialize, Serialize};

/// Entries of one list: more than any vendor was seen to need, few enough to read.
const LIST: usize = 32;

/// Characters of one entry.
const ENTRY: usize = 256;

/// Most requests a minute that can be asked for; beyond it a limit is none.
const RATE: u32 = 60_000;

/// Most requests of one connection at a time: the default is 64, and a vendor
/// that takes more than this at once was not seen.
const CONCURRENT: u32 = 256;

/// Headers no person can open: they frame the message, name its host or hop,
/// carry a credential, or change method, target or coding behind the policy.
const NEVER: &[&str] = &[
    "accept-encoding",
    "api-key",
    "apikey",
    "authentication",
    "authorization",
    "cf-connecting-ip",
    "client-ip",
    "connection",
    "content-encoding",
    "content-length",
    "cookie",
    "cookie2",
    "expect",
    "fastly-client-ip",
    "forwarded",
    "host",
    "http2-settings",
    "keep-alive",
    "private-token",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "true-client-ip",
    "upgrade",
    "user-agent",
    "via",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-forwarded",
    "x-host",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-host",
    "x-original-url",
    "x-real-ip",
    "x-rewrite-url",
    "x-vault-token",
];

/// The same by their beginning.
const NEVER_PREFIXES: &[&str] = &["proxy-", "sec-", "x-forwarded-"];

/// And by their end: what vendors call a credential of their own.
const NEVER_SUFFIXES: &[&str] = &[
    "-access-token",
    "-api-key",
    "-apikey",
    "-auth",
    "-auth-token",
    "-authorization",
    "-security-token",
];

/// Changes to the policy of one connection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Overrides {
    /// Request headers a module may set besides the usual ones, lower case.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<String>,
    /// `%2F` may stand in a path (GitLab's project names, objects of a store).
    #[serde(skip_serializing_if = "is_off")]
    pub encoded_slash: bool,
    /// `Range` passes. Slices of an echo evade redaction.
    #[serde(skip_serializing_if = "is_off")]
    pub range: bool,
    /// `HOST` or `HOST:PORT` a GET's redirect is followed to, without the
    /// credential; `*` is any public host on port 443.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub follow_downloads: Vec<String>,
    /// Requests a minute over all runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<u32>,
    /// Requests at a time over all runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrent: Option<u32>,
    /// The path whose GraphQL documents are read: one that only queries counts
    /// as a read, anything else there as a write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graphql: Option<String>,
    /// Requests that do more than their method says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub raise: Vec<Raise>,
    /// Packages its tools may import. What they send counts as a write.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sdks: Vec<Sdk>,
    /// *From now on* can be given to a version whose methods or paths the check
    /// cannot read, SDKs included: it then covers whatever that version calls.
    #[serde(skip_serializing_if = "is_off")]
    pub standing_any: bool,
}

/// Requests that count as a write or a destroy whatever their method.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Raise {
    /// Upper-case method, or `*` for any. `GET` means HEAD too.
    pub method: String,
    /// A template as in a call site, one that ends in `/*` for everything
    /// below, or `*` for every path.
    pub path: String,
    /// What they count as.
    pub to: Effect,
}

/// A value that cannot stand in [`Overrides`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct OverrideFault {
    /// The field.
    pub name: &'static str,
    /// What is wrong with which value, and what would be right.
    pub reason: String,
}

fn is_off(flag: &bool) -> bool {
    !flag
}

impl Overrides {
    /// Requests at a time over all runs.
    pub(crate) fn most_at_a_time(&self, limits: &Limits) -> usize {
        let asked = self.concurrent.and_then(|most| usize::try_from(most).ok());
        asked.unwrap_or(limits.connection_concurrent)
    }

    /// Whether every value is in its bounds.
    pub fn check(&self) -> Result<(), OverrideFault> {
        bounded("headers", &self.headers)?;
        for name in &self.headers {
            check_header(name)?;
        }
        bounded("follow_downloads", &self.follow_downloads)?;
        for host in &self.follow_downloads {
            check_download(host)?;
        }
        number("rate", self.rate, RATE)?;
        number("concurrent", self.concurrent, CONCURRENT)?;
        if let Some(path) = &self.graphql {
            check_path("graphql", path)?;
            if path.contains(['{', '*', '?']) {
                return Err(fault("graphql", path, "one path, without holes or a query"));
            }
        }
        if self.raise.len() > LIST {
            return Err(too_many("raise"));
        }
        self.raise.iter().try_for_each(Raise::check)?;
        check_sdks(&self.sdks)
    }

    /// Whether these are at least as strict as `before` in every point: what may
    /// be set without a person.
    pub fn only_raises(&self, before: &Self) -> bool {
        let within = |now: &[String], then: &[String]| now.iter().all(|one| then.contains(one));
        let lower = |now: Option<u32>, then: Option<u32>| match (now, then) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(now), Some(then)) => now <= then,
        };
        within(&self.headers, &before.headers)
            && within(&self.follow_downloads, &before.follow_downloads)
            && (before.encoded_slash || !self.encoded_slash)
            && (before.range || !self.range)
            && lower(self.rate, before.rate)
            && lower(self.concurrent, before.concurrent)
            && self.sdks.iter().all(|sdk| before.sdks.contains(sdk))
            && (before.standing_any || !self.standing_any)
            && (self.graphql.is_none() || self.graphql == before.graphql)
            && before.raise.iter().all(|then| {
                self.raise.iter().any(|now| {
                    (&now.method, &now.path) == (&then.method, &then.path) && now.to >= then.to
                })
            })
    }

    /// Whether a request that reads by its method may count as more.
    pub(crate) fn raises_reads(&self) -> bool {
        let reads = |raise: &Raise| matches!(raise.method.as_str(), "GET" | "HEAD" | "*");
        self.graphql.is_some() || self.raise.iter().any(reads)
    }

    /// One line for each thing that is not as usual, for a person.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let joined = |list: &[String]| list.join(", ");
        if !self.headers.is_empty() {
            lines.push(format!("tools may set the headers {}", joined(&self.headers)));
        }
        if self.encoded_slash {
            lines.push("%2F may stand in a path".into());
        }
        if self.range {
            lines.push("tools may ask for ranges; a slice of an echo is not redacted".into());
        }
        if !self.follow_downloads.is_empty() {
            let hosts = joined(&self.follow_downloads);
            lines.push(format!("downloads are followed, without the credential, to {hosts}"));
        }
        if let Some(rate) = self.rate {
            lines.push(format!("at most {rate} requests a minute"));
        }
        if let Some(concurrent) = self.concurrent {
            lines.push(format!("at most {concurrent} requests at a time"));
        }
        if let Some(path) = &self.graphql {
            lines.push(format!("GraphQL queries at {path} count as reads, all else there writes"));
        }
        for Raise { method, path, to } in &self.raise {
            lines.push(format!("{method} {path} counts as a {}", word(*to)));
        }
        for sdk in &self.sdks {
            lines.push(format!("tools may import {} (bundle {})", sdk.label(), sdk.digest));
        }
        if self.standing_any {
            lines.push("from now on may cover any method and path of a tool".into());
        }
        lines
    }
}

impl Raise {
    fn check(&self) -> Result<(), OverrideFault> {
        let Self { method, path, to } = self;
        if method != "*" && crate::effect::effect(method).is_err() {
            return Err(fault("raise", method, "an upper-case method, or `*`"));
        }
        if path != "*" {
            check_path("raise", path)?;
        }
        if path.trim_end_matches("/*").contains('*') && path != "*" {
            return Err(fault("raise", path, "a path whose only `*` is a final `/*`"));
        }
        if *to == Effect::Read {
            return Err(fault("raise", "read", "`write` or `destroy`: a request is only raised"));
        }
        Ok(())
    }
}

fn word(effect: Effect) -> &'static str {
    match effect {
        Effect::Read => "read",
        Effect::Write => "write",
        Effect::Destroy => "destroy",
    }
}

/// Whether a header is none a module may ever set, on no list and by no word.
pub(crate) fn never(name: &str) -> bool {
    NEVER.contains(&name)
        || NEVER_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || NEVER_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

fn check_header(name: &str) -> Result<(), OverrideFault> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if name.is_empty() || !name.bytes().all(plain) {
        return Err(fault("headers", name, "a lower-case header name of a-z, 0-9 and `-`"));
    }
    if name == "range" {
        return Err(fault("headers", name, "set this way; `range` has a switch of its own"));
    }
    if never(name) {
        let right = "a header a tool may have: it frames the message, names its host or hop, \
                     carries a credential or changes what the request means";
        return Err(fault("headers", name, right));
    }
    Ok(())
}

fn check_sdks(sdks: &[Sdk]) -> Result<(), OverrideFault> {
    if sdks.len() > SDKS {
        return Err(OverrideFault { name: "sdks", reason: format!("there are more than {SDKS}") });
    }
    for (at, sdk) in sdks.iter().enumerate() {
        if let Some(right) = sdk.fault() {
            return Err(fault("sdks", &sdk.label(), right));
        }
        if sdks[..at].iter().any(|other| other.name == sdk.name) {
            return Err(fault("sdks", &sdk.label(), "there once: a name is one version"));
        }
    }
    Ok(())
}

fn check_download(entry: &str) -> Result<(), OverrideFault> {
    let right = "`HOST`, `HOST:PORT` or `*`: one whole public name, no wildcard in it";
    if entry == "*" {
        return Ok(());
    }
    let (host, port) = match entry.split_once(':') {
        Some((host, port)) => (host, port.parse::<u16>().unwrap_or(0)),
        None => (entry, 443),
    };
    if port == 0 || crate::resolve::check_host(host, &[]).is_err() {
        return Err(fault("follow_downloads", entry, right));
    }
    Ok(())
}

fn check_path(name: &'static str, path: &str) -> Result<(), OverrideFault> {
    let plain = |b: u8| (0x21..0x7f).contains(&b) && !matches!(b, b'\\' | b'#' | b'?');
    if !path.starts_with('/') || path.contains("//") || !path.bytes().all(plain) {
        return Err(fault(name, path, "a path that starts with one `/`, without a query"));
    }
    Ok(())
}

fn bounded(name: &'static str, list: &[String]) -> Result<(), OverrideFault> {
    if list.len() > LIST {
        return Err(too_many(name));
    }
    match list.iter().find(|entry| entry.len() > ENTRY) {
        Some(entry) => Err(fault(name, entry, "at most 256 bytes")),
        None => Ok(()),
    }
}

fn number(name: &'static str, value: Option<u32>, most: u32) -> Result<(), OverrideFault> {
    match value {
        Some(value) if value == 0 || value > most => {
            Err(fault(name, &value.to_string(), &format!("a number from 1 to {most}")))
        }
        Some(_) | None => Ok(()),
    }
}

fn too_many(name: &'static str) -> OverrideFault {
    OverrideFault { name, reason: format!("there are more than {LIST} entries") }
}

fn fault(name: &'static str, value: &str, right: &str) -> OverrideFault {
    let shown: String = value.chars().take(64).collect();
    OverrideFault { name, reason: format!("`{}` is not {right}", shown.escape_debug()) }
}

#[cfg(test)]
mod tests;
