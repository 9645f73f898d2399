//! Whole documents of three services, fetched by `scripts/data` and never
//! committed: each operation becomes a module that passes the check and whose
//! hints are its method's, or is refused with a reason; and over GitHub's 1,223
//! operations, how well find_tool finds and what a list of them costs.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use cambium_engine::{
    Document, Drafted, Drafts, Index, Module, ToolName, Wanted, check_module, draft_document,
};
use cambium_proxy::{MethodPattern, PathPattern};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Share of short queries whose tool is among the first ten, when they are made of
/// the operation's own summary or id.
const RECALL_AT_10: f64 = 0.93;
/// The same when they are made of its path, which is no text of the module and
/// often that of several operations: 0.885 measured.
const RECALL_BY_PATH: f64 = 0.88;
/// Tokens of twenty listed tools of average size: 2,000 are wanted, 2,366 measured.
/// Names, annotations and the frame of a schema are three quarters of them.
const LISTED_TOKENS: f64 = 2_400.0;

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

fn wanted(vendor: &str) -> Wanted {
    Wanted { vendor: vendor.to_owned(), base_path: String::new(), operations: Vec::new() }
}

fn drafts(vendor: &str) -> Drafts {
    draft_document(&document(&format!("{vendor}.json")), &wanted(vendor)).unwrap()
}

/// Drafts a document, checks every module, and answers what was refused.
fn imported(vendor: &str, operations: usize) -> Vec<(String, String)> {
    let drafts = drafts(vendor);
    assert_eq!(drafts.drafts.len(), operations, "{vendor}");
    let mut refused = Vec::new();
    for draft in &drafts.drafts {
        let module = match &draft.outcome {
            Drafted::Module(module) => module,
            Drafted::Refused(reason) => {
                refused.push((draft.operation.clone(), reason.clone()));
                continue;
            }
        };
        let (source, tool) = (&module.source, &module.tool);
        let report = check_module(source);
        assert!(report.ok, "{}: {:?}\n{source}", draft.operation, report.diagnostics);
        let [site] = &report.sites[..] else { panic!("{tool}: {:?}", report.sites) };
        assert_eq!(site.method, MethodPattern::Exactly(draft.method.clone()), "{tool}");
        assert_ne!(site.path, PathPattern::Any, "{tool}");
        let read = matches!(draft.method.as_str(), "GET" | "HEAD");
        assert_eq!(report.hints.read_only, read, "{tool}");
        assert_eq!(report.hints.destructive, draft.method == "DELETE", "{tool}");
        assert!(report.example_input.is_some(), "{tool} has no example\n{source}");
        assert!(report.description.unwrap().starts_with("Vendor: "), "{tool}");
    }
    println!("{vendor}: {operations} operations, refused {refused:?}");
    refused
}

#[test]
fn every_operation_of_github_becomes_a_tool_or_is_refused_with_a_reason() {
    let refused = imported("github", 1_223);
    assert_eq!(refused.len(), 1, "{refused:?}");
}

#[test]
fn every_operation_of_stripe_becomes_a_tool_or_is_refused_with_a_reason() {
    let refused = imported("stripe", 452);
    assert_eq!(refused.len(), 1, "{refused:?}");
}

#[test]
fn every_operation_of_notion_becomes_a_tool_or_is_refused_with_a_reason() {
    assert!(imported("notion", 24).is_empty());
}

/// Words that carry nothing in a query of two to four words.
const SMALL: [&str; 24] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "given", "has", "if", "in",
    "is", "of", "on", "or", "that", "the", "their", "this", "to", "with",
];

/// The query somebody in a hurry types, by a rule and not by hand: the words of a
/// text in their order without small ones and without repeats, the first four.
/// One that has fewer than two words left is no query of this kind.
fn terse(text: &str) -> Option<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(|c: char| !c.is_ascii_alphanumeric()) {
        let word = word.to_ascii_lowercase();
        if word.len() > 1 && !SMALL.contains(&word.as_str()) && !words.contains(&word) {
            words.push(word);
        }
    }
    words.truncate(4);
    (words.len() >= 2).then(|| words.join(" "))
}

