//! JSON Schemas as tools state them: the rules a schema must keep, its form for
//! a tool list (local references put in place), and validators that cannot
//! backtrack. Pure.

use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value};

/// Most nodes after references are put in place; without it a few nested
/// references double into gigabytes.
const NODES_MAX: usize = 20_000;
/// Deepest schema after references are put in place.
const DEPTH_MAX: usize = 64;
/// Largest compiled regular expression, in bytes.
const PATTERN_MAX: usize = 1024 * 1024;
/// Words at the root that clients refuse in a tool's input schema.
const ROOT_REFUSED: [&str; 7] =
    ["anyOf", "oneOf", "allOf", "not", "$ref", "$dynamicRef", "$recursiveRef"];
/// Words that only annotate, so that they may stand beside a reference.
const ANNOTATIONS: [&str; 7] =
    ["title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"];
/// Words for which local references have no plain form.
const IDENTIFIERS: [&str; 6] =
    ["$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$recursiveAnchor"];

/// Why a schema is refused: a code and one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SchemaFault {
    /// Stable snake_case code.
    pub(crate) code: &'static str,
    /// What is wrong and where.
    pub(crate) message: String,
}

/// The form of an input schema that every client takes: root `type: object`
/// without a choice at the root, every local `$ref` put in place, definitions
/// and `$schema` gone. Validate input against this form.
pub(crate) fn normalise_schema(schema: &Value) -> Result<Value, SchemaFault> {
    let Value::Object(root) = schema else {
        return Err(fault("schema_not_object", "the schema must be an object"));
    };
    if let Some(word) = ROOT_REFUSED.iter().find(|word| root.contains_key(**word)) {
        return Err(fault(
            "schema_root_refused",
            format!("clients refuse `{word}` at the root; put it under `properties`"),
        ));
    }
    if root.get("type") != Some(&Value::String("object".to_owned())) {
        return Err(fault("schema_root_type", "the root must be `type: \"object\"`"));
    }
    inlined(schema)
}

/// [`normalise_schema`] without the rules for the root: an output schema.
pub(crate) fn inlined(schema: &Value) -> Result<Value, SchemaFault> {
    let mut walk = Inline { root: schema, nodes: 0, open: Vec::new() };
    walk.schema(schema, 0)
}

/// A validator for a schema. Patterns run in time linear in the input; one that
/// needs more (a look-ahead, a back-reference) is refused.
pub(crate) fn schema_validator(schema: &Value) -> Result<Validator, SchemaFault> {
    if let Err(wrong) = jsonschema::draft202012::meta::validate(schema) {
        return Err(fault(
            "schema_invalid",
            format!("not a JSON Schema at `{}`: {wrong}", wrong.instance_path()),
        ));
    }
    jsonschema::options()
        .offline()
        .with_draft(jsonschema::Draft::Draft202012)
        .with_pattern_options(
            PatternOptions::regex().size_limit(PATTERN_MAX).dfa_size_limit(PATTERN_MAX),
        )
        .build(schema)
        .map_err(|wrong| {
            fault(
                "schema_invalid",
                format!(
                    "the schema cannot be used at `{}`: {wrong}; a pattern may hold no \
                     look-around and no back-reference",
                    wrong.instance_path()
                ),
            )
        })
}

fn fault(code: &'static str, message: impl Into<String>) -> SchemaFault {
    SchemaFault { code, message: message.into() }
}

struct Inline<'s> {
    root: &'s Value,
    nodes: usize,
    /// References being followed, innermost last.
    open: Vec<String>,
}

