//! Tools made from whole OpenAPI documents, run in the real isolate through the
//! real proxy against a stub that knows the same document: each request must be
//! one that the document describes. The stub reads the document by itself, so
//! that a mistake of the import is not made twice. Data: `scripts/data`.
#![allow(clippy::unwrap_used)]

use cambium_engine::{
    Drafted, Outcome, RunLimits, ToolResult, Wanted, check_module, draft_document,
};
use cambium_proxy::{Answer, Grant};
use cambium_sandbox_tests::bench::Setup;
use cambium_sandbox_tests::memory::Word;
use cambium_sandbox_tests::rig::Rig;
use cambium_sandbox_tests::vendor::{Heard, answer};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

const WORKER: &str = env!("CARGO_BIN_EXE_worker");
/// Tools run of each document, spread over all of it.
const SAMPLED: usize = 50;

fn document(name: &str) -> Vec<u8> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("CAMBIUM_CACHE").unwrap_or_else(|| {
        let home = || set("HOME").unwrap_or_default().join(".cache");
        set("XDG_CACHE_HOME").unwrap_or_else(home).join("cambium")
    });
    let path = cache.join("data").join(name);
    std::fs::read(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; run scripts/data", path.display()))
}

/// A reference followed, for a document that is known to be sound.
fn followed<'d>(root: &'d Value, value: &'d Value) -> &'d Value {
    match value["$ref"].as_str() {
        Some(reference) => followed(root, root.pointer(&reference[1..]).unwrap()),
        None => value,
    }
}

/// The operation a request is for: of all paths that fit, the one that says most
/// of itself in words.
fn operation<'d>(root: &'d Value, method: &str, path: &str) -> Option<(&'d String, &'d Value)> {
    let asked: Vec<&str> = path.split('/').collect();
    let words = |template: &str| template.split('/').filter(|part| !part.contains('{')).count();
    let fits = |template: &str| {
        let parts: Vec<&str> = template.split('/').collect();
        parts.len() == asked.len()
            && parts.iter().zip(&asked).all(|(part, asked)| match part.split_once('{') {
                Some((before, _)) => asked.starts_with(before) && asked.len() > before.len(),
                None => part == asked,
            })
    };
    let paths = root["paths"].as_object().unwrap();
    paths
        .iter()
        .filter(|(template, item)| fits(template) && !item[method].is_null())
        .max_by_key(|(template, _)| words(template))
        .map(|(template, item)| (template, &item[method]))
}

/// The names a body's schema knows and needs.
fn names(
    root: &Value,
    schema: &Value,
    known: &mut BTreeSet<String>,
    needed: &mut BTreeSet<String>,
) {
    let schema = followed(root, schema);
    for member in schema["allOf"].as_array().into_iter().flatten() {
        names(root, member, known, needed);
    }
    known.extend(schema["properties"].as_object().into_iter().flat_map(|map| map.keys().cloned()));
    let list = schema["required"].as_array().into_iter().flatten();
    needed.extend(list.filter_map(|name| name.as_str().map(str::to_owned)));
}

/// What is wrong with a request, by the document; the operation when nothing is.
fn judged(root: &Value, heard: &Heard) -> Result<String, String> {
    let mut line = heard.line().split(' ');
    let (method, target) = (line.next().unwrap(), line.next().unwrap());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let method_key = method.to_ascii_lowercase();
    let (template, operation) =
        operation(root, &method_key, path).ok_or(format!("no operation {method} {path}"))?;
    let item = &root["paths"][template];
    let given: BTreeSet<String> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split(['=', '[']).next().unwrap().split("%5B").next().unwrap().to_owned())
        .collect();
    let mut known = BTreeSet::new();
    for parameter in [&item["parameters"], &operation["parameters"]]
        .into_iter()
        .flat_map(|list| list.as_array().into_iter().flatten())
    {
        let parameter = followed(root, parameter);
        let name = parameter["name"].as_str().unwrap();
        match parameter["in"].as_str().unwrap() {
            "query" => {
                known.insert(name.to_owned());
                if parameter["required"] == true && !given.contains(name) {
                    return Err(format!("the query lacks {name}"));
                }
            }
            "header" if parameter["required"] == true && heard.header(name).is_empty() => {
                return Err(format!("the header {name} is missing"));
            }
            _ => {}
        }
    }
    if let Some(stranger) = given.difference(&known).next() {
        return Err(format!("the query holds {stranger}"));
    }
    body(root, followed(root, &operation["requestBody"]), heard)?;
    Ok(format!("{method} {template}"))
}

