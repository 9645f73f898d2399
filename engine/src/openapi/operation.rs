//! The operations of a document and what each takes: parameters and a body,
//! with local references followed. What has no form in a module is a reason.

use super::{DocumentFault, object};
use crate::check::decoded_pointer;
use serde_json::{Map, Value};

/// References from one to the next that are followed.
const CHAIN_MAX: usize = 16;
/// Methods of a path item, as they are written there.
const METHODS: [(&str, &str); 8] = [
    ("get", "GET"),
    ("put", "PUT"),
    ("post", "POST"),
    ("delete", "DELETE"),
    ("options", "OPTIONS"),
    ("head", "HEAD"),
    ("patch", "PATCH"),
    ("trace", "TRACE"),
];
/// Headers a document may not give as parameters: they follow from the rest.
const HEADERS_IGNORED: [&str; 3] = ["accept", "content-type", "authorization"];

/// One operation of a document.
pub(super) struct Operation<'d> {
    pub(super) root: &'d Value,
    pub(super) method: &'static str,
    pub(super) path: &'d str,
    item: &'d Map<String, Value>,
    operation: &'d Map<String, Value>,
}

/// Where a parameter goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Path,
    Query(Style),
    Header,
}

/// How a value of several parts is written in a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// The name again for each part.
    Repeated,
    /// The parts joined by this.
    Joined(char),
    /// `name[part]=value`.
    Deep,
}

/// One parameter.
pub(super) struct Parameter<'d> {
    pub(super) name: &'d str,
    pub(super) place: Place,
    pub(super) required: bool,
    pub(super) description: Option<&'d str>,
    pub(super) schema: &'d Value,
    pub(super) example: Option<&'d Value>,
}

/// What a body is sent as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding<'d> {
    Json(&'d str),
    Form,
    Text(&'d str),
}

/// A body.
pub(super) struct Body<'d> {
    pub(super) encoding: Encoding<'d>,
    pub(super) required: bool,
    pub(super) schema: &'d Value,
    pub(super) example: Option<&'d Value>,
}

/// Every operation, in the document's order.
pub(super) fn all(root: &Value) -> Result<Vec<Operation<'_>>, DocumentFault> {
    let paths = root["paths"]
        .as_object()
        .ok_or_else(|| DocumentFault("it has no `paths`; there is nothing to call".into()))?;
    let mut operations = Vec::new();
    for (path, item) in paths {
        let Ok(Value::Object(item)) = follow(root, item) else { continue };
        for (word, method) in METHODS {
            if let Some(Value::Object(operation)) = item.get(word) {
                operations.push(Operation { root, method, path, item, operation });
            }
        }
    }
    Ok(operations)
}

impl<'d> Operation<'d> {
    /// `GET /repos/{owner}`.
    pub(super) fn key(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    pub(super) fn id(&self) -> Option<&'d str> {
        self.text("operationId")
    }

    pub(super) fn tags(&self) -> impl Iterator<Item = &'d str> + use<'d> {
        let tags = self.operation.get("tags").and_then(Value::as_array);
        tags.into_iter().flatten().filter_map(Value::as_str)
    }

    pub(super) fn text(&self, word: &str) -> Option<&'d str> {
        let text = self.operation.get(word).and_then(Value::as_str);
        text.filter(|text| !text.trim().is_empty())
    }

    /// The parameters, the operation's own over those of its path.
    pub(super) fn parameters(&self) -> Result<Vec<Parameter<'d>>, String> {
        let mut parameters: Vec<Parameter<'d>> = Vec::new();
        for list in [self.item, self.operation] {
            let list = list.get("parameters").and_then(Value::as_array);
            for value in list.into_iter().flatten() {
                let Some(parameter) = parameter(self.root, follow(self.root, value)?)? else {
                    continue;
                };
                let same = |other: &Parameter<'_>| {
                    other.name == parameter.name && same_place(other.place, parameter.place)
                };
                match parameters.iter_mut().find(|other| same(other)) {
                    Some(other) => *other = parameter,
                    None => parameters.push(parameter),
                }
            }
        }
        Ok(parameters)
    }

    /// The body, if one can be sent.
    pub(super) fn body(&self) -> Result<Option<Body<'d>>, String> {
        let Some(value) = self.operation.get("requestBody") else { return Ok(None) };
        let value = follow(self.root, value)?;
        let required = value["required"] == true;
        if matches!(self.method, "GET" | "HEAD") {
            return match required {
                true => Err("it needs a body, and the proxy sends none with a GET or HEAD".into()),
                false => Ok(None),
            };
        }
        let content = object(&value["content"]);
        let Some((encoding, media)) = preferred(content) else {
            let kinds = content.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            // Optional or not: an upload without what is uploaded is of no use.
            return match content.is_empty() || self.method == "DELETE" {
                true => Ok(None),
                false => Err(format!(
                    "its body is {}, which a module cannot make from an input",
                    super::words::shortened(&kinds, 80)
                )),
            };
        };
        let examples = object(&media["examples"]).values().next();
        let example = examples.and_then(|named| follow(self.root, named).ok());
        let example = media.get("example").or_else(|| example.and_then(|named| named.get("value")));
        Ok(Some(Body { encoding, required, schema: &media["schema"], example }))
    }
}

