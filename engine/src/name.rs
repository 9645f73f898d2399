//! Tool names: two kebab-case halves and the wire name they make. Pure.

use crate::EngineError;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Longest wire name; some clients count a server prefix against 60 or 64.
const WIRE_NAME_MAX: usize = 48;

/// A valid `(vendor, name)`. On the wire `<vendor>__<name>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Halves", into = "Halves")]
pub struct ToolName {
    vendor: String,
    name: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Halves {
    vendor: String,
    name: String,
}

impl ToolName {
    /// Checks both halves and their joint length.
    pub fn new(vendor: &str, name: &str) -> Result<Self, EngineError> {
        half(vendor)?;
        half(name)?;
        if vendor.len() + 2 + name.len() > WIRE_NAME_MAX {
            return Err(EngineError::NameInvalid {
                name: format!("{vendor}__{name}"),
                rule: "vendor, `__` and name are at most 48 characters together",
            });
        }
        Ok(Self { vendor: vendor.to_owned(), name: name.to_owned() })
    }

    /// Splits a wire name at its only `__`.
    pub fn parse(wire: &str) -> Result<Self, EngineError> {
        let (vendor, name) = wire.split_once("__").ok_or_else(|| EngineError::NameInvalid {
            name: wire.to_owned(),
            rule: "a wire name is `<vendor>__<name>`",
        })?;
        Self::new(vendor, name)
    }

    /// The vendor half.
    pub fn vendor(&self) -> &str {
        &self.vendor
    }

    /// The name half.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}__{}", self.vendor, self.name)
    }
}

impl TryFrom<Halves> for ToolName {
    type Error = EngineError;
    fn try_from(halves: Halves) -> Result<Self, EngineError> {
        Self::new(&halves.vendor, &halves.name)
    }
}

impl From<ToolName> for Halves {
    fn from(tool: ToolName) -> Self {
        Self { vendor: tool.vendor, name: tool.name }
    }
}

fn half(text: &str) -> Result<(), EngineError> {
    let broken = |rule| Err(EngineError::NameInvalid { name: text.to_owned(), rule });
    if text.is_empty() {
        return broken("a half must not be empty");
    }
    if !text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
        return broken("only lower-case letters, digits and hyphens are allowed");
    }
    if text.starts_with('-') || text.ends_with('-') {
        return broken("a half must not start or end with a hyphen");
    }
    if text.contains("--") {
        return broken("a half must not hold two hyphens in a row");
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn b003_a_half_that_breaks_a_rule_is_refused_with_it() {
        for (vendor, name, rule) in [
            ("", "x", "empty"),
            ("x", "", "empty"),
            ("Shop", "x", "lower-case"),
            ("shop", "list_orders", "lower-case"),
            ("shop", "lïst", "lower-case"),
            ("-shop", "x", "start or end"),
            ("shop", "x-", "start or end"),
            ("shop", "a--b", "two hyphens"),
            ("shop", &"x".repeat(43), "48 characters"),
        ] {
            let error = ToolName::new(vendor, name).unwrap_err();
            assert_eq!(error.code(), "name_invalid");
            assert!(error.to_string().contains(rule), "{vendor} {name}: {error}");
        }
        assert!(ToolName::new("shop", &"x".repeat(42)).is_ok());
    }

    #[test]
    fn b004_a_wire_name_splits_at_its_only_separator() {
        for (vendor, name) in [("shop", "list"), ("a-b", "c-d"), ("0", "9"), ("a", "b-c-d")] {
            let tool = ToolName::new(vendor, name).unwrap();
            let wire = tool.to_string();
            assert_eq!(wire.matches("__").count(), 1);
            assert_eq!(ToolName::parse(&wire).unwrap(), tool);
        }
        for wire in ["a__b__c", "a___b", "__a", "a__", "a_b", "a", ""] {
            assert!(ToolName::parse(wire).is_err(), "{wire}");
        }
    }
}
