//! Finds every place where a module can reach the vendor, by following the
//! context parameter's own symbol through the scope analysis. A use that is
//! followed is a call; **any other use whatever** is one whole unknown call, so
//! that what this file does not think of is a write, never a read. What a call
//! asks for is read in `site`.

use super::exports::Entry;
use super::findings::Findings;
use super::imports;
use super::literal;
use super::site::Reader;
use cambium_proxy::{CallSite, MethodPattern, PathPattern};
use oxc_ast::AstKind;
use oxc_ast::ast::{BindingPattern, CallExpression, ObjectPattern, Program, PropertyKey};
use oxc_semantic::{NodeId, Reference, Semantic, SymbolId};
use oxc_span::GetSpan;
use std::collections::HashSet;

/// Globals through which code reaches the global `fetch`, or code that no one
/// has read. `arguments` holds the context of the function around it.
const REACHING: [&str; 8] =
    ["fetch", "globalThis", "self", "window", "global", "eval", "Function", "arguments"];
/// A callback of a timer has the global object as its `this`, so these names on
/// `this` reach it or lead back to it.
const REACHING_MEMBERS: [&str; 10] = [
    "fetch",
    "globalThis",
    "self",
    "window",
    "global",
    "eval",
    "Function",
    "constructor",
    "valueOf",
    "__proto__",
];

/// The call sites of a module, in source order, without repeats.
pub(super) fn derive<'a>(
    program: &'a Program<'a>,
    semantic: &Semantic<'a>,
    findings: &mut Findings<'_>,
) -> Vec<CallSite> {
    let mut walk = Walk { semantic, uses: Vec::new(), pending: Vec::new(), seen: HashSet::new() };
    if let Some(entry) = Entry::of(program) {
        walk.entry(&entry);
    }
    walk.globals();
    walk.nodes();
    walk.uses.sort_by_key(|(offset, _)| *offset);

    let calls: HashSet<NodeId> = walk.uses.iter().filter_map(|(_, used)| used.call()).collect();
    let reader = Reader { semantic, calls: &calls };
    let mut sites = Vec::new();
    for (offset, used) in &walk.uses {
        let site = match used {
            Use::Call(call) => {
                if walk.repeats(call) {
                    findings.advice(
                        *offset,
                        "call_in_loop",
                        "this call may run many times; a run may send 16 requests, so page with care",
                    );
                }
                reader.site(call, findings)
            }
            Use::Unknown(code, message) => {
                // What is refused needs no advice besides.
                if !findings.has_error_at(*offset) {
                    findings.advice(*offset, code, *message);
                }
                CallSite { method: MethodPattern::Any, host: None, path: PathPattern::Any }
            }
        };
        if !sites.contains(&site) {
            sites.push(site);
        }
    }
    if calls.len() > 1 {
        findings.advice(
            walk.uses.iter().find(|(_, used)| used.call().is_some()).map_or(0, |(at, _)| *at),
            "several_calls",
            "this tool calls the vendor in several places; a person approves all of them at once",
        );
    }
    sites
}

enum Use<'a> {
    Call(&'a CallExpression<'a>),
    Unknown(&'static str, &'static str),
}

impl Use<'_> {
    fn call(&self) -> Option<NodeId> {
        match self {
            Self::Call(call) => Some(call.node_id.get()),
            Self::Unknown(..) => None,
        }
    }
}

/// What a followed symbol holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Held {
    Context(SymbolId),
    Fetch(SymbolId),
}

struct Walk<'s, 'a> {
    semantic: &'s Semantic<'a>,
    uses: Vec<(u32, Use<'a>)>,
    pending: Vec<Held>,
    seen: HashSet<Held>,
}

impl<'a> Walk<'_, 'a> {
    fn entry(&mut self, entry: &Entry<'_, 'a>) {
        let Some(context) = entry.parameters().items.first() else { return };
        if context.initializer.is_some() {
            self.escapes(context.span.start);
        }
        self.bind(&context.pattern, context.span.start);
        while let Some(held) = self.pending.pop() {
            if self.seen.insert(held) {
                self.follow(held);
            }
        }
    }

    /// The context bound to a pattern.
    fn bind(&mut self, pattern: &BindingPattern<'a>, offset: u32) {
        match pattern {
            BindingPattern::BindingIdentifier(name) => match name.symbol_id.get() {
                Some(symbol) => self.pending.push(Held::Context(symbol)),
                None => self.escapes(offset),
            },
            BindingPattern::ObjectPattern(pattern) => self.open(pattern),
            BindingPattern::ArrayPattern(_) | BindingPattern::AssignmentPattern(_) => {
                self.escapes(offset);
            }
        }
    }

