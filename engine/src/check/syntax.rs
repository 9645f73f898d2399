//! What a module may not contain whatever it means: TypeScript that does not
//! simply vanish, and every way to load other code. Reads the nodes that scope
//! analysis lists, so it does not recurse.

use super::findings::Findings;
use oxc_allocator::Allocator;
use oxc_ast::AstKind;
use oxc_parser::Parser;
use oxc_semantic::{AstNodes, SemanticBuilder};
use oxc_span::{GetSpan, SourceType};

/// Reports each piece of syntax a tool may not use.
pub(super) fn restrict(nodes: &AstNodes<'_>, findings: &mut Findings<'_>) {
    for node in nodes.iter() {
        let kind = node.kind();
        if let Some((code, message)) = refused(kind) {
            findings.error(kind.span().start, code, message);
        }
    }
}

fn refused(kind: AstKind<'_>) -> Option<(&'static str, &'static str)> {
    Some(match kind {
        AstKind::TSEnumDeclaration(_) => {
            ("syntax_enum", "an enum is not erasable; use a const object `as const`")
        }
        AstKind::TSNamespaceDeclaration(_)
        | AstKind::TSExternalModuleDeclaration(_)
        | AstKind::TSGlobalDeclaration(_) => {
            ("syntax_namespace", "a namespace is not erasable; use plain functions and constants")
        }
        AstKind::Decorator(_) => {
            ("syntax_decorator", "decorators are not erasable; call the function instead")
        }
        AstKind::AccessorProperty(_) => {
            ("syntax_accessor", "`accessor` fields are not supported; write a getter and a setter")
        }
        AstKind::TSImportEqualsDeclaration(_) | AstKind::TSExternalModuleReference(_) => {
            ("syntax_import_equals", "`import =` is not erasable, and a tool imports nothing")
        }
        AstKind::TSExportAssignment(_) | AstKind::TSNamespaceExportDeclaration(_) => {
            ("syntax_export_equals", "use `export default async function (ctx, input)`")
        }
        AstKind::FormalParameter(parameter)
            if parameter.accessibility.is_some() || parameter.readonly || parameter.r#override =>
        {
            (
                "syntax_parameter_property",
                "a parameter property is not erasable; assign the field in the constructor",
            )
        }
        AstKind::JSXElement(_) | AstKind::JSXFragment(_) => {
            ("syntax_jsx", "JSX is not erasable; build the value with plain code")
        }
        AstKind::ExportAllDeclaration(_) | AstKind::ExportFromDeclaration(_) => {
            ("export_from_refused", "a tool re-exports nothing; put what it needs into this file")
        }
        AstKind::ImportExpression(_) => (
            "dynamic_import_refused",
            "`import()` is refused; put what the tool needs into this file",
        ),
        AstKind::ImportMeta(_) => {
            ("import_meta_refused", "`import.meta` is refused; a tool has no address")
        }
        _ => return None,
    })
}

/// Points at each literal that names a host: a tool has no use for one, the
/// connection supplies it. Metadata may name what it likes.
pub(super) fn hosts(nodes: &AstNodes<'_>, findings: &mut Findings<'_>) {
    for node in nodes.iter() {
        let text = match node.kind() {
            AstKind::StringLiteral(literal) => literal.value.as_str(),
            AstKind::TemplateElement(element) => element.value.raw.as_str(),
            _ => continue,
        };
        let named = text.trim_start().split_once("://").is_some_and(|(scheme, host)| {
            !host.is_empty()
                && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        });
        let offset = node.kind().span().start;
        let exported = || {
            nodes
                .ancestor_kinds(node.id())
                .any(|kind| matches!(kind, AstKind::ExportDeclaration(_)))
        };
        if named && !findings.has_error_at(offset) && !exported() {
            findings.advice(
                offset,
                "literal_host",
                "a host is written here; a tool reaches only its connection's hosts, by path",
            );
        }
    }
}

/// Where JSX stands in a source that is no plain TypeScript, so that the
/// diagnostic can name it instead of a stray `<`.
pub(super) fn jsx(source: &str) -> Option<u32> {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, source, SourceType::tsx()).parse();
    if parsed.panicked || !parsed.diagnostics.is_empty() {
        return None;
    }
    let program = allocator.alloc(parsed.program);
    let built = SemanticBuilder::new().with_build_nodes(true).build(program);
    built.semantic.nodes().iter().find_map(|node| match node.kind() {
        kind @ (AstKind::JSXElement(_) | AstKind::JSXFragment(_)) => Some(kind.span().start),
        _ => None,
    })
}
