//! Reads a fixed tool's arguments, strictly: what the tool does not know is
//! refused by name, what it needs and does not get is named, and a value of
//! the wrong type is named with the type it has. Pure.

use cambium_engine::EngineError;
use serde_json::{Map, Value};

/// Longest echo of a caller's own text in an error, characters: an error must
/// not become a way to fill a context window.
const ECHO_MAX: usize = 80;

/// Unknown arguments that are named.
const NAMED_MAX: usize = 8;

/// Most items of a list or an object: what is looked at one by one must be few.
const ITEMS_MAX: usize = 256;

/// The arguments of one call of a fixed tool.
pub(crate) struct Arguments {
    tool: &'static str,
    values: Map<String, Value>,
}

impl Arguments {
    /// Refuses every key that is not in `known`.
    pub(crate) fn read(
        tool: &'static str,
        known: &[&str],
        values: Map<String, Value>,
    ) -> Result<Self, EngineError> {
        let (arguments, known) = Self::sort(tool, known, values);
        known.map(|()| arguments)
    }

    /// The same for who tells that beside other faults.
    pub(crate) fn sort(
        tool: &'static str,
        known: &[&str],
        values: Map<String, Value>,
    ) -> (Self, Result<(), EngineError>) {
        let unknown: Vec<String> = values
            .keys()
            .filter(|key| !known.contains(&key.as_str()))
            .map(|key| echo(key))
            .collect();
        let sorted = match unknown.split_first() {
            None => Ok(()),
            Some((first, others)) => {
                let (named, more) = others.split_at(others.len().min(NAMED_MAX));
                let more = match more.len() {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let others = match named {
                    [] => String::new(),
                    _ => format!(" (and neither are {}{more})", named.join(", ")),
                };
                let takes = known.join(", ");
                let reason = format!("is not an argument of {tool}{others}; it takes {takes}");
                Err(invalid(first, reason))
            }
        };
        (Self { tool, values }, sorted)
    }

    /// A text that must be there.
    pub(crate) fn text(&mut self, name: &str) -> Result<String, EngineError> {
        match self.optional_text(name)? {
            Some(text) => Ok(text),
            None => Err(invalid(name, format!("is required by {}", self.tool))),
        }
    }

    /// A text that may be left out.
    pub(crate) fn optional_text(&mut self, name: &str) -> Result<Option<String>, EngineError> {
        match self.values.remove(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_type(name, "text", &other)),
        }
    }

    /// A flag; false when left out.
    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, EngineError> {
        match self.values.remove(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(other) => Err(wrong_type(name, "true or false", &other)),
        }
    }

    /// A whole number that may be left out. What lies outside `u64` becomes
    /// its nearest end, for the engine to clamp and to say so.
    pub(crate) fn whole(&mut self, name: &str) -> Result<Option<u64>, EngineError> {
        let Some(value) = self.values.remove(name) else { return Ok(None) };
        let Value::Number(number) = &value else {
            return Err(wrong_type(name, "a whole number", &value));
        };
        if let Some(whole) = number.as_u64() {
            return Ok(Some(whole));
        }
        match number.as_f64() {
            // `as` saturates at both ends of u64, which is what is wanted
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            Some(float) if float.fract() == 0.0 => Ok(Some(float as u64)),
            _ => Err(wrong_type(name, "a whole number", &value)),
        }
    }

    /// An object that may be left out.
    pub(crate) fn object(&mut self, name: &str) -> Result<Option<Value>, EngineError> {
        match self.values.remove(name) {
            None => Ok(None),
            Some(object @ Value::Object(_)) => Ok(Some(object)),
            Some(other) => Err(wrong_type(name, "an object", &other)),
        }
    }

    /// A list of texts that may be left out.
    pub(crate) fn list(&mut self, name: &str) -> Result<Vec<String>, EngineError> {
        let text = |(index, value): (usize, Value)| match value {
            Value::String(text) => Ok(text),
            other => Err(wrong_type(&format!("{name}[{index}]"), "text", &other)),
        };
        match self.values.remove(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => {
                few(name, items.len())?;
                items.into_iter().enumerate().map(text).collect()
            }
            Some(other) => Err(wrong_type(name, "a list of texts", &other)),
        }
    }

