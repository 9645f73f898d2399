//! An OpenAPI document, read into tool modules: one module an operation, with a
//! literal call site and a small input schema. Pure; the document is hostile
//! text, so the root runs this in the jail ([`draft_bytes`]) and every module
//! still has to pass the check. Servers and security of the document are not
//! read: where a tool may call is the connection's to say.

mod example;
mod import;
mod module;
mod name;
mod operation;
mod schema;
mod source;
mod words;

use crate::ToolName;
pub use import::{ImportRequest, Imported, ImportedTool};
use operation::Operation;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Largest document read without a person's word, bytes.
pub const DOCUMENT_BYTES: usize = 5 * 1024 * 1024;
/// Largest document read at all, bytes: the largest in public use are a third of it.
pub const DOCUMENT_BYTES_MAX: usize = 48 * 1024 * 1024;
/// More operations than any service has in one document.
const OPERATIONS_MAX: usize = 5_000;
/// Longest base path, bytes.
const BASE_PATH_MAX: usize = 200;

/// What is wanted of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// Vendor half of every tool's name.
    pub vendor: String,
    /// In front of every path, such as `/api/v3`; empty or starting with `/`.
    pub base_path: String,
    /// Operation ids, `METHOD /path`s or tags, each may end in `*`; empty means all.
    pub operations: Vec<String>,
}

/// What a document gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drafts {
    /// `info.title`, made plain.
    pub title: String,
    /// The path that the document's own servers begin with; never used by itself.
    pub servers_path: Option<String>,
    /// One for each operation that is wanted, in the document's order.
    pub drafts: Vec<Draft>,
}

/// One operation, and the module it became or why it became none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// `GET /repos/{owner}`.
    pub operation: String,
    /// Upper-case method.
    pub method: String,
    /// What came of it.
    pub outcome: Drafted,
}

/// What an operation became.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Drafted {
    /// A module, not checked yet.
    Module(Box<Module>),
    /// Nothing: one sentence why.
    Refused(String),
}

/// A module, with what it says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Module {
    /// Its name.
    pub tool: ToolName,
    /// As the module says it.
    pub description: String,
    /// As the module says it.
    pub input_schema: Value,
    /// As the module says it.
    pub example_input: Option<Value>,
    /// Its text.
    pub source: String,
}

/// Why a whole document is refused: one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{0}")]
pub struct DocumentFault(pub String);

/// Reads a document and writes a module for each operation that is wanted.
pub fn draft_document(document: &[u8], wanted: &Wanted) -> Result<Drafts, DocumentFault> {
    base_path(&wanted.base_path)?;
    let root = source::parse(document)?;
    version(&root)?;
    let mut operations = operation::all(&root)?;
    if operations.len() > OPERATIONS_MAX {
        return Err(DocumentFault(format!(
            "the document has {} operations, more than {OPERATIONS_MAX}; choose some of them in a \
             smaller document",
            operations.len()
        )));
    }
    chosen(&mut operations, &wanted.operations)?;
    let mut taken = BTreeSet::new();
    let drafts = operations.iter().map(|operation| Draft {
        operation: words::plain(&operation.key()),
        method: operation.method.to_owned(),
        outcome: module::draft(operation, wanted, &mut taken).unwrap_or_else(Drafted::Refused),
    });
    Ok(Drafts {
        drafts: drafts.collect(),
        title: words::shortened(root["info"]["title"].as_str().unwrap_or_default(), 100),
        servers_path: servers_path(&root),
    })
}

/// [`draft_document`] for a process that is handed bytes and hands bytes back:
/// a line of JSON ([`Wanted`]), then the document.
pub fn draft_bytes(input: &[u8]) -> Vec<u8> {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (head, document) = (&input[..end], input.get(end + 1..).unwrap_or_default());
    let drafted = match serde_json::from_slice(head) {
        Ok(wanted) => draft_document(document, &wanted),
        Err(error) => Err(DocumentFault(format!("what is wanted is not understood: {error}"))),
    };
    serde_json::to_vec(&drafted).unwrap_or_default()
}

/// What [`draft_bytes`] is handed.
pub fn draft_input(document: &[u8], wanted: &Wanted) -> Vec<u8> {
    let mut input = serde_json::to_vec(wanted).unwrap_or_default();
    input.push(b'\n');
    input.extend_from_slice(document);
    input
}

fn version(root: &Value) -> Result<(), DocumentFault> {
    let refused = |said: String| Err(DocumentFault(said));
    match root["openapi"].as_str() {
        Some(version) if version.starts_with("3.0") || version.starts_with("3.1") => Ok(()),
        Some(version) => refused(format!(
            "`openapi` is {}, and only 3.0 and 3.1 are read; convert the document",
            words::shortened(version, 20)
        )),
        None if root.get("swagger").is_some() => {
            refused("this is Swagger 2; convert the document to OpenAPI 3".into())
        }
        None => refused("it has no `openapi: 3.…` at its root; is it an OpenAPI document?".into()),
    }
}

fn base_path(path: &str) -> Result<(), DocumentFault> {
    let fits = path.is_empty()
        || path.starts_with('/')
            && !path.ends_with('/')
            && path.len() <= BASE_PATH_MAX
            && path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte));
    match fits {
        true => Ok(()),
        false => Err(DocumentFault(
            "a base path starts with `/`, does not end with one and holds plain characters".into(),
        )),
    }
}

/// Keeps the operations that one of the words names; each word must name some.
fn chosen(operations: &mut Vec<Operation<'_>>, words: &[String]) -> Result<(), DocumentFault> {
    if words.is_empty() {
        return Ok(());
    }
    let named = |operation: &Operation<'_>, word: &str| {
        let names = |name: &str| match word.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == word,
        };
        operation.id().is_some_and(names) || names(&operation.key()) || operation.tags().any(names)
    };
    for word in words {
        if !operations.iter().any(|operation| named(operation, word)) {
            return Err(DocumentFault(format!(
                "no operation is called `{}`; name operation ids, tags or `GET /path`, or end a word with *",
                words::repeated(word)
            )));
        }
    }
    operations.retain(|operation| words.iter().any(|word| named(operation, word)));
    Ok(())
}

/// `/api/v3` of `https://shop.example/api/v3/`, for the person to be told.
fn servers_path(root: &Value) -> Option<String> {
    let url = root["servers"][0]["url"].as_str()?;
    let path = match url.split_once("://") {
        Some((_, rest)) => &rest[rest.find('/')?..],
        None => url,
    };
    let path = words::shortened(path.trim_end_matches('/'), BASE_PATH_MAX);
    (path.starts_with('/') && path.len() > 1).then_some(path)
}

/// The object of a value; an empty one when it is none.
fn object(value: &Value) -> &Map<String, Value> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    value.as_object().unwrap_or(&EMPTY)
}
