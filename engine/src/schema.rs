//! Input schemas: brought into the one shape every client takes, compiled, and
//! asked about an input. A schema comes from a module and is hostile: it is
//! bounded before it is compiled, references are written out under a budget,
//! recursion and remote references are refused, and patterns run on an engine
//! that takes linear time. An input is bounded before it is looked at.

use crate::EngineError;
use cambium_proxy::ContentHash;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Longest schema as JSON, bytes: a tool's schema costs every list its tokens.
const SCHEMA_BYTES: usize = 64 * 1024;
/// Values in a schema once its references are written out.
const SCHEMA_VALUES: usize = 4_000;
/// Deepest nesting of a schema.
const SCHEMA_DEPTH: usize = 32;
/// Longest input as JSON, bytes.
const INPUT_BYTES: usize = 1024 * 1024;
/// Values in an input: with [`SCHEMA_VALUES`] it bounds the work of a check.
const INPUT_VALUES: usize = 20_000;
/// Deepest nesting of an input.
const INPUT_DEPTH: usize = 64;
/// Failing paths that are named; more would not be read.
const FAILURES_SHOWN: usize = 20;
/// Inputs longer than this are checked off the async threads.
const CHECKED_INLINE_BYTES: usize = 16 * 1024;
/// Compiled size of one pattern, bytes.
const PATTERN_BYTES: usize = 1024 * 1024;
/// Compiled schemas kept.
const COMPILED_KEPT: usize = 512;

/// Compiled schemas by the version's content.
#[derive(Default)]
pub(crate) struct Schemas {
    compiled: Mutex<HashMap<ContentHash, Arc<jsonschema::Validator>>>,
}

impl Schemas {
    /// Checks an input; answers its JSON text. `schema` is the plain one of
    /// [`plain`].
    pub(crate) async fn check(
        &self,
        version: ContentHash,
        schema: &Value,
        input: &Value,
    ) -> Result<Arc<str>, EngineError> {
        let text = bounded(input)?;
        let validator = self.compiled(version, schema)?;
        if text.len() <= CHECKED_INLINE_BYTES {
            failures(&validator, input)?;
        } else {
            let input = input.clone();
            tokio::task::spawn_blocking(move || failures(&validator, &input))
                .await
                .map_err(|_| EngineError::InputInvalid(vec!["it could not be checked".into()]))??;
        }
        Ok(text.into())
    }

    fn compiled(
        &self,
        version: ContentHash,
        schema: &Value,
    ) -> Result<Arc<jsonschema::Validator>, EngineError> {
        let mut kept = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(validator) = kept.get(&version) {
            return Ok(validator.clone());
        }
        let validator = compile(schema)
            .map(Arc::new)
            .map_err(|reason| EngineError::InputInvalid(vec![format!("schema: {reason}")]))?;
        if kept.len() >= COMPILED_KEPT {
            kept.clear();
        }
        kept.insert(version, validator.clone());
        Ok(validator)
    }
}

/// A schema as it is listed and compiled: an object at the root, references
/// written out, no reference left. The error is the rule it broke.
pub(crate) fn plain(schema: &Value) -> Result<Value, String> {
    if schema.to_string().len() > SCHEMA_BYTES {
        return Err(format!("inputSchema is longer than {SCHEMA_BYTES} bytes"));
    }
    let mut budget = SCHEMA_VALUES;
    let mut open = Vec::new();
    let written = write_out(schema, schema, &mut open, 0, &mut budget)?;
    let Value::Object(mut root) = written else {
        return Err("inputSchema must be an object".into());
    };
    if root.get("type") != Some(&json!("object")) {
        return Err("inputSchema must say `type: \"object\"` at its root".into());
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        if root.contains_key(keyword) {
            return Err(format!(
                "inputSchema must not use `{keyword}` at its root: clients refuse it; use it inside a property"
            ));
        }
    }
    for keyword in ["$defs", "definitions", "$id", "$anchor"] {
        root.remove(keyword);
    }
    let plain = Value::Object(root);
    compile(&plain)?;
    Ok(plain)
}

fn compile(schema: &Value) -> Result<jsonschema::Validator, String> {
    jsonschema::options()
        .offline()
        .with_pattern_options(jsonschema::PatternOptions::regex().size_limit(PATTERN_BYTES))
        .build(schema)
        .map_err(|error| shortened(&format!("{} at `{}`", error.masked(), error.instance_path())))
}

