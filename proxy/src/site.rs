//! What a version is recorded to call: its call sites and the hints derived
//! from them. Derived by the static check in `engine`, enforced here.

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
