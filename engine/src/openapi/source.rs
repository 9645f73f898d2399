//! A document's text as one JSON value: JSON, or YAML without aliases, anchors
//! and tags, which can make a small text mean a very large one. Scalars are
//! read by YAML's core schema.

use super::DocumentFault;
use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};

/// Deepest nesting; serde_json has the same limit for JSON.
const DEPTH_MAX: usize = 128;

/// Reads bytes that begin with `{` as JSON and any others as YAML.
pub(super) fn parse(document: &[u8]) -> Result<Value, DocumentFault> {
    let text = std::str::from_utf8(document)
        .map_err(|wrong| fault(format!("byte {} is not UTF-8", wrong.valid_up_to())))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let value = match text.trim_start().starts_with('{') {
        true => serde_json::from_str(text).map_err(|error| fault(format!("not JSON: {error}")))?,
        false => yaml(text)?,
    };
    match value {
        Value::Object(_) => Ok(value),
        _ => Err(fault("it is no object; is it an OpenAPI document?")),
    }
}

fn fault(said: impl Into<String>) -> DocumentFault {
    DocumentFault(said.into())
}

/// A list or map that is not closed yet.
enum Open {
    List(Vec<Value>),
    /// Its entries, and the key whose value comes next.
    Map(Map<String, Value>, Option<String>),
}

fn yaml(text: &str) -> Result<Value, DocumentFault> {
    let mut open: Vec<Open> = Vec::new();
    let mut whole = None;
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| fault(format!("not YAML: {error}")))?;
        let line = span.start.line();
        let done = match event {
            Event::Alias(_) => return Err(referred(line)),
            Event::Scalar(text, style, anchor, tag) => {
                plain(anchor, tag.is_some(), line)?;
                if let Some(Open::Map(map, key @ None)) = open.last_mut() {
                    let name = text.into_owned();
                    if map.contains_key(&name) {
                        return Err(fault(format!("line {line}: a key is given twice")));
                    }
                    *key = Some(name);
                    continue;
                }
                scalar(&text, style)
            }
            Event::SequenceStart(anchor, tag) => {
                plain(anchor, tag.is_some(), line)?;
                begin(&mut open, Open::List(Vec::new()), line)?;
                continue;
            }
            Event::MappingStart(anchor, tag) => {
                plain(anchor, tag.is_some(), line)?;
                begin(&mut open, Open::Map(Map::new(), None), line)?;
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List(list)) => Value::Array(list),
                Some(Open::Map(map, _)) => Value::Object(map),
                None => return Err(fault("not YAML: an end without a beginning")),
            },
            Event::DocumentStart(_) if whole.is_some() => {
                return Err(fault(format!("line {line}: a second document begins")));
            }
            Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::StreamStart
            | Event::StreamEnd
            | Event::Nothing => continue,
        };
        match open.last_mut() {
            None => whole = Some(done),
            Some(Open::List(list)) => list.push(done),
            Some(Open::Map(map, key)) => match key.take() {
                Some(key) => drop(map.insert(key, done)),
                None => return Err(fault(format!("line {line}: a key must be plain text"))),
            },
        }
    }
    whole.ok_or_else(|| fault("it is empty"))
}

fn begin(open: &mut Vec<Open>, new: Open, line: usize) -> Result<(), DocumentFault> {
    if open.len() >= DEPTH_MAX {
        return Err(fault(format!("line {line}: it nests deeper than {DEPTH_MAX} levels")));
    }
    open.push(new);
    Ok(())
}

fn plain(anchor: usize, tagged: bool, line: usize) -> Result<(), DocumentFault> {
    if anchor != 0 {
        return Err(referred(line));
    }
    match tagged {
        true => Err(fault(format!("line {line}: tags are not read; write the value plainly"))),
        false => Ok(()),
    }
}

fn referred(line: usize) -> DocumentFault {
    fault(format!("line {line}: anchors and aliases are not read; write the value out"))
}

/// A scalar by the core schema; anything quoted is text.
fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::String(text.to_owned());
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number)
}

fn number(text: &str) -> Option<Number> {
    let radix = |digits: &str, radix| i64::from_str_radix(digits, radix).ok().map(Number::from);
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    // Rust also reads `inf`, `nan` and `1_0`, which are words here.
    let digits = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-');
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        || !unsigned.chars().all(digits)
    {
        return None;
    }
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    Number::from_f64(text.parse().ok()?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn yaml_reads_as_the_json_it_means() {
        let text = "openapi: 3.1.0\ninfo: {title: 'a', version: \"1\"}\nx:\n  - 1\n  - -2.5\n  \
                    - ~\n  - true\n  - yes\n  - 0x1f\n  - 1e3\n  - .inf\n  - 2022-06-28\n200: ok\n\
                    t: |\n  a\n  b\n";
        let read = parse(text.as_bytes()).unwrap();
        let expected = json!({
            "openapi": "3.1.0",
            "info": { "title": "a", "version": "1" },
            "x": [1, -2.5, null, true, "yes", 31, 1000.0, ".inf", "2022-06-28"],
            "200": "ok",
            "t": "a\nb\n",
        });
        assert_eq!(read, expected);
    }

    #[test]
    fn what_makes_a_small_text_large_or_unclear_is_refused_by_its_line() {
        for (text, said) in [
            ("a: &x 1\nb: *x", "line 1: anchors"),
            ("a: 1\nb: *x", "not YAML"),
            ("a: !!str 1", "tags are not read"),
            ("a: 1\na: 2", "given twice"),
            ("a: 1\n---\nb: 2", "second document"),
            ("? [a]\n: b", "plain text"),
            ("- 1", "no object"),
            ("", "empty"),
            ("{\"a\": ", "not JSON"),
            ("a: [", "not YAML"),
        ] {
            let refused = parse(text.as_bytes()).unwrap_err().0;
            assert!(refused.contains(said), "{text:?}: {refused}");
        }
        assert!(parse(&[0xff]).unwrap_err().0.contains("UTF-8"));
        let deep = format!("a: {}{}", "[".repeat(300), "]".repeat(300));
        assert!(parse(deep.as_bytes()).is_err());
        let deep = format!("a:\n  {}x", "- ".repeat(200));
        assert!(parse(deep.as_bytes()).unwrap_err().0.contains("nests deeper"));
        let deep = format!("{{\"a\": {}{}}}", "[".repeat(300), "]".repeat(300));
        assert!(parse(deep.as_bytes()).unwrap_err().0.contains("not JSON"));
    }
}
