//! The name of an operation's tool: its id in kebab case, or its method and
//! path, shortened so that the wire name stays within its limit, and never the
//! same twice. The same document always gives the same names.

use crate::ToolName;
use crate::canonical::digest;
use std::collections::BTreeSet;

/// Longest wire name, characters: see `name.rs` of the engine.
const WIRE_NAME_MAX: usize = 48;
/// Words that go first when a name is too long.
const SMALL: [&str; 13] =
    ["a", "an", "and", "by", "for", "from", "in", "of", "on", "the", "to", "with", "v1"];

/// The name for an operation, marked as taken.
pub(super) fn name(
    vendor: &str,
    id: Option<&str>,
    key: &str,
    taken: &mut BTreeSet<ToolName>,
) -> Result<ToolName, String> {
    let room = WIRE_NAME_MAX.saturating_sub(vendor.len() + 2);
    let words = words(id.unwrap_or(key));
    let mut candidates = Vec::new();
    if !words.is_empty() {
        candidates.push(words.join("-"));
        candidates.push(dense(vendor, &words).join("-"));
    }
    let mark = digest(&[key.as_bytes()]);
    let mark = format!("{:02x}{:02x}{:02x}{:02x}", mark[0], mark[1], mark[2], mark[3]);
    for length in [4, 8] {
        candidates.push(marked(&dense(vendor, &words), &mark[..length], room));
    }
    for candidate in candidates {
        if candidate.len() > room {
            continue;
        }
        if let Ok(tool) = ToolName::new(vendor, &candidate)
            && taken.insert(tool.clone())
        {
            return Ok(tool);
        }
    }
    Err("no name is free for it that is short enough".into())
}

/// `issues/listForRepo` as `issues`, `list`, `for`, `repo`.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let characters: Vec<char> = text.chars().take(400).collect();
    for (at, c) in characters.iter().enumerate() {
        if !c.is_ascii_alphanumeric() {
            words.push(std::mem::take(&mut word));
            continue;
        }
        let before = at.checked_sub(1).map(|at| characters[at]);
        let after = characters.get(at + 1);
        let begins = c.is_ascii_uppercase()
            && before.is_some_and(|b| {
                b.is_ascii_lowercase()
                    || b.is_ascii_digit()
                    || b.is_ascii_uppercase() && after.is_some_and(char::is_ascii_lowercase)
            });
        if begins {
            words.push(std::mem::take(&mut word));
        }
        word.push(c.to_ascii_lowercase());
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// Without small words, the vendor's own and those said before.
fn dense(vendor: &str, words: &[String]) -> Vec<String> {
    let mut dense: Vec<String> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let small = SMALL.contains(&word.as_str()) || word == vendor;
        if at == 0 || !small && !dense.contains(word) {
            dense.push(word.clone());
        }
    }
    dense
}

/// As many words as fit before the mark.
fn marked(words: &[String], mark: &str, room: usize) -> String {
    let mut name = String::new();
    for word in words {
        let more = if name.is_empty() { word.len() } else { name.len() + 1 + word.len() };
        if more + 1 + mark.len() > room {
            break;
        }
        if !name.is_empty() {
            name.push('-');
        }
        name.push_str(word);
    }
    if name.is_empty() { mark.to_owned() } else { format!("{name}-{mark}") }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn ids_become_kebab_names_that_fit_and_differ() {
        let mut taken = BTreeSet::new();
        let mut named = |vendor: &str, id: Option<&str>, key: &str| {
            name(vendor, id, key, &mut taken).map(|tool| tool.to_string())
        };
        for (vendor, id, key, expected) in [
            ("github", Some("issues/list-for-repo"), "GET /a", "github__issues-list-for-repo"),
            ("stripe", Some("GetV1HTTPHooks"), "GET /b", "stripe__get-v1-http-hooks"),
            ("shop", None, "GET /orders/{id}", "shop__get-orders-id"),
            (
                "github",
                Some("actions/list-selected-repositories-for-the-organization-of"),
                "GET /c",
                "github__actions-list-selected-repositories-0f0c",
            ),
        ] {
            let tool = named(vendor, id, key).unwrap();
            assert!(tool.len() <= 48, "{tool}");
            match expected.rsplit_once('-') {
                Some((start, "0f0c")) => assert!(tool.starts_with(start), "{tool}"),
                _ => assert_eq!(tool, expected),
            }
        }
        // The same id again gets a mark of its own operation; no room is a reason.
        let again = named("shop", None, "GET /orders/{id}").unwrap();
        assert!(again.starts_with("shop__get-orders-id-"), "{again}");
        let again = named("shop", Some("get orders id"), "GET /other").unwrap();
        assert!(again.starts_with("shop__get-orders-id-"), "{again}");
        assert!(named("x", Some("日本"), "GET /e").unwrap().len() < 16);
        assert!(named(&"v".repeat(46), Some("a"), "GET /f").is_err());
    }
}