fn preferred(content: &Map<String, Value>) -> Option<(Encoding<'_>, &Value)> {
    let bare = |kind: &str| -> String {
        kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    };
    let find = |fits: &dyn Fn(&str) -> bool| content.iter().find(|(kind, _)| fits(&bare(kind)));
    if let Some((kind, media)) =
        find(&|kind| kind == "application/json").or_else(|| find(&|kind| kind.ends_with("+json")))
    {
        return Some((Encoding::Json(kind), media));
    }
    if let Some((_, media)) = find(&|kind| kind == "application/x-www-form-urlencoded") {
        return Some((Encoding::Form, media));
    }
    if let Some((_, media)) = find(&|kind| kind == "*/*") {
        return Some((Encoding::Json("application/json"), media));
    }
    find(&|kind| kind.starts_with("text/")).map(|(kind, media)| (Encoding::Text(kind), media))
}

fn parameter<'d>(root: &'d Value, value: &'d Value) -> Result<Option<Parameter<'d>>, String> {
    let name = value["name"].as_str().filter(|name| !name.is_empty());
    let name = name.ok_or("one of its parameters has no name")?;
    let said = super::words::shortened(name, 40);
    let style = value["style"].as_str();
    let required = value["required"] == true;
    let place = match value["in"].as_str() {
        Some("path") => match style {
            None | Some("simple") => Place::Path,
            Some(_) => return Err(format!("the path parameter `{said}` has a style of its own")),
        },
        Some("query") => {
            let explode = value["explode"].as_bool().unwrap_or(style.is_none_or(|s| s == "form"));
            Place::Query(match (style, explode) {
                (Some("deepObject"), _) => Style::Deep,
                (Some("spaceDelimited"), false) => Style::Joined(' '),
                (Some("pipeDelimited"), false) => Style::Joined('|'),
                (_, true) => Style::Repeated,
                (_, false) => Style::Joined(','),
            })
        }
        Some("header") if HEADERS_IGNORED.contains(&name.to_ascii_lowercase().as_str()) => {
            return Ok(None);
        }
        Some("header") => Place::Header,
        Some("cookie") if !required => return Ok(None),
        Some("cookie") => return Err(format!("it needs the cookie `{said}`")),
        _ => return Err(format!("the parameter `{said}` has no place it goes to")),
    };
    let content = object(&value["content"]).values().next();
    let schema = value.get("schema").or_else(|| content.map(|media| &media["schema"]));
    if value.get("schema").is_none() && content.is_some() {
        return Err(format!("the parameter `{said}` is encoded in a way of its own"));
    }
    let named = object(&value["examples"]).values().next();
    let named = named.and_then(|named| follow(root, named).ok()).and_then(|one| one.get("value"));
    Ok(Some(Parameter {
        name,
        place,
        required: required || place == Place::Path,
        description: value["description"].as_str(),
        schema: schema.unwrap_or(&Value::Null),
        example: value.get("example").or(named),
    }))
}

fn same_place(one: Place, other: Place) -> bool {
    matches!(
        (one, other),
        (Place::Path, Place::Path)
            | (Place::Query(_), Place::Query(_))
            | (Place::Header, Place::Header)
    )
}

/// What a value is, or what its reference refers to.
pub(super) fn follow<'d>(root: &'d Value, value: &'d Value) -> Result<&'d Value, String> {
    let mut value = value;
    for _ in 0..CHAIN_MAX {
        match value.get("$ref").and_then(Value::as_str) {
            None => return Ok(value),
            Some(reference) => value = target(root, reference)?,
        }
    }
    Err("a chain of references does not end".into())
}

/// What a local reference refers to.
pub(super) fn target<'d>(root: &'d Value, reference: &str) -> Result<&'d Value, String> {
    let said = super::words::shortened(reference, 60);
    let pointer = reference
        .strip_prefix('#')
        .ok_or_else(|| format!("`{said}` refers to another document, and none is fetched"))?;
    root.pointer(&decoded_pointer(pointer))
        .ok_or_else(|| format!("`{said}` refers to nothing in the document"))
}
