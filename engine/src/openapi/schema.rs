//! A document's schema as a tool's input shows it: references put in place to a
//! bounded depth, and only the words that help to fill it in. What is left out
//! only widens it: the vendor has the last word on what it takes.

use super::operation::target;
use super::words;
use serde_json::{Map, Value, json};

/// Values of an enumeration that are shown; a longer one is left to the vendor.
const ENUM_MAX: usize = 40;
/// Variants of a choice that are shown.
const VARIANTS_MAX: usize = 6;
/// Schemas looked at for one operation: a wide document costs a bounded time.
const NODES_MAX: usize = 20_000;
/// References inside references; more is no schema a person wrote.
const OPEN_MAX: usize = 64;
/// Formats that say what to write.
const FORMATS: [&str; 4] = ["date-time", "date", "uuid", "email"];

/// How much of a schema is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Detail {
    /// Levels of objects and lists below an input's property.
    pub(super) depth: usize,
    /// Characters of a property's description; 0 for none.
    pub(super) describe: usize,
}

/// Makes small schemas of the document's.
pub(super) struct Small<'d> {
    root: &'d Value,
    detail: Detail,
    nodes: usize,
    /// References being followed, so that a circle ends.
    open: Vec<String>,
}

/// An object schema with its parts in one place.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) properties: Map<String, Value>,
    pub(super) required: Vec<String>,
    /// False when the document closes it.
    pub(super) closed: bool,
}

impl<'d> Small<'d> {
    pub(super) fn new(root: &'d Value, detail: Detail) -> Self {
        Self { root, detail, nodes: 0, open: Vec::new() }
    }

    /// The small form of a schema.
    pub(super) fn schema(&mut self, schema: &Value) -> Result<Value, String> {
        self.at(schema, self.detail.depth)
    }

    /// The properties of a schema that is plainly an object; `None` for others.
    pub(super) fn object(&mut self, schema: &Value) -> Result<Option<Parts>, String> {
        let (schema, opened) = self.followed(schema)?;
        let parts = self.parts(&schema);
        self.open.truncate(self.open.len() - opened);
        parts
    }

