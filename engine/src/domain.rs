//! What a host's name says and what it hides: the domain somebody registered,
//! how it reads in its own letters, and what a person should look at twice
//! before a credential goes there. Pure; the list of public suffixes is a
//! library's.

use crate::presets::{Preset, presets};
use serde::Serialize;

/// One host of a proposal, as a person confirms it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostView {
    /// As dialled: lower-case ASCII.
    pub name: String,
    /// TLS port.
    pub port: u16,
    /// What it is for: `requests`, or the field that names it, like `token_url`.
    pub used_for: String,
    /// The domain somebody registered; none when it is a public suffix.
    pub domain: Option<String>,
    /// How it reads, when that is not its ASCII.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads_as: Option<String>,
    /// What to look at twice. With any, the person types the name.
    pub flags: Vec<String>,
}

/// The part of a name that somebody registered.
pub(crate) fn registrable(host: &str) -> Option<String> {
    psl::domain_str(host).map(str::to_owned)
}

/// Looks at one host of a vendor whose primary host is `primary`.
pub(crate) fn look(
    (name, port): (&str, u16),
    used_for: &str,
    primary: &str,
    known: Option<&Preset>,
) -> HostView {
    let (domain, primary_domain) = (registrable(name), registrable(primary));
    let readable = idna::domain_to_unicode(name).0;
    let reads_as = (readable != name).then_some(readable);
    let mut flags = Vec::new();
    if name.parse::<std::net::IpAddr>().is_ok() || domain.is_none() {
        flags.push("nobody registered this name: anybody may be behind it".to_owned());
    } else if domain != primary_domain {
        flags.push(format!("outside `{}`", primary_domain.unwrap_or_else(|| primary.to_owned())));
    }
    if reads_as.is_some() {
        flags.push("holds letters that can look like others".to_owned());
    }
    if let Some(preset) = known
        && !preset.knows(name)
    {
        flags.push(format!("not one of the hosts known for {}", preset.name));
    }
    HostView { name: name.to_owned(), port, used_for: used_for.to_owned(), domain, reads_as, flags }
}

/// The vendor that a proposal's words speak of, if it is one we know.
pub(crate) fn spoken_of(vendor: &str, display_name: &str) -> Option<&'static Preset> {
    let said: Vec<String> = [vendor, display_name]
        .iter()
        .flat_map(|text| text.split(|c: char| !c.is_alphanumeric()))
        .map(str::to_lowercase)
        .collect();
    let exact = presets().iter().find(|preset| preset.vendor == vendor);
    exact.or_else(|| {
        presets().iter().find(|preset| {
            preset.vendor.split('-').all(|word| said.iter().any(|other| other == word))
                || preset.name.split(' ').all(|word| said.contains(&word.to_lowercase()))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b078_a_host_is_flagged_for_each_reason_there_is() {
        let github = spoken_of("github", "");
        let rows: &[(&str, &str, Option<&Preset>, &[&str])] = &[
            ("api.acme.com", "api.acme.com", None, &[]),
            ("uploads.acme.com", "api.acme.com", None, &[]),
            ("api.acme.co.uk", "files.acme.co.uk", None, &[]),
            ("api.evil.co.uk", "api.acme.co.uk", None, &["outside `acme.co.uk`"]),
            ("acme.com.evil.test", "api.acme.com", None, &["outside `acme.com`"]),
            ("co.uk", "api.acme.co.uk", None, &["nobody registered"]),
            ("a.github.io", "b.github.io", None, &["outside `b.github.io`"]),
            ("xn--pple-43d.com", "xn--pple-43d.com", None, &["letters"]),
            ("api.github.com", "api.github.com", github, &[]),
            ("uploads.github.com", "api.github.com", github, &[]),
            (
                "api.github.dev",
                "api.github.dev",
                github,
                &["not one of the hosts known for GitHub"],
            ),
        ];
        for (name, primary, known, wanted) in rows {
            let seen = look((name, 443), "requests", primary, *known);
            assert_eq!(seen.flags.len(), wanted.len(), "{name}: {:?}", seen.flags);
            for (flag, wanted) in seen.flags.iter().zip(*wanted) {
                assert!(flag.contains(wanted), "{name}: {flag}");
            }
        }
        let punycode = look(("xn--pple-43d.com", 443), "requests", "xn--pple-43d.com", None);
        assert_eq!(punycode.reads_as.as_deref(), Some("\u{430}pple.com"));
    }

    #[test]
    fn b078_a_known_vendor_is_recognised_however_it_is_named() {
        for (vendor, said, name) in [
            ("github", "", Some("GitHub")),
            ("acme-github", "", Some("GitHub")),
            ("acme", "My GitHub!", Some("GitHub")),
            ("acme", "Google Drive of mine", Some("Google Drive")),
            ("acme", "Acme", None),
            ("stripes", "", None),
        ] {
            assert_eq!(
                spoken_of(vendor, said).map(|preset| &*preset.name),
                name,
                "{vendor} {said}"
            );
        }
    }
}
