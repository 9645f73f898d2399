//! The TypeScript types around a tool: what it sees of the sandbox, as written,
//! and its `Input`, generated from the schema. For editors and type checkers;
//! nothing here decides what may be published.

use serde_json::{Map, Value};
use std::fmt::Write;

/// Declarations of `Context` and of the globals a module finds.
pub const CONTEXT_TYPES: &str = include_str!("../types/cambium.d.ts");

/// Deeper schemas are typed `unknown` from there on.
const DEPTH_MAX: usize = 24;
/// More text than this helps no editor; the rest is `unknown`, bytes.
const TEXT_MAX: usize = 256 * 1024;
/// Longest description carried into a comment, characters.
const COMMENT_MAX: usize = 400;

/// The declaration of `Input` for a tool's input schema. Never fails: what has
/// no TypeScript form is `unknown`.
pub fn input_types(schema: Option<&Value>) -> String {
    let mut writer = Writer { root: schema.unwrap_or(&Value::Null), out: String::new(), open: 0 };
    writer.out.push_str("type Input = ");
    match schema {
        // A tool without a schema takes an empty object.
        None => writer.out.push_str("Record<string, never>"),
        Some(schema) => writer.schema(schema, 0),
    }
    writer.out.push_str(";\n");
    writer.out
}

struct Writer<'s> {
    root: &'s Value,
    out: String,
    /// References being followed, so that a circle ends.
    open: usize,
}

impl Writer<'_> {
    fn schema(&mut self, schema: &Value, depth: usize) {
        let Value::Object(object) = schema else {
            return self.out.push_str(if schema == &Value::Bool(false) {
                "never"
            } else {
                "unknown"
            });
        };
        if depth > DEPTH_MAX || self.out.len() > TEXT_MAX {
            return self.out.push_str("unknown");
        }
        if let Some(target) = object.get("$ref") {
            return self.reference(target, depth);
        }
        if let Some(value) = object.get("const") {
            return self.literal(value);
        }
        if let Some(Value::Array(values)) = object.get("enum") {
            return self.joined(values, " | ", "never", Self::literal);
        }
        for (key, join, none) in
            [("anyOf", " | ", "never"), ("oneOf", " | ", "never"), ("allOf", " & ", "unknown")]
        {
            if let Some(Value::Array(schemas)) = object.get(key) {
                // What stands beside narrows it further; for a type, this is enough.
                return self.joined(schemas, join, none, |writer, schema| {
                    writer.out.push('(');
                    writer.schema(schema, depth);
                    writer.out.push(')');
                });
            }
        }
        match object.get("type") {
            Some(Value::String(kind)) => self.kind(kind, object, depth),
            Some(Value::Array(kinds)) => self.joined(kinds, " | ", "never", |writer, kind| {
                writer.kind(kind.as_str().unwrap_or_default(), object, depth);
            }),
            _ if object.contains_key("properties") => self.kind("object", object, depth),
            _ => self.out.push_str("unknown"),
        }
    }

    fn kind(&mut self, kind: &str, object: &Map<String, Value>, depth: usize) {
        match kind {
            "string" | "boolean" | "null" => self.out.push_str(kind),
            "number" | "integer" => self.out.push_str("number"),
            "array" => self.array(object, depth),
            "object" => self.object(object, depth),
            _ => self.out.push_str("unknown"),
        }
    }

    fn array(&mut self, object: &Map<String, Value>, depth: usize) {
        if let Some(Value::Array(items)) = object.get("prefixItems") {
            self.out.push('[');
            for item in items {
                self.schema(item, depth + 1);
                self.out.push_str(", ");
            }
            if object.get("items") != Some(&Value::Bool(false)) {
                self.out.push_str("...unknown[]");
            }
            return self.out.push(']');
        }
        self.out.push('(');
        self.schema(object.get("items").unwrap_or(&Value::Bool(true)), depth + 1);
        self.out.push_str(")[]");
    }

    fn object(&mut self, object: &Map<String, Value>, depth: usize) {
        let required = |name: &str| {
            let list = object.get("required").and_then(Value::as_array);
            list.is_some_and(|list| list.iter().any(|entry| entry == name))
        };
        let properties = object.get("properties").and_then(Value::as_object);
        let rest = match object.get("additionalProperties") {
            Some(Value::Bool(false)) => None,
            Some(rest @ Value::Object(_)) => Some(rest),
            _ => Some(&Value::Bool(true)),
        };
        let Some(properties) = properties.filter(|properties| !properties.is_empty()) else {
            return match rest {
                None => self.out.push_str("Record<string, never>"),
                Some(rest) => {
                    self.out.push_str("Record<string, ");
                    self.schema(rest, depth + 1);
                    self.out.push('>');
                }
            };
        };
        self.out.push_str("{\n");
        for (name, schema) in properties {
            self.comment(schema, depth + 1);
            let optional = if required(name) { "" } else { "?" };
            let _ = write!(self.out, "{}{}{optional}: ", indent(depth + 1), quoted(name));
            self.schema(schema, depth + 1);
            self.out.push_str(";\n");
        }
        // Typed rest properties would have to fit every named one too.
        if rest.is_some() {
            let _ = writeln!(self.out, "{}[name: string]: unknown;", indent(depth + 1));
        }
        let _ = write!(self.out, "{}}}", indent(depth));
    }

    fn reference(&mut self, target: &Value, depth: usize) {
        let pointer = target.as_str().and_then(|target| target.strip_prefix('#'));
        let root = self.root;
        match pointer.and_then(|pointer| root.pointer(pointer)) {
            Some(schema) if self.open < DEPTH_MAX => {
                self.open += 1;
                self.schema(schema, depth);
                self.open -= 1;
            }
            _ => self.out.push_str("unknown"),
        }
    }

    fn joined(
        &mut self,
        list: &[Value],
        join: &str,
        none: &str,
        mut each: impl FnMut(&mut Self, &Value),
    ) {
        if list.is_empty() {
            return self.out.push_str(none);
        }
        for (index, value) in list.iter().enumerate() {
            if index > 0 {
                self.out.push_str(join);
            }
            if self.out.len() > TEXT_MAX {
                return self.out.push_str("unknown");
            }
            each(self, value);
        }
    }

    fn literal(&mut self, value: &Value) {
        match value {
            Value::Array(_) | Value::Object(_) => self.out.push_str("unknown"),
            // JSON's form of these is TypeScript's form.
            Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {
                let _ = write!(self.out, "{value}");
            }
        }
    }

    fn comment(&mut self, schema: &Value, depth: usize) {
        let Some(text) = schema.get("description").and_then(Value::as_str) else { return };
        let text: String = text
            .chars()
            .map(|character| if character.is_control() { ' ' } else { character })
            .take(COMMENT_MAX)
            .collect();
        // Nothing in a description ends the comment it stands in.
        let text = text.replace("*/", "*\u{200b}/");
        let _ = writeln!(self.out, "{}/** {} */", indent(depth), text.trim());
    }
}

