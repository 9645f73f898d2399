//! What a module may import: whole packages that its connection lists, by a
//! plain `import` declaration, and nothing else. An imported SDK counts as a
//! write on any path (`calls` says so); one that is not handed what binds it to
//! the proxy is refused, because it could only fail.

use super::findings::Findings;
use super::literal;
use oxc_ast::AstKind;
use oxc_ast::ast::{ImportDeclaration, PropertyKey};
use oxc_semantic::{AstNodes, Semantic};

/// Members of the context that bind an SDK to the proxy.
const BINDING: [&str; 2] = ["proxyBase", "proxyKey"];

/// Refuses every import declaration that is not one of a listed package.
pub(super) fn restrict(nodes: &AstNodes<'_>, packages: &[String], findings: &mut Findings<'_>) {
    for node in nodes.iter() {
        let AstKind::ImportDeclaration(import) = node.kind() else { continue };
        let plain = import.with_clause.is_none() && import.phase.is_none();
        if plain && packages.iter().any(|listed| *listed == import.source.value.as_str()) {
            continue;
        }
        let message = match packages {
            [] => "a tool imports nothing; put what it needs into this file".to_owned(),
            _ => format!(
                "a tool imports only, by its plain name, a package its connection lists: {}",
                packages.join(", ")
            ),
        };
        findings.error(import.span.start, "import_refused", message);
    }
}

/// The packages a module imports, in source order, without repeats.
pub(super) fn packages(nodes: &AstNodes<'_>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for import in nodes.iter().filter_map(|node| loads(node.kind())) {
        let name = import.source.value.as_str();
        if !found.iter().any(|known| known == name) {
            found.push(name.to_owned());
        }
    }
    found
}

/// An import that is still there when the module runs.
pub(super) fn loads<'a>(kind: AstKind<'a>) -> Option<&'a ImportDeclaration<'a>> {
    match kind {
        AstKind::ImportDeclaration(import) if import.import_kind.is_value() => Some(import),
        _ => None,
    }
}

/// Refuses an SDK that nothing in the module can have bound.
pub(super) fn bound(semantic: &Semantic<'_>, findings: &mut Findings<'_>) {
    let nodes = semantic.nodes();
    let Some(first) = nodes.iter().find_map(|node| loads(node.kind())) else { return };
    let key = |key: &PropertyKey<'_>| {
        literal::key(key).is_some_and(|name| BINDING.contains(&name.as_str()))
    };
    let named = nodes.iter().any(|node| match node.kind() {
        AstKind::StaticMemberExpression(member) => BINDING.contains(&member.property.name.as_str()),
        AstKind::ComputedMemberExpression(member) => {
            literal::text(&member.expression).is_some_and(|name| BINDING.contains(&name))
        }
        AstKind::BindingProperty(property) => key(&property.key),
        _ => false,
    });
    let fetch = semantic
        .scoping()
        .root_unresolved_references()
        .iter()
        .any(|(name, _)| name.as_str() == "fetch");
    if !named && !fetch {
        findings.error(
            first.span.start,
            "sdk_unbound",
            "an SDK reaches nothing by itself; hand it `ctx.proxyBase` as its base URL, \
             `ctx.proxyKey` as its key, or the global `fetch`",
        );
    }
}