    fn parts(&mut self, schema: &Map<String, Value>) -> Result<Option<Parts>, String> {
        let mut parts = Parts::default();
        if !is_object(schema) && !schema.contains_key("allOf") {
            return Ok(None);
        }
        for member in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            let Some(more) = self.object(member)? else { return Ok(None) };
            parts.properties.extend(more.properties);
            parts.required.extend(more.required);
        }
        if let Some(Value::Object(own)) = schema.get("properties") {
            parts.properties.extend(own.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        let required = schema.get("required").and_then(Value::as_array);
        let required = required.into_iter().flatten().filter_map(Value::as_str);
        parts.required.extend(required.map(str::to_owned));
        parts.closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        Ok(Some(parts))
    }

    /// A schema with its references followed; how many were opened for it.
    fn followed(&mut self, schema: &Value) -> Result<(Map<String, Value>, usize), String> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err("its schema is too large to be read".into());
        }
        let mut opened = 0;
        let mut current = schema;
        let mut beside = Map::new();
        loop {
            let Value::Object(words) = current else {
                return Ok((Map::new(), opened));
            };
            let Some(reference) = words.get("$ref").and_then(Value::as_str) else {
                let mut words = words.clone();
                words.extend(beside);
                return Ok((words, opened));
            };
            if let Some(Value::String(text)) = words.get("description") {
                beside.entry("description").or_insert_with(|| text.clone().into());
            }
            if self.open.iter().any(|open| open == reference) {
                // A circle: what it is made of is not shown again.
                return Ok((beside, opened));
            }
            if self.open.len() >= OPEN_MAX {
                return Err("its references nest too deep to be read".into());
            }
            current = target(self.root, reference)?;
            self.open.push(reference.to_owned());
            opened += 1;
        }
    }

    fn at(&mut self, schema: &Value, depth: usize) -> Result<Value, String> {
        let (words, opened) = self.followed(schema)?;
        let small = self.small(&words, depth);
        self.open.truncate(self.open.len() - opened);
        small
    }

    fn small(&mut self, words: &Map<String, Value>, depth: usize) -> Result<Value, String> {
        let mut out = Map::new();
        let nullable = words.get("nullable") == Some(&Value::Bool(true));
        let choice = words.get("oneOf").or_else(|| words.get("anyOf")).and_then(Value::as_array);
        if words.contains_key("allOf") || is_object(words) {
            self.small_object(words, depth, &mut out)?;
        } else if let Some(variants) = choice {
            self.choice(variants, depth, &mut out)?;
        } else {
            self.plain(words, depth, &mut out)?;
        }
        if nullable {
            allow_null(&mut out);
        }
        if self.detail.describe > 0
            && let Some(text) = words.get("description").and_then(Value::as_str)
        {
            let text = words::first_sentence(text, self.detail.describe);
            if !text.is_empty() {
                out.insert("description".into(), text.into());
            }
        }
        Ok(Value::Object(out))
    }

    fn small_object(
        &mut self,
        words: &Map<String, Value>,
        depth: usize,
        out: &mut Map<String, Value>,
    ) -> Result<(), String> {
        let Some(parts) = self.parts(words)? else {
            // Of members that are no objects, the last that says a type has it.
            let members = words.get("allOf").and_then(Value::as_array);
            for member in members.into_iter().flatten() {
                if let Value::Object(member) = self.at(member, depth)? {
                    out.extend(member);
                }
            }
            return Ok(());
        };
        out.insert("type".into(), "object".into());
        if depth == 0 {
            return Ok(());
        }
        let mut properties = Map::new();
        for (name, value) in &parts.properties {
            if value["readOnly"] == true || name == "__proto__" {
                continue;
            }
            properties.insert(name.clone(), self.at(value, depth - 1)?);
        }
        let required: Vec<&String> =
            parts.required.iter().filter(|name| properties.contains_key(*name)).collect();
        if !required.is_empty() {
            out.insert("required".into(), json!(required));
        }
        if !properties.is_empty() {
            out.insert("properties".into(), Value::Object(properties));
            if parts.closed {
                out.insert("additionalProperties".into(), false.into());
            }
        } else if let Some(rest @ Value::Object(_)) = words.get("additionalProperties") {
            let rest = self.at(rest, depth - 1)?;
            if rest.as_object().is_some_and(|rest| !rest.is_empty()) {
                out.insert("additionalProperties".into(), rest);
            }
        }
        Ok(())
    }

    fn choice(
        &mut self,
        variants: &[Value],
        depth: usize,
        out: &mut Map<String, Value>,
    ) -> Result<(), String> {
        let mut shown: Vec<Value> = Vec::new();
        if variants.len() > VARIANTS_MAX {
            return Ok(());
        }
        for variant in variants {
            let variant = self.at(variant, depth)?;
            if variant.as_object().is_none_or(Map::is_empty) {
                // One that takes anything makes the choice no choice.
                return Ok(());
            }
            if !shown.contains(&variant) {
                shown.push(variant);
            }
        }
        if let Some(types) = shown.iter().map(only_type).collect::<Option<Vec<_>>>() {
            let mut plain: Vec<Value> = Vec::new();
            for one in types.into_iter().flatten() {
                if !plain.contains(&one) {
                    plain.push(one);
                }
            }
            match <[Value; 1]>::try_from(plain) {
                Ok([one]) => drop(out.insert("type".into(), one)),
                Err(many) if !many.is_empty() => drop(out.insert("type".into(), many.into())),
                Err(_) => {}
            }
            return Ok(());
        }
        match <[Value; 1]>::try_from(shown) {
            Ok([Value::Object(only)]) => out.extend(only),
            Ok(_) => {}
            Err(many) => drop(out.insert("anyOf".into(), many.into())),
        }
        Ok(())
    }

    fn plain(
        &mut self,
        words: &Map<String, Value>,
        depth: usize,
        out: &mut Map<String, Value>,
    ) -> Result<(), String> {
        if let Some(kind) = words.get("type").filter(|kind| known_type(kind)) {
            out.insert("type".into(), kind.clone());
        }
        let scalar = |value: &Value| !matches!(value, Value::Array(_) | Value::Object(_));
        if let Some(value) = words.get("const").filter(|value| scalar(value) && exact(value)) {
            out.insert("const".into(), value.clone());
        }
        if let Some(Value::Array(values)) = words.get("enum")
            && (1..=ENUM_MAX).contains(&values.len())
            && values.iter().all(|value| scalar(value) && exact(value))
        {
            // The values say their type themselves.
            out.remove("type");
            let mut shown: Vec<Value> = Vec::new();
            for value in values {
                if !shown.contains(value) {
                    shown.push(value.clone());
                }
            }
            out.insert("enum".into(), shown.into());
        }
        if let Some(format) = words.get("format").and_then(Value::as_str)
            && FORMATS.contains(&format)
        {
            out.insert("format".into(), format.into());
        }
        let list = words.get("type").is_some_and(|kind| names_type(kind, "array"));
        if let Some(items) = words.get("items").filter(|_| list && depth > 0) {
            let items = self.at(items, depth - 1)?;
            if items.as_object().is_some_and(|items| !items.is_empty()) {
                out.insert("items".into(), items);
            }
        }
        Ok(())
    }
}

/// Whether a type, or one of several, is this.
pub(super) fn names_type(kind: &Value, name: &str) -> bool {
    match kind {
        Value::Array(kinds) => kinds.iter().any(|kind| kind == name),
        kind => kind == name,
    }
}

fn is_object(words: &Map<String, Value>) -> bool {
    words.get("type").is_some_and(|kind| names_type(kind, "object"))
        || words.contains_key("properties")
}

fn known_type(kind: &Value) -> bool {
    const KNOWN: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];
    let known = |kind: &Value| kind.as_str().is_some_and(|kind| KNOWN.contains(&kind));
    match kind {
        Value::Array(kinds) => {
            !kinds.is_empty()
                && kinds.iter().all(known)
                && kinds.iter().enumerate().all(|(at, kind)| !kinds[..at].contains(kind))
        }
        kind => known(kind),
    }
}

/// The types of a schema that says nothing else.
fn only_type(schema: &Value) -> Option<Vec<Value>> {
    let words = schema.as_object()?;
    let kind = words.get("type")?;
    if words.keys().any(|word| word != "type" && word != "description") {
        return None;
    }
    match kind {
        Value::Array(kinds) => Some(kinds.clone()),
        kind if kind != "object" => Some(vec![kind.clone()]),
        _ => None,
    }
}

/// A number that JavaScript keeps as it is.
fn exact(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_i64().is_some_and(|n| n.unsigned_abs() < 1 << 53),
        _ => true,
    }
}

fn allow_null(out: &mut Map<String, Value>) {
    if let Some(kind) = out.get_mut("type")
        && !names_type(kind, "null")
    {
        *kind = match kind.take() {
            Value::Array(mut kinds) => {
                kinds.push("null".into());
                kinds.into()
            }
            kind => json!([kind, "null"]),
        };
    }
    for word in ["enum", "anyOf"] {
        if let Some(Value::Array(values)) = out.get_mut(word) {
            let null = if word == "enum" { Value::Null } else { json!({ "type": "null" }) };
            if !values.contains(&null) {
                values.push(null);
            }
        }
    }
}