fn indent(depth: usize) -> String {
    "  ".repeat(depth)
}

fn quoted(name: &str) -> String {
    Value::from(name).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_becomes_the_type_a_person_would_write() {
        let schema = json!({
            "type": "object",
            "properties": {
                "customer": { "type": "string", "description": "Its number. */ export {}" },
                "limit": { "type": "integer" },
                "state": { "enum": ["open", "paid", null, 3] },
                "tags": { "type": "array", "items": { "type": ["string", "null"] } },
                "pair": { "type": "array", "prefixItems": [{ "type": "number" }], "items": false },
                "either": { "anyOf": [{ "type": "string" }, { "$ref": "#/$defs/money" }] },
                "it's": true,
                "nothing": false,
            },
            "required": ["customer", "state"],
            "additionalProperties": false,
            "$defs": { "money": { "type": "object", "properties": { "amount": { "const": 1 } } } },
        });
        let expected = "type Input = {\n  /** Its number. *\u{200b}/ export {} */\n  \
            \"customer\": string;\n  \"limit\"?: number;\n  \
            \"state\": \"open\" | \"paid\" | null | 3;\n  \"tags\"?: (string | null)[];\n  \
            \"pair\"?: [number, ];\n  \"either\"?: (string) | ({\n    \"amount\"?: 1;\n    \
            [name: string]: unknown;\n  });\n  \"it's\"?: unknown;\n  \"nothing\"?: never;\n};\n";
        assert_eq!(input_types(Some(&schema)), expected);
        assert_eq!(input_types(None), "type Input = Record<string, never>;\n");
        let open = json!({ "type": "object", "additionalProperties": { "type": "number" } });
        assert_eq!(input_types(Some(&open)), "type Input = Record<string, number>;\n");
    }

    #[test]
    fn circles_depth_and_nonsense_end() {
        let circle = json!({ "$ref": "#/$defs/a", "$defs": { "a": { "type": "array", "items": { "$ref": "#/$defs/a" } } } });
        assert!(input_types(Some(&circle)).contains("unknown"));
        let fan = json!({ "$ref": "#/$defs/a", "$defs": { "a": {
            "type": "object",
            "properties": { "l": { "$ref": "#/$defs/a" }, "r": { "$ref": "#/$defs/a" } },
        } } });
        assert!(input_types(Some(&fan)).len() < TEXT_MAX * 2);
        let mut deep = json!({ "type": "string" });
        for _ in 0..100 {
            deep = json!({ "type": "array", "items": deep });
        }
        assert!(input_types(Some(&deep)).contains("unknown"));
        for odd in [json!(3), json!("x"), json!({ "type": 3 }), json!({ "enum": [] }), json!([])] {
            assert!(input_types(Some(&odd)).starts_with("type Input = "));
        }
    }
}
