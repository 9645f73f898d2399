//! What a query or a body says, field by field, for a reader who should not
//! have to decode it in their head. It stands beside the raw text, never in its
//! place: names given twice stay two rows, in their order. Pure.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Rows shown; the raw text has the rest.
const ROWS_MAX: usize = 200;

/// One field: where it is and what it says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// `a=1&b=2`, percent and plus decoded.
pub(crate) fn pairs(text: &str) -> Vec<Field> {
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .take(ROWS_MAX)
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Field { name: plain(name), value: plain(value) }
        })
        .collect()
}

/// A body by its media type; nothing when it has no fields.
pub(crate) fn body(media_type: &str, text: &str) -> Vec<Field> {
    let essence = media_type.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    if essence == "application/x-www-form-urlencoded" {
        return pairs(text);
    }
    let Ok(json) = serde_json::from_str::<Json>(text) else { return Vec::new() };
    let mut fields = Vec::new();
    flatten(&json, String::new(), &mut fields);
    fields
}

fn plain(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        let hex = after
            .get(..2)
            .filter(|pair| *first == b'%' && pair.iter().all(u8::is_ascii_hexdigit))
            .and_then(|pair| std::str::from_utf8(pair).ok())
            .and_then(|pair| u8::from_str_radix(pair, 16).ok());
        match (hex, first) {
            (Some(byte), _) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            (None, b'+') => bytes.push(b' '),
            (None, byte) => bytes.push(*byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// JSON as it was written: names in their order, repeats kept. A map would show
/// one of two fields of the same name, and not the one the vendor reads.
enum Json {
    Leaf(String),
    List(Vec<Json>),
    Fields(Vec<(String, Json)>),
}

fn flatten(json: &Json, name: String, fields: &mut Vec<Field>) {
    if fields.len() >= ROWS_MAX {
        return;
    }
    match json {
        Json::Leaf(value) => fields.push(Field { name, value: value.clone() }),
        Json::List(items) if items.is_empty() => fields.push(Field { name, value: "[]".into() }),
        Json::Fields(inner) if inner.is_empty() => fields.push(Field { name, value: "{}".into() }),
        Json::List(items) => {
            for (index, item) in items.iter().enumerate() {
                flatten(item, format!("{name}[{index}]"), fields);
            }
        }
        Json::Fields(inner) => {
            for (key, item) in inner {
                let dot = if name.is_empty() { "" } else { "." };
                flatten(item, format!("{name}{dot}{key}"), fields);
            }
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Json;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("JSON")
    }
    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Leaf(value.to_string()))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Leaf(value.to_string()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Leaf(value.to_string()))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Leaf(value.to_string()))
    }
    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Leaf(format!("“{value}”")))
    }
    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Leaf("null".to_owned()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut fields = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            fields.push(entry);
        }
        Ok(Json::Fields(fields))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn said(fields: &[Field]) -> String {
        let rows: Vec<_> =
            fields.iter().map(|field| format!("{}={}", field.name, field.value)).collect();
        rows.join("; ")
    }

    #[test]
    fn fields_keep_their_order_and_repeats() {
        assert_eq!(said(&pairs("b=1&a=%2F+x&a=2&&c")), "b=1; a=/ x; a=2; c=");
        let json = r#"{"to":"a","to":"b","items":[{"n":1},[]],"x":null,"e":{},"s":"\u202e"}"#;
        assert_eq!(
            said(&body("application/json", json)),
            "to=“a”; to=“b”; items[0].n=1; items[1]=[]; x=null; e={}; s=“\u{202e}”"
        );
        assert_eq!(said(&body("application/x-www-form-urlencoded; charset=utf-8", "a=1")), "a=1");
        assert_eq!(said(&body("text/plain", "no fields")), "");
        assert_eq!(pairs(&"a&".repeat(1000)).len(), ROWS_MAX);
    }
}
