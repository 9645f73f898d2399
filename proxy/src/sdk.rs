//! A package that tools of one connection may import, as a person listed it: the
//! exact version, the registry's own digest of what was fetched, and ours of the
//! one file it was bundled into. The file itself is the engine's to keep; what an
//! SDK sends is judged like any other request.

use crate::ContentHash;
use serde::{Deserialize, Serialize};

/// Packages of one connection.
pub(crate) const SDKS: usize = 8;
/// Longest name npm takes, bytes.
const NAME: usize = 214;
/// Longest version and longest digest of the registry's, bytes.
const TEXT: usize = 128;

/// One package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sdk {
    /// As it is imported: `stripe`, `@octokit/core`.
    pub name: String,
    /// Exact, never a range.
    pub version: String,
    /// The registry's digest of the package: `sha512-…`.
    pub integrity: String,
    /// SHA-256 of the bundle.
    pub digest: ContentHash,
}

impl Sdk {
    /// `name@version`.
    pub fn label(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }

    /// What is wrong with it, if anything.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        if !is_package_name(&self.name) {
            return Some("a package's name, like `stripe` or `@octokit/core`");
        }
        if !is_exact_version(&self.version) {
            return Some("a package with one exact version, like 23.1.0");
        }
        let base64 = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=');
        let digest = self.integrity.strip_prefix("sha512-").filter(|text| text.len() < TEXT);
        if !digest.is_some_and(|text| !text.is_empty() && text.bytes().all(base64)) {
            return Some("a package with the registry's `sha512-…` digest");
        }
        None
    }
}

/// Whether a text is the whole name of a package, without a path into it. What
/// it allows can stand in a file's path and in a line for a person.
pub fn is_package_name(text: &str) -> bool {
    let half = |part: &str| {
        let plain =
            |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_' | b'.');
        part.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit())
            && part.bytes().all(plain)
    };
    let halves = match text.strip_prefix('@') {
        Some(scoped) => {
            scoped.split_once('/').is_some_and(|(scope, name)| half(scope) && half(name))
        }
        None => half(text),
    };
    halves && text.len() <= NAME
}

/// Whether a text is one version and no range: `1.2.3`, `1.2.3-beta.1`.
pub fn is_exact_version(text: &str) -> bool {
    let (numbers, rest) = match text.split_once(['-', '+']) {
        Some((numbers, rest)) => (numbers, Some(rest)),
        None => (text, None),
    };
    let whole = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'+');
    numbers.split('.').count() == 3
        && numbers.split('.').all(whole)
        && rest.is_none_or(|rest| !rest.is_empty() && rest.bytes().all(plain))
        && text.len() < TEXT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_whole_name_and_a_version_is_one_version() {
        for good in ["stripe", "@octokit/core", "a", "lodash.merge", "x_y"] {
            assert!(is_package_name(good), "{good}");
        }
        for bad in [
            "",
            ".",
            "..",
            "../x",
            "stripe/lib",
            "@octokit",
            "@octokit/core/x",
            "@/x",
            "@x/",
            "Stripe",
            "node:fs",
            "ext:core",
            "https://x",
            "a b",
            "a\n",
            "@../x",
            "@x/..",
            "-x",
            "_x",
        ] {
            assert!(!is_package_name(bad), "{bad}");
        }
        for good in ["1.2.3", "0.0.0", "23.1.0-beta.1", "1.2.3+build"] {
            assert!(is_exact_version(good), "{good}");
        }
        for bad in ["", "1", "1.2", "^1.2.3", "1.2.x", "latest", "1.2.3 ", "1.2.3-", "1..3", "*"] {
            assert!(!is_exact_version(bad), "{bad}");
        }
    }
}
