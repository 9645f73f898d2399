//! Vendors whose hosts, scheme and ways are known beforehand, one data file
//! each under `presets/`: a person who adds one of them types a name and a
//! secret, and a proposal that names one of them is held against its hosts.

use cambium_proxy::Overrides;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// What is known of a vendor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// Vendor half of its tools' names.
    pub vendor: String,
    /// As the vendor writes itself.
    pub name: String,
    /// The first is primary.
    pub hosts: Vec<String>,
    /// Scheme and the fields that are the same for everybody.
    pub scheme: Map<String, Value>,
    /// Fields only the person knows.
    pub ask: Vec<Asked>,
    /// The vendor's own documentation.
    pub docs: String,
    /// What the secret is and where it is made.
    pub credential: String,
    /// What a tool's author should know.
    pub notes: Vec<String>,
    /// What differs from the usual policy for it.
    #[serde(default)]
    pub policy: Overrides,
}

/// A field of the scheme that a person fills.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Its name.
    pub field: String,
    /// What goes there.
    pub what: String,
}

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../presets/", $name, ".json")))),*]
    };
}

/// Each file with its name.
const FILES: &[(&str, &str)] = files![
    "airtable",
    "anthropic",
    "asana",
    "cloudflare",
    "digitalocean",
    "discord",
    "github",
    "gitlab",
    "google-calendar",
    "google-drive",
    "google-gmail",
    "google-sheets",
    "hubspot",
    "linear",
    "notion",
    "openai",
    "sendgrid",
    "sentry",
    "slack",
    "stripe",
    "telegram",
    "twilio",
    "unleashed",
    "xero",
];

static PRESETS: LazyLock<Vec<Preset>> = LazyLock::new(|| {
    FILES
        .iter()
        .filter_map(|(name, text)| match serde_json::from_str(text) {
            Ok(preset) => Some(preset),
            // A test reads each of them: a release has none that fails.
            Err(error) => {
                tracing::error!(name, %error, "a preset cannot be read");
                None
            }
        })
        .collect()
});

/// All of them, by vendor.
pub fn presets() -> &'static [Preset] {
    &PRESETS
}

impl Preset {
    /// The one of this vendor.
    pub fn named(vendor: &str) -> Option<&'static Self> {
        presets().iter().find(|preset| preset.vendor == vendor)
    }

    /// Whether a host is one of the vendor's, or where its tokens are got.
    pub(crate) fn knows(&self, host: &str) -> bool {
        self.hosts.iter().any(|known| known == host)
            || self.scheme.values().filter_map(Value::as_str).any(|text| {
                let rest = text.strip_prefix("https://").unwrap_or_default();
                rest.split('/').next() == Some(host)
            })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::connections::read_scheme;

    #[test]
    fn every_preset_makes_a_connection_once_its_fields_are_filled() {
        assert_eq!(presets().len(), FILES.len());
        for ((name, _), preset) in FILES.iter().zip(presets()) {
            assert_eq!(preset.vendor, *name);
            assert!(crate::ToolName::new(name, "x").is_ok(), "{name}");
            let mut fields = preset.scheme.clone();
            let scheme = fields.remove("scheme").unwrap();
            for asked in &preset.ask {
                fields.insert(asked.field.clone(), "x".into());
            }
            read_scheme(scheme.as_str().unwrap(), fields, &[]).unwrap();
            preset.policy.check().unwrap();
            for host in &preset.hosts {
                cambium_proxy::Proxy::check_host(host, &[]).unwrap();
                assert!(preset.knows(host));
            }
            assert!(preset.docs.starts_with("https://"), "{name}");
            assert!(
                preset.credential.ends_with('.') && preset.notes.iter().all(|n| n.ends_with('.'))
            );
        }
        let mut sorted = FILES.to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, FILES, "by name");
    }
}