impl Inline<'_> {
    fn count(&mut self, depth: usize) -> Result<(), SchemaFault> {
        self.nodes += 1;
        if self.nodes > NODES_MAX || depth > DEPTH_MAX {
            return Err(fault(
                "schema_too_large",
                format!(
                    "with its references in place the schema is larger than {NODES_MAX} nodes or \
                     deeper than {DEPTH_MAX} levels"
                ),
            ));
        }
        Ok(())
    }

    fn schema(&mut self, schema: &Value, depth: usize) -> Result<Value, SchemaFault> {
        self.count(depth)?;
        let Value::Object(words) = schema else {
            return Ok(schema.clone());
        };
        if let Some(word) = IDENTIFIERS.iter().find(|word| words.contains_key(**word)) {
            return Err(fault(
                "schema_ref_refused",
                format!("`{word}` is not supported; refer by `$ref: \"#/$defs/…\"`"),
            ));
        }
        let mut plain = Map::new();
        for (word, value) in words {
            match word.as_str() {
                // Only for whoever reads the source, or used up by the inlining.
                "$ref" | "$defs" | "definitions" | "$schema" | "$comment" | "$vocabulary" => {}
                _ => {
                    plain.insert(word.clone(), self.word(word, value, depth)?);
                }
            }
        }
        match words.get("$ref") {
            None => Ok(Value::Object(plain)),
            Some(Value::String(reference)) => self.reference(reference, plain, depth),
            Some(_) => Err(fault("schema_ref_refused", "`$ref` must be a string")),
        }
    }

    /// The value of one keyword: a schema, a list or map of schemas, or data.
    fn word(&mut self, word: &str, value: &Value, depth: usize) -> Result<Value, SchemaFault> {
        match (word, value) {
            (
                "properties" | "patternProperties" | "dependentSchemas" | "dependencies",
                Value::Object(named),
            ) => named
                .iter()
                .map(|(name, schema)| Ok((name.clone(), self.schema(schema, depth + 1)?)))
                .collect::<Result<Map<_, _>, _>>()
                .map(Value::Object),
            ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Value::Array(schemas)) => {
                schemas
                    .iter()
                    .map(|schema| self.schema(schema, depth + 1))
                    .collect::<Result<Vec<_>, _>>()
                    .map(Value::Array)
            }
            (
                "not"
                | "if"
                | "then"
                | "else"
                | "items"
                | "additionalItems"
                | "contains"
                | "additionalProperties"
                | "propertyNames"
                | "unevaluatedItems"
                | "unevaluatedProperties"
                | "contentSchema",
                schema,
            ) => self.schema(schema, depth + 1),
            _ => Ok(value.clone()),
        }
    }

    fn reference(
        &mut self,
        reference: &str,
        beside: Map<String, Value>,
        depth: usize,
    ) -> Result<Value, SchemaFault> {
        let Some(pointer) = reference.strip_prefix('#') else {
            return Err(fault(
                "schema_ref_refused",
                format!("`$ref: \"{reference}\"` leaves the schema; only `#/…` is allowed"),
            ));
        };
        if self.open.iter().any(|open| open == reference) || pointer.is_empty() {
            return Err(fault(
                "schema_ref_cyclic",
                format!("`$ref: \"{reference}\"` refers to itself; write the levels out"),
            ));
        }
        let target = self.root.pointer(&decoded_pointer(pointer)).ok_or_else(|| {
            fault("schema_ref_unknown", format!("`$ref: \"{reference}\"` refers to nothing"))
        })?;
        self.open.push(reference.to_owned());
        let target = self.schema(target, depth + 1);
        self.open.pop();
        Ok(match (target?, beside) {
            (target, beside) if beside.is_empty() => target,
            (Value::Object(mut target), beside)
                if beside.keys().all(|word| ANNOTATIONS.contains(&word.as_str())) =>
            {
                target.extend(beside);
                Value::Object(target)
            }
            (target, mut beside) => {
                // Both hold at once; an `allOf` already there keeps its say.
                let mut all = vec![target];
                if let Some(Value::Array(others)) = beside.remove("allOf") {
                    all.extend(others);
                }
                beside.insert("allOf".to_owned(), Value::Array(all));
                Value::Object(beside)
            }
        })
    }
}

/// A pointer inside a fragment may be percent-encoded.
pub(crate) fn decoded_pointer(pointer: &str) -> String {
    let mut bytes = Vec::with_capacity(pointer.len());
    let mut rest = pointer.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = (*first == b'%')
            .then(|| after.get(..2).and_then(|pair| std::str::from_utf8(pair).ok()))
            .flatten()
            .and_then(|pair| u8::from_str_radix(pair, 16).ok());
        match hex {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