    /// The context taken apart.
    fn open(&mut self, pattern: &ObjectPattern<'a>) {
        for property in &pattern.properties {
            let offset = property.span.start;
            let member = match &property.key {
                key if !property.computed => literal::key(key),
                key => key.as_expression().and_then(literal::text).map(str::to_owned),
            };
            match (member.as_deref(), &property.value) {
                (Some("fetch"), BindingPattern::BindingIdentifier(name)) => {
                    match name.symbol_id.get() {
                        Some(symbol) => self.pending.push(Held::Fetch(symbol)),
                        None => self.escapes(offset),
                    }
                }
                (Some("fetch"), _) => self.escapes(offset),
                (member, _) => self.member(member, offset),
            }
        }
        if let Some(rest) = &pattern.rest {
            self.escapes(rest.span.start);
        }
    }

    /// A member of the context that is not `fetch`.
    fn member(&mut self, member: Option<&str>, offset: u32) {
        match member {
            // Plain text about the connection; nothing in it can send.
            Some("connection") => {}
            Some("proxyBase" | "proxyKey") => self.sdk(offset),
            _ => self.escapes(offset),
        }
    }

    fn follow(&mut self, held: Held) {
        let (Held::Context(symbol) | Held::Fetch(symbol)) = held;
        let scoping = self.semantic.scoping();
        if scoping.symbol_is_mutated(symbol) || !scoping.symbol_redeclarations(symbol).is_empty() {
            self.escapes(scoping.symbol_span(symbol).start);
        }
        let references: Vec<NodeId> = self
            .semantic
            .symbol_references(symbol)
            .filter(|reference| self.is_value(reference))
            .map(Reference::node_id)
            .collect();
        for node in references {
            match held {
                Held::Context(_) => self.context(node),
                Held::Fetch(_) => self.fetch(node),
            }
        }
    }

    /// One use of the context itself.
    fn context(&mut self, node: NodeId) {
        let nodes = self.semantic.nodes();
        let (child, parent) = self.outside(node);
        let span = nodes.kind(child).span();
        match nodes.kind(parent) {
            AstKind::StaticMemberExpression(member) => match member.property.name.as_str() {
                "fetch" => self.fetch(parent),
                name => self.member(Some(name), span.start),
            },
            AstKind::ComputedMemberExpression(member) if member.object.span() == span => {
                match literal::text(&member.expression) {
                    Some("fetch") => self.fetch(parent),
                    name => self.member(name, span.start),
                }
            }
            AstKind::VariableDeclarator(variable) if self.is_plain_variable(parent) => {
                self.bind(&variable.id, span.start);
            }
            _ => self.escapes(span.start),
        }
    }

    /// One use of `ctx.fetch`, by whatever name.
    fn fetch(&mut self, node: NodeId) {
        let nodes = self.semantic.nodes();
        let (child, parent) = self.outside(node);
        let span = nodes.kind(child).span();
        match nodes.kind(parent) {
            AstKind::CallExpression(call)
                if call.callee.span() == span
                    && !call.arguments.iter().take(2).any(oxc_ast::ast::Argument::is_spread) =>
            {
                self.uses.push((call.span.start, Use::Call(call)));
            }
            AstKind::VariableDeclarator(variable) if self.is_plain_variable(parent) => {
                match variable.id.get_binding_identifier().and_then(|name| name.symbol_id.get()) {
                    Some(symbol) if !variable.id.is_destructuring_pattern() => {
                        self.pending.push(Held::Fetch(symbol));
                    }
                    _ => self.escapes(span.start),
                }
            }
            _ => self.escapes(span.start),
        }
    }

    /// Globals that reach further than the context does.
    fn globals(&mut self) {
        let scoping = self.semantic.scoping();
        for (name, references) in scoping.root_unresolved_references() {
            if !REACHING.contains(&name.as_str()) {
                continue;
            }
            for reference in references {
                let reference = scoping.get_reference(*reference);
                if !self.is_value(reference) {
                    continue;
                }
                let offset = self.semantic.nodes().kind(reference.node_id()).span().start;
                if name.as_str() == "fetch" {
                    self.sdk(offset);
                } else {
                    self.uses.push((offset, Use::Unknown("global_not_followed", GLOBAL)));
                }
            }
        }
    }

