//! Canonical bytes of what is hashed or signed: JSON with sorted keys, and
//! fields with their length in front, so that no two values share an encoding.
//! The same value must give the same bytes after a round through the database,
//! whichever way a build's JSON maps are ordered.

use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// JSON with object keys in order and nothing between tokens.
pub(crate) fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

/// The value as it will be read back, or `None` when its numbers do not
/// survive being written and read.
pub(crate) fn settled(value: &Value) -> Option<Value> {
    let back: Value = serde_json::from_str(&value.to_string()).ok()?;
    (back == *value && canonical(&back) == canonical(value)).then_some(back)
}

/// SHA-256 over fields with their length in front.
pub(crate) fn digest(fields: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for field in fields {
        hash.update((field.len() as u64).to_be_bytes());
        hash.update(field);
    }
    hash.finalize().into()
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let sorted: BTreeMap<&String, &Value> = map.iter().collect();
            out.push('{');
            for (index, (key, item)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::String(key.clone()).to_string());
                out.push(':');
                write(item, out);
            }
            out.push('}');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&value.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_are_sorted_and_fields_do_not_run_together() {
        assert_eq!(canonical(&json!({"b": [1, null], "a": "x\""})), r#"{"a":"x\"","b":[1,null]}"#);
        assert_ne!(digest(&[b"ab", b"c"]), digest(&[b"a", b"bc"]));
    }
}
