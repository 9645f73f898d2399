//! An input that fits a schema, for dry runs: what the document gives as an
//! example where that fits, and otherwise a value of the right type.

use super::schema::names_type;
use crate::check::schema_validator;
use serde_json::{Map, Value, json};

/// Largest example of a document that is taken over, bytes.
const GIVEN_BYTES: usize = 2_000;
/// Deepest value that is made up.
const DEPTH_MAX: usize = 6;

/// A value for one property.
pub(super) fn value(schema: &Value, given: Option<&Value>) -> Value {
    let fits = |value: &Value| {
        value.to_string().len() <= GIVEN_BYTES
            && schema_validator(schema).is_ok_and(|validator| validator.is_valid(value))
    };
    match given.filter(|given| !given.is_null() && fits(given)) {
        Some(given) => given.clone(),
        None => made(schema, 0),
    }
}

fn made(schema: &Value, depth: usize) -> Value {
    let first = |word: &str| schema[word].as_array().and_then(|list| list.first());
    if let Some(value) = schema.get("const").or_else(|| first("enum")) {
        return value.clone();
    }
    if let Some(variant) = first("anyOf").filter(|_| depth < DEPTH_MAX) {
        return made(variant, depth + 1);
    }
    let Some(kind) = schema.get("type") else { return "example".into() };
    let is = |name| names_type(kind, name);
    if is("string") {
        return match schema["format"].as_str() {
            Some("date-time") => "2024-01-01T00:00:00Z".into(),
            Some("date") => "2024-01-01".into(),
            Some("uuid") => "00000000-0000-4000-8000-000000000000".into(),
            Some("email") => "someone@example.com".into(),
            _ => "example".into(),
        };
    }
    if is("integer") || is("number") {
        return 1.into();
    }
    if is("boolean") {
        return false.into();
    }
    if is("array") {
        return match schema.get("items").filter(|_| depth < DEPTH_MAX) {
            Some(items) => json!([made(items, depth + 1)]),
            None => json!([]),
        };
    }
    if !is("object") {
        return Value::Null;
    }
    let mut map = Map::new();
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if depth < DEPTH_MAX {
            map.insert(name.to_owned(), made(&schema["properties"][name], depth + 1));
        }
    }
    Value::Object(map)
}
