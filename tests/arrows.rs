//! The import table of `docs/architecture.md`, held against what Cargo resolves:
//! who may depend on whom among our crates, and which crates alone may name V8,
//! TLS, a database, MCP or HTML.
#![allow(clippy::unwrap_used)]

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Crate, what it may import of ours. A row that is missing fails, and so does
/// an arrow that is not in it.
const ARROWS: &[(&str, &[&str])] = &[
    ("cambium-proxy", &[]),
    ("cambium-engine", &["cambium-proxy"]),
    ("cambium-jail", &[]),
    ("cambium-driver", &["cambium-jail", "cambium-engine", "cambium-proxy"]),
    ("cambium-isolate", &["cambium-driver", "cambium-jail", "cambium-engine", "cambium-proxy"]),
    ("cambium-component", &["cambium-driver", "cambium-jail", "cambium-engine", "cambium-proxy"]),
    ("cambium-store", &["cambium-proxy", "cambium-engine"]),
    ("cambium-mcp", &["cambium-engine"]),
    ("cambium-console", &["cambium-engine", "cambium-proxy"]),
];

/// Crates at the edge: they may import any of ours.
const EDGES: &[&str] = &["cambium", "cambium-sandbox-tests"];

/// Something only some crates may name directly, dependencies of tests aside.
const OWNED: &[(&str, &[&str])] = &[
    ("deno_core", &["cambium-isolate"]),
    ("deno_web", &["cambium-isolate"]),
    ("rustls", &["cambium-proxy", "cambium", "cambium-sandbox-tests"]),
    ("tokio-rustls", &["cambium-proxy", "cambium", "cambium-sandbox-tests"]),
    ("sqlx", &["cambium-store"]),
    ("rmcp", &["cambium-mcp", "cambium"]),
    ("askama", &["cambium-console"]),
    // The tests pose as a kernel that refuses a layer.
    ("seccompiler", &["cambium-jail", "cambium-sandbox-tests"]),
    ("landlock", &["cambium-jail"]),
    ("oxc_parser", &["cambium-engine"]),
    ("chacha20poly1305", &["cambium-proxy"]),
];

/// What must not be linked, however indirectly, into a crate that is tested
/// without it.
const ABSENT: &[(&str, &[&str])] = &[
    ("cambium-proxy", &["v8", "deno_core", "rmcp", "askama"]),
    ("cambium-engine", &["v8", "deno_core", "rmcp", "askama", "sqlx"]),
    ("cambium-mcp", &["v8", "deno_core", "askama", "sqlx"]),
    ("cambium-console", &["v8", "deno_core", "rmcp", "sqlx"]),
    ("cambium-store", &["v8", "deno_core", "rmcp", "askama"]),
    ("cambium-driver", &["v8", "deno_core", "sqlx", "rmcp"]),
    ("cambium-component", &["v8", "deno_core", "sqlx", "rmcp", "wasmtime"]),
    ("cambium-jail", &["v8", "deno_core", "rustls", "sqlx", "rmcp", "hyper"]),
];

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .other_options(vec!["--locked".into(), "--offline".into()])
        .exec()
        .unwrap()
}

fn direct(package: &Package) -> impl Iterator<Item = &str> {
    let linked = |kind| matches!(kind, DependencyKind::Normal | DependencyKind::Build);
    package.dependencies.iter().filter(move |on| linked(on.kind)).map(|on| on.name.as_str())
}

#[test]
fn our_crates_import_only_whom_they_may() {
    let metadata = metadata();
    let members: BTreeMap<&str, &Package> = metadata
        .workspace_packages()
        .into_iter()
        .map(|member| (member.name.as_str(), member))
        .collect();
    let listed: BTreeSet<&str> =
        ARROWS.iter().map(|row| row.0).chain(EDGES.iter().copied()).collect();
    assert_eq!(members.keys().copied().collect::<BTreeSet<_>>(), listed, "a crate without a row");
    for (name, allowed) in ARROWS {
        for other in direct(members[name]).filter(|other| members.contains_key(other)) {
            assert!(allowed.contains(&other), "{name} may not import {other}");
        }
    }
}

#[test]
fn only_their_owner_names_v8_tls_database_mcp_and_html() {
    let metadata = metadata();
    for member in metadata.workspace_packages() {
        for on in direct(member) {
            let owned = OWNED.iter().find(|(name, _)| *name == on);
            assert!(
                owned.is_none_or(|(_, owners)| owners.contains(&member.name.as_str())),
                "{} may not name {on}",
                member.name
            );
        }
    }
}

#[test]
fn what_is_tested_without_v8_does_not_link_it() {
    let metadata = metadata();
    let nodes: BTreeMap<_, _> =
        metadata.resolve.as_ref().unwrap().nodes.iter().map(|node| (&node.id, node)).collect();
    for (name, absent) in ABSENT {
        let start =
            metadata.workspace_packages().into_iter().find(|member| member.name.as_str() == *name);
        let (mut seen, mut left) = (BTreeSet::new(), VecDeque::from([start.unwrap().id.clone()]));
        while let Some(id) = left.pop_front() {
            let linked = nodes[&id]
                .deps
                .iter()
                .filter(|dep| dep.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal));
            left.extend(linked.map(|dep| dep.pkg.clone()).filter(|id| seen.insert(id.clone())));
        }
        for id in &seen {
            let linked = metadata[id].name.as_str();
            assert!(!absent.contains(&linked), "{name} links {linked}");
        }
    }
}
