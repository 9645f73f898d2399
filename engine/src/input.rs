//! Inputs against the schema of a version: bounded before they are looked at,
//! then asked of a compiled validator that is kept by the version's content.
//! What a schema may be is `check/schema.rs`'s; a long input is checked off the
//! async threads.

use crate::EngineError;
use crate::check::schema_validator;
use cambium_proxy::ContentHash;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Longest input as JSON, bytes.
const INPUT_BYTES: usize = 1024 * 1024;
/// Values in an input: with the nodes of a schema it bounds the work of a check.
const INPUT_VALUES: usize = 20_000;
/// Deepest nesting of an input.
const INPUT_DEPTH: usize = 64;
/// Failing paths that are named; more would not be read.
const FAILURES_SHOWN: usize = 20;
/// Inputs longer than this are checked off the async threads.
const CHECKED_INLINE_BYTES: usize = 16 * 1024;
/// Compiled schemas kept.
const COMPILED_KEPT: usize = 512;

/// Compiled schemas by the version's content.
#[derive(Default)]
pub(crate) struct Validators {
    compiled: Mutex<HashMap<ContentHash, Arc<jsonschema::Validator>>>,
}

impl Validators {
    /// Checks an input; answers its JSON text. `schema` is in its normal form.
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
        let validator = schema_validator(schema)
            .map(Arc::new)
            .map_err(|fault| EngineError::InputInvalid(vec![fault.message]))?;
        if kept.len() >= COMPILED_KEPT {
            kept.clear();
        }
        kept.insert(version, validator.clone());
        Ok(validator)
    }
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

fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[tokio::test]
    async fn b029_each_failing_path_and_rule_is_named() {
        let schema = json!({
            "type": "object",
            "properties": { "n": { "type": "integer", "maximum": 3 }, "s": { "type": "string" } },
            "additionalProperties": false,
        });
        let schemas = Validators::default();
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
