//! What a request does. First from its method's bytes alone: `Method::is_safe`
//! is not asked, it holds TRACE and QUERY for safe; read means byte-exact GET or
//! HEAD. Then what a person said of the connection: requests that do more than
//! their method says, and the one path whose GraphQL queries do less.

mod graphql;

use crate::overrides::{Overrides, Raise};
use crate::site::template_fits;
use crate::target::{Target, encode_path};
use crate::{Effect, Refusal};

/// Longest method we send: the longest registered one has 17 letters.
const METHOD_BYTES: usize = 32;

/// The effect of a method, or why it is never sent.
pub(crate) fn effect(method: &str) -> Result<Effect, Refusal> {
    let refused = |why: &str| Err(Refusal::MethodInvalid(why.to_owned()));
    if method.is_empty() || method.len() > METHOD_BYTES {
        return refused("the method is empty or too long");
    }
    if !method.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'-') {
        return refused("the method holds something else than upper-case letters");
    }
    match method {
        "GET" | "HEAD" => Ok(Effect::Read),
        "DELETE" => Ok(Effect::Destroy),
        // TRACE echoes the credential, CONNECT opens a tunnel around us.
        "TRACE" | "TRACK" | "CONNECT" => refused("TRACE, TRACK and CONNECT are never sent"),
        _ => Ok(Effect::Write),
    }
}

/// What the effect of a request depends on besides its method.
pub(crate) struct Asked<'a> {
    pub(crate) method: &'a str,
    pub(crate) target: &'a Target,
    pub(crate) content_type: Option<&'a str>,
    pub(crate) body: &'a [u8],
}

/// What a request counts as on a connection with these overrides. Only the
/// GraphQL path can make it less than its method says.
pub(crate) fn counts_as(overrides: &Overrides, by_method: Effect, asked: &Asked<'_>) -> Effect {
    let path = &asked.target.path;
    let mut effect = by_method;
    if let Some(graphql) = &overrides.graphql {
        let reads = || graphql::only_reads(asked);
        if path == graphql && by_method != Effect::Destroy && reads() {
            effect = Effect::Read;
        } else if loosely(path) == loosely(graphql) {
            effect = effect.max(Effect::Write);
        }
    }
    let raised = overrides.raise.iter().filter(|raise| raise.meets(asked.method, path));
    raised.map(|raise| raise.to).fold(effect, Effect::max)
}

impl Raise {
    /// Whether a request is one of these. This list only ever makes stricter,
    /// so it is met by every spelling a vendor may take for the same path.
    fn meets(&self, method: &str, path: &str) -> bool {
        let method_meets = self.method == "*"
            || self.method == method
            || (self.method == "GET" && method == "HEAD");
        if !method_meets || self.path == "*" {
            return method_meets;
        }
        // An encoded slash ends a segment for one server and not for another.
        let kept = path.replace("%2F", "%252F").replace("%2f", "%252F");
        [path, &kept].into_iter().any(|reading| self.fits(&encode_path(&loosely(reading))))
    }

    fn fits(&self, found: &str) -> bool {
        match self.path.strip_suffix("/*") {
            None => template_fits(&loosely(&self.path), found),
            Some(above) => {
                let above = loosely(above);
                let depth = above.split('/').count();
                let head: Vec<&str> = found.split('/').take(depth).collect();
                template_fits(&above, &head.join("/"))
            }
        }
    }
}

/// A path as the most forgiving server reads it: decoded, in lower case,
/// without parameters of segments, without slashes at its end.
fn loosely(path: &str) -> String {
    let decoded = percent_encoding::percent_decode_str(path).decode_utf8_lossy().to_lowercase();
    let segments: Vec<&str> =
        decoded.split('/').map(|segment| segment.split(';').next().unwrap_or_default()).collect();
    segments.join("/").trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests;