fn failures(validator: &jsonschema::Validator, input: &Value) -> Result<(), EngineError> {
    let mut errors = validator.iter_errors(input);
    let shown: Vec<String> = errors
        .by_ref()
        .take(FAILURES_SHOWN)
        .map(|error| {
            let path = error.instance_path().as_str();
            let path = if path.is_empty() { "(root)" } else { path };
            shortened(&format!("{path}: {}", error.masked()))
        })
        .collect();
    if shown.is_empty() { Ok(()) } else { Err(EngineError::InputInvalid(shown)) }
}

fn bounded(input: &Value) -> Result<String, EngineError> {
    let refuse = |rule: String| Err(EngineError::InputInvalid(vec![rule]));
    if !input.is_object() {
        return refuse("(root): the input must be an object".into());
    }
    let mut left = INPUT_VALUES;
    match measure(input, 0, INPUT_DEPTH, &mut left) {
        Size::Fits => {}
        Size::TooDeep => return refuse(format!("(root): nested deeper than {INPUT_DEPTH}")),
        Size::TooMany => return refuse(format!("(root): more than {INPUT_VALUES} values")),
    }
    let text = input.to_string();
    if text.len() > INPUT_BYTES {
        return refuse(format!("(root): longer than {INPUT_BYTES} bytes"));
    }
    Ok(text)
}

#[derive(PartialEq, Eq)]
enum Size {
    Fits,
    TooDeep,
    TooMany,
}

fn measure(value: &Value, depth: usize, deepest: usize, left: &mut usize) -> Size {
    if depth > deepest {
        return Size::TooDeep;
    }
    if *left == 0 {
        return Size::TooMany;
    }
    *left -= 1;
    let mut inner = |item| measure(item, depth + 1, deepest, left);
    let worst = match value {
        Value::Array(items) => items.iter().map(&mut inner).find(|size| *size != Size::Fits),
        Value::Object(map) => map.values().map(&mut inner).find(|size| *size != Size::Fits),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    };
    worst.unwrap_or(Size::Fits)
}