    /// An object of texts (or plain values) that may be left out, in its order.
    pub(crate) fn texts(&mut self, name: &str) -> Result<Vec<(String, String)>, EngineError> {
        let Some(Value::Object(object)) = self.object(name)? else { return Ok(Vec::new()) };
        let text = |(key, value): (String, Value)| match value {
            Value::String(text) => Ok((key, text)),
            Value::Number(_) | Value::Bool(_) => Ok((key, value.to_string())),
            other => Err(wrong_type(&format!("{name}.{key}"), "text", &other)),
        };
        few(name, object.len())?;
        object.into_iter().map(text).collect()
    }

    /// Whatever was given.
    pub(crate) fn any(&mut self, name: &str) -> Option<Value> {
        self.values.remove(name)
    }

    /// True when the caller gave it.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }
}

fn few(name: &str, items: usize) -> Result<(), EngineError> {
    match items {
        0..=ITEMS_MAX => Ok(()),
        _ => Err(invalid(name, format!("has {items} items, at most {ITEMS_MAX} are taken"))),
    }
}

/// An argument and what is wrong with it.
pub(crate) fn invalid(name: &str, reason: impl Into<String>) -> EngineError {
    EngineError::ArgumentInvalid { name: name.to_owned(), reason: reason.into() }
}

/// A caller's own text, short enough to repeat to it.
pub(crate) fn echo(text: &str) -> String {
    match text.char_indices().nth(ECHO_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

fn wrong_type(name: &str, wanted: &str, found: &Value) -> EngineError {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    invalid(name, format!("must be {wanted}, not {found}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(values: Value) -> Result<Arguments, EngineError> {
        let Value::Object(values) = values else { panic!("an object") };
        Arguments::read("run_tool", &["vendor", "name", "input", "timeoutSeconds"], values)
    }

    #[test]
    fn b011_an_unknown_argument_is_refused_by_name() {
        let error = read(json!({"vendor": "a", "dry_run": true, "x": 1})).err().unwrap();
        assert_eq!(
            error.to_string(),
            "argument `dry_run`: is not an argument of run_tool (and neither are x); \
             it takes vendor, name, input, timeoutSeconds"
        );
        assert_eq!(error.code(), "argument_invalid");
    }

    #[test]
    fn what_is_too_much_is_counted_before_it_is_looked_at() {
        let many: Map<String, Value> =
            (0..100_000).map(|n| (format!("k{n}"), Value::Null)).collect();
        let error = read(Value::Object(many.clone())).err().unwrap().to_string();
        assert!(error.len() < 400 && error.contains("and 99991 more)"), "{error}");
        let values = json!({ "vendor": vec!["h"; 257], "input": many });
        let mut arguments = read(values).unwrap();
        let said = |error: EngineError| error.to_string();
        let few = "items, at most 256 are taken";
        assert!(said(arguments.list("vendor").unwrap_err()).contains(few));
        assert!(said(arguments.texts("input").unwrap_err()).contains(few));
        assert_eq!(
            read(json!({ "vendor": vec!["h"; 256] })).unwrap().list("vendor").unwrap().len(),
            256
        );
    }

    #[test]
    fn a_missing_argument_and_a_wrong_type_are_named() {
        let mut arguments = read(json!({"name": 7, "input": "{}", "timeoutSeconds": 1.5})).unwrap();
        let said = |error: EngineError| error.to_string();
        assert_eq!(
            said(arguments.text("vendor").unwrap_err()),
            "argument `vendor`: is required by run_tool"
        );
        assert_eq!(
            said(arguments.text("name").unwrap_err()),
            "argument `name`: must be text, not a number"
        );
        assert_eq!(
            said(arguments.object("input").unwrap_err()),
            "argument `input`: must be an object, not text"
        );
        assert_eq!(
            said(arguments.whole("timeoutSeconds").unwrap_err()),
            "argument `timeoutSeconds`: must be a whole number, not a number"
        );
    }

    #[test]
    fn a_number_outside_its_type_is_left_for_the_engine_to_clamp() {
        for (given, read_as) in [(json!(-5), 0), (json!(90), 90), (json!(60.0), 60)] {
            let mut arguments = read(json!({"timeoutSeconds": given})).unwrap();
            assert_eq!(arguments.whole("timeoutSeconds").unwrap(), Some(read_as));
        }
        let mut arguments = read(json!({"timeoutSeconds": 1e300})).unwrap();
        assert_eq!(arguments.whole("timeoutSeconds").unwrap(), Some(u64::MAX));
    }

    #[test]
    fn a_long_name_is_not_repeated_whole() {
        let long = "é".repeat(5_000);
        let error = read(json!({ long: 1 })).err().unwrap();
        assert!(error.to_string().chars().count() < 300);
    }
}
