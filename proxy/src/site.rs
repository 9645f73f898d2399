//! What a version is recorded to call: its call sites and the hints derived
//! from them. Derived by the static check in `engine`, enforced here.

use crate::Connection;
use crate::policy::SiteMatch;
use crate::target::{Target, encode_path, select_host};
use serde::{Deserialize, Serialize};

/// What a request does to the vendor, from its method alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Byte-exact GET or HEAD.
    Read,
    /// Any other token.
    Write,
    /// DELETE.
    Destroy,
}

/// The two annotations of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Hints {
    /// Every call is GET or HEAD.
    pub read_only: bool,
    /// DELETE is used.
    pub destructive: bool,
}

/// The method of a call site.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MethodPattern {
    /// One literal method, upper case.
    Exactly(String),
    /// The check could not follow it: any method but DELETE.
    Any,
}

/// The path of a call site.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathPattern {
    /// A template such as `/orders/{}/lines`: each `{}` is a hole that matches
    /// one or more characters inside a single segment (never `/`). The query is
    /// not part of it.
    Template(String),
    /// The check could not follow it.
    Any,
}

/// One place in a version's code that calls the vendor.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallSite {
    /// The method it uses.
    pub method: MethodPattern,
    /// The label of the host it names; `None` is the primary host.
    pub host: Option<String>,
    /// The path it asks for.
    pub path: PathPattern,
}

/// How a request meets the sites a version is recorded to call.
pub(crate) fn match_sites(
    sites: &[CallSite],
    hints: Hints,
    connection: &Connection,
    method: &str,
    effect: Effect,
    target: &Target,
) -> SiteMatch {
    let mut best = SiteMatch::Outside;
    for site in sites {
        if select_host(connection, site.host.as_deref()) != Ok(target.host) {
            continue;
        }
        let method_open = match &site.method {
            MethodPattern::Exactly(literal) if literal == method => false,
            // What the check could not follow is a write, never a DELETE the
            // version does not own up to.
            MethodPattern::Any if effect != Effect::Destroy || hints.destructive => true,
            MethodPattern::Exactly(_) | MethodPattern::Any => continue,
        };
        let path_open = match &site.path {
            PathPattern::Template(template) if template_fits(template, &target.path) => false,
            PathPattern::Any => true,
            PathPattern::Template(_) => continue,
        };
        if !method_open && !path_open {
            return SiteMatch::Recorded;
        }
        let opened = connection.overrides.standing_any;
        best = if opened { SiteMatch::Opened } else { SiteMatch::Open };
    }
    best
}

/// Whether a wire path fits a template, segment by segment.
pub(crate) fn template_fits(template: &str, path: &str) -> bool {
    let mut wanted = template.split('/');
    let mut found = path.split('/');
    loop {
        match (wanted.next(), found.next()) {
            (None, None) => return true,
            (Some(pattern), Some(segment)) if segment_fits(pattern, segment) => {}
            _ => return false,
        }
    }
}

/// One segment: literal pieces in order, one or more characters in each hole.
/// Taking the first place a piece fits is enough, since holes take anything.
fn segment_fits(pattern: &str, segment: &str) -> bool {
    let mut pieces = pattern.split("{}").map(encode_path);
    let Some(rest) = segment.strip_prefix(pieces.next().unwrap_or_default().as_str()) else {
        return false;
    };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return rest.is_empty();
    }
    let mut rest = rest;
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.len() > piece.len() && rest.ends_with(piece.as_str());
        }
        // The hole before the piece takes at least one byte.
        let Some(at) = rest.get(1..).and_then(|after| after.find(piece.as_str())) else {
            return false;
        };
        rest = &rest[1 + at + piece.len()..];
    }
    false
}

#[cfg(test)]
mod tests;