/// Copies a schema with every local `$ref` written out. `open` holds the
/// references being written, so that a recursion is seen; `budget` bounds what
/// a few references to references could grow to.
fn write_out(
    value: &Value,
    root: &Value,
    open: &mut Vec<String>,
    depth: usize,
    budget: &mut usize,
) -> Result<Value, String> {
    if depth > SCHEMA_DEPTH {
        return Err(format!("inputSchema is nested deeper than {SCHEMA_DEPTH}"));
    }
    *budget = budget
        .checked_sub(1)
        .ok_or_else(|| format!("inputSchema holds more than {SCHEMA_VALUES} values"))?;
    match value {
        Value::Array(items) => items
            .iter()
            .map(|item| write_out(item, root, open, depth + 1, budget))
            .collect::<Result<_, _>>()
            .map(Value::Array),
        Value::Object(map) => {
            for keyword in ["$dynamicRef", "$recursiveRef"] {
                if map.get(keyword).is_some_and(Value::is_string) {
                    return Err(format!("inputSchema must not use `{keyword}`"));
                }
            }
            match map.get("$ref") {
                Some(Value::String(reference)) => follow(map, reference, root, open, depth, budget),
                _ => entries(map, root, open, depth, budget).map(Value::Object),
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(value.clone()),
    }
}

fn entries(
    map: &Map<String, Value>,
    root: &Value,
    open: &mut Vec<String>,
    depth: usize,
    budget: &mut usize,
) -> Result<Map<String, Value>, String> {
    map.iter()
        // definitions are written out where they are used
        .filter(|(key, item)| {
            !(matches!(key.as_str(), "$defs" | "definitions") && item.is_object() && depth == 0)
        })
        .map(|(key, item)| Ok((key.clone(), write_out(item, root, open, depth + 1, budget)?)))
        .collect()
}

fn follow(
    map: &Map<String, Value>,
    reference: &str,
    root: &Value,
    open: &mut Vec<String>,
    depth: usize,
    budget: &mut usize,
) -> Result<Value, String> {
    let quoted = shortened(reference);
    let pointer = reference
        .strip_prefix('#')
        .filter(|pointer| pointer.starts_with('/'))
        .ok_or_else(|| format!("inputSchema refers to `{quoted}`; only `#/…` is followed"))?;
    if open.iter().any(|seen| seen == pointer) {
        return Err(format!(
            "inputSchema refers to itself at `{quoted}`; write it out to the depth you need"
        ));
    }
    let target = root
        .pointer(pointer)
        .ok_or_else(|| format!("inputSchema refers to `{quoted}`, which is not there"))?;
    open.push(pointer.to_owned());
    let written = write_out(target, root, open, depth + 1, budget);
    open.pop();
    let written = written?;
    let mut beside = map.clone();
    beside.remove("$ref");
    let mut beside = entries(&beside, root, open, depth, budget)?;
    if beside.is_empty() {
        return Ok(written);
    }
    match (written, beside.contains_key("allOf")) {
        // annotations beside a reference are the common case
        (Value::Object(mut target), _)
            if beside
                .keys()
                .all(|key| matches!(key.as_str(), "description" | "title" | "default")) =>
        {
            target.append(&mut beside);
            Ok(Value::Object(target))
        }
        (written, false) => {
            beside.insert("allOf".into(), Value::Array(vec![written]));
            Ok(Value::Object(beside))
        }
        (written, true) => Ok(json!({ "allOf": [written, Value::Object(beside)] })),
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn object(properties: Value) -> Value {
        json!({ "type": "object", "properties": properties, "additionalProperties": false })
    }

    #[test]
    fn local_references_are_written_out() {
        let mut schema = object(json!({ "at": { "$ref": "#/$defs/day", "description": "when" } }));
        schema["$defs"] = json!({ "day": { "type": "string", "pattern": "^d" } });
        assert_eq!(
            plain(&schema).unwrap(),
            object(json!({ "at": { "type": "string", "pattern": "^d", "description": "when" } }))
        );
    }

    #[test]
    fn what_cannot_be_bounded_is_refused_with_the_rule() {
        let mut recursive = object(json!({ "a": { "$ref": "#/$defs/a" } }));
        recursive["$defs"] = json!({ "a": { "items": { "$ref": "#/$defs/a" } } });
        let mut doubling = object(json!({ "a": { "$ref": "#/$defs/d0" } }));
        for level in 0..14 {
            let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
            doubling["$defs"][format!("d{level}")] = json!({ "allOf": [next.clone(), next] });
        }
        doubling["$defs"]["d14"] = json!({ "type": "string" });
        let cases = [
            (recursive, "itself"),
            (doubling, "more than"),
            (object(json!({ "a": { "$ref": "https://example.com/s" } })), "only `#/"),
            (object(json!({ "a": { "$ref": "#/$defs/none" } })), "not there"),
            (object(json!({ "a": { "pattern": "(" } })), "("),
            (object(json!({ "a": { "type": "strnig" } })), "type"),
            (json!({ "type": "array" }), "type: \"object\""),
            (json!({ "type": "object", "oneOf": [] }), "oneOf"),
            (json!([]), "must be an object"),
        ];
        for (schema, said) in cases {
            let error = plain(&schema).unwrap_err();
            assert!(error.contains(said), "{error} should say {said}");
        }
    }

    #[tokio::test]
    async fn b029_each_failing_path_and_rule_is_named() {
        let schema =
            object(json!({ "n": { "type": "integer", "maximum": 3 }, "s": { "type": "string" } }));
        let schemas = Schemas::default();
        let check = |input| {
            let (schemas, schema) = (&schemas, &schema);
            async move { schemas.check(ContentHash([1; 32]), schema, &input).await }
        };
        assert_eq!(&*check(json!({ "n": 1 })).await.unwrap(), r#"{"n":1}"#);
        let EngineError::InputInvalid(paths) =
            check(json!({ "n": 4, "s": 1, "x": 0 })).await.unwrap_err()
        else {
            panic!("another error")
        };
        assert_eq!(paths.len(), 3, "{paths:?}");
        assert!(paths.iter().any(|path| path.starts_with("/n: ")), "{paths:?}");
        assert!(paths.iter().any(|path| path.starts_with("/s: ")), "{paths:?}");
        assert!(paths.iter().any(|path| path.contains("'x'")), "{paths:?}");
        for wrong in [json!([]), json!(1), json!({ "s": "x".repeat(INPUT_BYTES) })] {
            assert!(check(wrong).await.is_err());
        }
        let mut deep = json!(1);
        for _ in 0..INPUT_DEPTH + 1 {
            deep = json!([deep]);
        }
        assert!(check(json!({ "s": deep })).await.is_err());
        assert!(check(json!({ "s": vec![0; INPUT_VALUES + 1] })).await.is_err());
    }
}