/// What the operation does in a word of its own, and the last of its path.
fn path_words(method: &str, path: &str) -> String {
    let verb = match (method, path.ends_with('}')) {
        ("GET", true) => "get",
        ("GET", false) => "list",
        ("POST", _) => "create",
        ("DELETE", _) => "delete",
        _ => "update",
    };
    let named: Vec<&str> =
        path.split('/').filter(|part| !part.is_empty() && !part.starts_with('{')).collect();
    format!("{verb} {}", named[named.len().saturating_sub(2)..].join(" "))
}

fn index(drafts: &Drafts) -> Index {
    let mut index = Index::default();
    for draft in &drafts.drafts {
        if let Drafted::Module(module) = &draft.outcome {
            let Module { tool, description, input_schema, .. } = &**module;
            index.upsert(Document { tool, title: None, description, input_schema });
        }
    }
    index
}

/// Recall at ten of one query each, and what was missed.
#[allow(clippy::cast_precision_loss)]
fn recall(index: &Index, queries: &[(String, ToolName)]) -> (f64, Vec<String>) {
    let mut missed = Vec::new();
    for (query, wanted) in queries {
        let hits = index.search(query).hits;
        if !hits.iter().take(10).any(|hit| hit.tool == *wanted) {
            missed.push(format!("{query:?} wants {wanted}"));
        }
    }
    (1.0 - missed.len() as f64 / queries.len() as f64, missed)
}

#[test]
fn short_queries_find_their_tool_among_githubs() {
    let bytes = document("github.json");
    let root: Value = serde_json::from_slice(&bytes).unwrap();
    let drafts = draft_document(&bytes, &wanted("github")).unwrap();
    let index = index(&drafts);
    let (mut by_summary, mut by_id, mut by_path) = (Vec::new(), Vec::new(), Vec::new());
    for draft in &drafts.drafts {
        let Drafted::Module(module) = &draft.outcome else { continue };
        let tool = &module.tool;
        let (method, path) = draft.operation.split_once(' ').unwrap();
        let operation = &root["paths"][path][method.to_ascii_lowercase()];
        let text = |word: &str| operation[word].as_str().unwrap_or_default().to_owned();
        let asked = |text: &str| terse(text).map(|query| (query, tool.clone()));
        by_summary.extend(asked(&text("summary")));
        by_id.extend(asked(&text("operationId")));
        by_path.extend(asked(&path_words(method, path)));
    }
    for (rule, queries, least) in [
        ("summary", &by_summary, RECALL_AT_10),
        ("operationId", &by_id, RECALL_AT_10),
        ("path", &by_path, RECALL_BY_PATH),
    ] {
        let (recall, missed) = recall(&index, queries);
        println!("{rule}: {} queries, recall@10 {recall:.3}", queries.len());
        assert!(queries.len() > 1_200, "{rule}: {} queries", queries.len());
        assert!(recall >= least, "{rule}: recall@10 {recall:.3}, missed {missed:#?}");
    }
}

#[test]
#[allow(clippy::cast_precision_loss)]
fn what_a_list_of_twenty_github_tools_costs() {
    let drafts = drafts("github");
    let mut sizes = Vec::new();
    for draft in &drafts.drafts {
        let Drafted::Module(module) = &draft.outcome else { continue };
        let Module { tool, description, input_schema, .. } = &**module;
        let read = matches!(draft.method.as_str(), "GET" | "HEAD");
        let mut annotations = json!({
            "readOnlyHint": read,
            "destructiveHint": draft.method == "DELETE",
            "openWorldHint": true,
        });
        // Listed only where it follows from the method.
        if draft.method != "POST" && draft.method != "PATCH" {
            annotations["idempotentHint"] = true.into();
        }
        let listed = json!({
            "name": tool.to_string(),
            "description": description,
            "inputSchema": input_schema,
            "annotations": annotations,
        });
        sizes.push((listed.to_string().chars().count(), tool.to_string()));
    }
    let mean = sizes.iter().map(|(size, _)| *size).sum::<usize>() as f64 / sizes.len() as f64;
    sizes.sort();
    let at = |share: usize| sizes[sizes.len() * share / 100].0;
    println!("mean {mean:.0} p50 {} p90 {} max {:?}", at(50), at(90), sizes.last());
    let tokens = mean * 20.0 / 4.0;
    println!("twenty: {tokens:.0} tokens");
    assert!(tokens <= LISTED_TOKENS, "{tokens:.0} tokens");
}