    /// `this` and `constructor`, which reach the global object and `Function`.
    fn nodes(&mut self) {
        let nodes = self.semantic.nodes();
        for node in nodes.iter() {
            let kind = node.kind();
            if let Some(import) = imports::loads(kind) {
                self.sdk(import.span.start);
            }
            let reaches = match kind {
                AstKind::ThisExpression(_) => {
                    let (_, parent) = self.outside(node.id());
                    !matches!(
                        nodes.kind(parent),
                        AstKind::StaticMemberExpression(member)
                            if !REACHING_MEMBERS.contains(&member.property.name.as_str())
                    )
                }
                AstKind::StaticMemberExpression(member) => {
                    member.property.name.as_str() == "constructor"
                }
                AstKind::ComputedMemberExpression(member) => {
                    literal::text(&member.expression) == Some("constructor")
                }
                AstKind::BindingProperty(property) => names_constructor(&property.key),
                AstKind::AssignmentTargetPropertyProperty(property) => {
                    names_constructor(&property.name)
                }
                AstKind::AssignmentTargetPropertyIdentifier(property) => {
                    property.binding.name.as_str() == "constructor"
                }
                _ => false,
            };
            if reaches {
                self.uses.push((kind.span().start, Use::Unknown("global_not_followed", GLOBAL)));
            }
        }
    }

    /// Whether a call can run more than once: in a loop, or in a function that
    /// is handed to another call.
    fn repeats(&self, call: &CallExpression<'a>) -> bool {
        let nodes = self.semantic.nodes();
        let mut function = false;
        for ancestor in nodes.ancestor_kinds(call.node_id.get()) {
            match ancestor {
                AstKind::ForStatement(_)
                | AstKind::ForInStatement(_)
                | AstKind::ForOfStatement(_)
                | AstKind::WhileStatement(_)
                | AstKind::DoWhileStatement(_) => return true,
                AstKind::CallExpression(_) if function => return true,
                AstKind::ArrowFunctionExpression(_) | AstKind::Function(_) => function = true,
                AstKind::FunctionBody(_) | AstKind::ParenthesizedExpression(_) => {}
                _ => function = false,
            }
        }
        false
    }

    /// The nearest parent that is not mere wrapping, and the child it sees.
    fn outside(&self, node: NodeId) -> (NodeId, NodeId) {
        let nodes = self.semantic.nodes();
        let mut child = node;
        let mut parent = nodes.parent_id(node);
        while matches!(
            nodes.kind(parent),
            AstKind::ParenthesizedExpression(_)
                | AstKind::ChainExpression(_)
                | AstKind::TSAsExpression(_)
                | AstKind::TSSatisfiesExpression(_)
                | AstKind::TSTypeAssertion(_)
                | AstKind::TSNonNullExpression(_)
        ) {
            child = parent;
            parent = nodes.parent_id(child);
        }
        (child, parent)
    }

    /// `const`, `let` or `var`; that it is never assigned again is looked at
    /// when its symbol is followed.
    fn is_plain_variable(&self, declarator: NodeId) -> bool {
        matches!(
            self.semantic.nodes().parent_kind(declarator),
            AstKind::VariableDeclaration(declaration) if !declaration.kind.is_using()
        )
    }

    /// False for a use in a type, which is gone when the module runs.
    fn is_value(&self, reference: &Reference) -> bool {
        let in_type = matches!(
            self.semantic.nodes().parent_kind(reference.node_id()),
            AstKind::TSTypeQuery(_)
        );
        reference.is_value() && !in_type
    }

    fn escapes(&mut self, offset: u32) {
        self.uses.push((offset, Use::Unknown("context_not_followed", ESCAPES)));
    }

    fn sdk(&mut self, offset: u32) {
        self.uses.push((offset, Use::Unknown("sdk_call", SDK)));
    }
}

const ESCAPES: &str = "the context goes where the check cannot follow, so the tool counts as a \
     write on any path; call `ctx.fetch(path, init)` directly";
const SDK: &str = "a call through the global `fetch` or an SDK counts as a write on any path; call \
     `ctx.fetch(path, init)` directly";
const GLOBAL: &str = "this can reach the global object, the arguments or code nobody has read, so \
     the tool counts as a write on any path; name what you need directly";

fn names_constructor(key: &PropertyKey<'_>) -> bool {
    literal::key(key).as_deref() == Some("constructor")
        || key.as_expression().and_then(literal::text) == Some("constructor")
}