fn body(root: &Value, body: &Value, heard: &Heard) -> Result<(), String> {
    if heard.body.is_empty() {
        let form = !body["content"]["application/x-www-form-urlencoded"].is_null();
        return match body["required"] == true && !form {
            true => Err("the body is missing".into()),
            false => Ok(()),
        };
    }
    let kind =
        heard.header("content-type").first().map_or("", |kind| kind.split(';').next().unwrap());
    let media = &body["content"][kind];
    if media.is_null() {
        return Err(format!("the body is of type {kind:?}"));
    }
    let (mut known, mut needed) = (BTreeSet::new(), BTreeSet::new());
    names(root, &media["schema"], &mut known, &mut needed);
    let given: BTreeSet<String> = match kind {
        "application/json" => match serde_json::from_slice(&heard.body) {
            Ok(Value::Object(map)) => map.keys().cloned().collect(),
            Ok(_) if known.is_empty() => return Ok(()),
            other => return Err(format!("the body is {other:?}")),
        },
        "application/x-www-form-urlencoded" => {
            let text = String::from_utf8(heard.body.clone()).unwrap();
            text.split('&').map(|pair| pair.split(['=', '%']).next().unwrap().to_owned()).collect()
        }
        _ => return Ok(()),
    };
    if let Some(missing) = needed.difference(&given).next() {
        return Err(format!("the body lacks {missing}"));
    }
    match given.difference(&known).next().filter(|_| !known.is_empty()) {
        Some(stranger) => Err(format!("the body holds {stranger}")),
        None => Ok(()),
    }
}

async fn sampled_tools_of(vendor: &str) {
    let bytes = document(&format!("{vendor}.json"));
    let root: Arc<Value> = Arc::new(serde_json::from_slice(&bytes).unwrap());
    let wanted =
        Wanted { vendor: vendor.to_owned(), base_path: String::new(), operations: Vec::new() };
    let drafts = draft_document(&bytes, &wanted).unwrap().drafts;
    let stub = root.clone();
    let setup = Setup::answering(move |heard| {
        let (status, said) = match judged(&stub, heard) {
            Ok(operation) => ("200 OK", json!({ "operation": operation })),
            Err(wrong) => ("400 Bad Request", json!({ "wrong": wrong })),
        };
        answer(status, "content-type: application/json\r\n", said.to_string().as_bytes())
    });
    let rig = Rig::with(WORKER, true, setup).await;
    let modules: Vec<_> = drafts
        .iter()
        .filter_map(|draft| match &draft.outcome {
            Drafted::Module(module) => Some((&draft.operation, &module.source)),
            Drafted::Refused(_) => None,
        })
        .collect();
    let (mut reads, mut writes) = (0, 0);
    let count = SAMPLED.min(modules.len());
    for at in 0..count {
        let (operation, source) = modules[at * modules.len() / count];
        let report = check_module(source);
        let grant = match report.hints.read_only {
            true => Grant::ReadOnly,
            false => {
                rig.bench.desk.will(Word::Say(Answer::Once));
                Grant::Ask
            }
        };
        *(if report.hints.read_only { &mut reads } else { &mut writes }) += 1;
        let session = rig.bench.open(report.hints, report.sites, grant);
        let input = report.example_input.unwrap().to_string();
        let javascript = report.javascript.unwrap();
        let ran = rig.run_source(&javascript, &input, RunLimits::default(), session).await;
        let Outcome::Ok(ToolResult::Response { status, body, .. }) = &ran.outcome else {
            panic!("{operation}: {:?}\n{source}", ran.outcome);
        };
        let said: Value = serde_json::from_slice(body).unwrap();
        assert_eq!(
            (*status, &said["operation"]),
            (200, &json!(operation)),
            "{said} {input}\n{source}"
        );
    }
    assert!(reads > 0 && writes > 0, "{vendor}: {reads} reads, {writes} writes");
    assert_eq!(rig.bench.vendor.heard().len(), count);
    rig.sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_tools_of_github_send_what_its_document_describes() {
    sampled_tools_of("github").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_tools_of_stripe_send_what_its_document_describes() {
    sampled_tools_of("stripe").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_tool_of_notion_sends_what_its_document_describes() {
    sampled_tools_of("notion").await;
}
