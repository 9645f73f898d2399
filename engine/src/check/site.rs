//! Reads what one recognised call asks for: its method and host from the init
//! object, its path from the first argument. A value that is not written out
//! where it can be read is `Any`. Rules for the text of a path are in `path`.

use super::findings::Findings;
use super::literal;
use super::path::{self, Part};
use cambium_proxy::{CallSite, MethodPattern, PathPattern};
use oxc_ast::AstKind;
use oxc_ast::ast::{
    BindingPattern, CallExpression, Expression, IdentifierReference, ObjectExpression,
    ObjectPropertyKind, PropertyKind, VariableDeclarator,
};
use oxc_semantic::{NodeId, Semantic, SymbolId};
use oxc_span::GetSpan;
use oxc_syntax::operator::{BinaryOperator, UnaryOperator};
use std::collections::HashSet;

/// Constants that name constants are followed this far.
const CONSTANTS_MAX: usize = 8;
/// Most parts of one path; more is no path a person could read.
const PARTS_MAX: usize = 64;
/// What `init` may hold.
const INIT_KEYS: [&str; 6] = ["method", "headers", "query", "body", "host", "signal"];
/// Methods the proxy never sends.
const METHODS_REFUSED: [&str; 3] = ["CONNECT", "TRACE", "TRACK"];

/// Reads calls with the scopes they stand in.
pub(super) struct Reader<'s, 'a> {
    pub(super) semantic: &'s Semantic<'a>,
    /// Every recognised call: an init object used elsewhere may be changed there.
    pub(super) calls: &'s HashSet<NodeId>,
}

impl<'a> Reader<'_, 'a> {
    /// The site of one call.
    pub(super) fn site(
        &self,
        call: &'a CallExpression<'a>,
        findings: &mut Findings<'_>,
    ) -> CallSite {
        let init = call.arguments.get(1).and_then(|argument| argument.as_expression());
        let (method, host) = match init.map(literal::unwrapped) {
            None => (MethodPattern::Exactly("GET".to_owned()), None),
            Some(Expression::ObjectExpression(init)) => self.init(init, findings),
            Some(Expression::Identifier(name)) => match self.constant_init(name) {
                Some(init) => self.init(init, findings),
                None => (unfollowed(name.span.start, findings), None),
            },
            Some(other) => (unfollowed(other.span().start, findings), None),
        };
        CallSite { method, host, path: self.path(call, findings) }
    }

    fn init(
        &self,
        init: &'a ObjectExpression<'a>,
        findings: &mut Findings<'_>,
    ) -> (MethodPattern, Option<String>) {
        let mut method = None;
        let mut host = None;
        let mut body = None;
        let mut followed = true;
        for property in &init.properties {
            let ObjectPropertyKind::ObjectProperty(property) = property else {
                followed = false;
                continue;
            };
            let offset = property.span.start;
            let key = if property.computed { None } else { literal::key(&property.key) };
            // An accessor may answer otherwise the second time it is asked.
            let Some(key) = key.filter(|_| property.kind == PropertyKind::Init) else {
                followed = false;
                continue;
            };
            match key.as_str() {
                "method" => {
                    // The last of two wins at run time; twice is not readable.
                    followed &= method.is_none();
                    method = Some((offset, literal::text(&property.value)));
                }
                "host" => match literal::text(&property.value) {
                    Some(label) if host.is_none() => host = Some(label.to_owned()),
                    _ => findings.error(
                        offset,
                        "host_not_literal",
                        "`host` must be the label of one of the connection's hosts, written as a literal once",
                    ),
                },
                "body" => body = Some(offset),
                key if INIT_KEYS.contains(&key) => {}
                // A prototype could carry a method; it is not an own property,
                // but no reader should have to know that.
                "__proto__" => followed = false,
                key => findings.advice(
                    offset,
                    "init_key_unknown",
                    format!("`{key}` is not read; init holds method, headers, query, body, host and signal"),
                ),
            }
        }
        if !followed {
            return (unfollowed(init.span.start, findings), host);
        }
        let method = match method {
            None => MethodPattern::Exactly("GET".to_owned()),
            Some((offset, Some(text))) => exactly(text, offset, findings),
            Some((offset, None)) => unfollowed(offset, findings),
        };
        if let (MethodPattern::Exactly(name), Some(offset)) = (&method, body)
            && matches!(name.as_str(), "GET" | "HEAD")
        {
            findings.advice(
                offset,
                "body_on_read",
                format!("the proxy refuses a {name} with a body; use `query`, or another method"),
            );
        }
        (method, host)
    }

    /// The object a constant holds, when it can only be what was written: every
    /// use is the init of a recognised call, so nothing changes it in between.
    fn constant_init(&self, name: &IdentifierReference<'a>) -> Option<&'a ObjectExpression<'a>> {
        let (symbol, variable) = self.constant(name)?;
        let nodes = self.semantic.nodes();
        let only_calls = self.semantic.symbol_references(symbol).all(|reference| {
            let node = reference.node_id();
            let span = nodes.kind(node).span();
            match nodes.parent_kind(node) {
                AstKind::CallExpression(call) => {
                    self.calls.contains(&call.node_id.get())
                        && call.arguments.get(1).is_some_and(|second| second.span() == span)
                }
                _ => false,
            }
        });
        match variable.init.as_ref().map(literal::unwrapped) {
            Some(Expression::ObjectExpression(init)) if only_calls => Some(init),
            _ => None,
        }
    }

    /// The declaration of a variable that is never assigned again.
    fn constant(
        &self,
        name: &IdentifierReference<'a>,
    ) -> Option<(SymbolId, &'a VariableDeclarator<'a>)> {
        let scoping = self.semantic.scoping();
        let symbol = scoping.get_reference(name.reference_id.get()?).symbol_id()?;
        if scoping.symbol_is_mutated(symbol) || !scoping.symbol_redeclarations(symbol).is_empty() {
            return None;
        }
        match self.semantic.symbol_declaration(symbol).kind() {
            AstKind::VariableDeclarator(variable) => match &variable.id {
                BindingPattern::BindingIdentifier(bound)
                    if bound.symbol_id.get() == Some(symbol) =>
                {
                    Some((symbol, variable))
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn path(&self, call: &'a CallExpression<'a>, findings: &mut Findings<'_>) -> PathPattern {
        let Some(argument) = call.arguments.first().and_then(|first| first.as_expression()) else {
            findings.error(
                call.span.start,
                "path_not_relative",
                "`ctx.fetch` needs a path that starts with one `/`",
            );
            return PathPattern::Any;
        };
        let mut parts = Vec::new();
        self.parts(argument, 0, &mut parts);
        match path::template(&parts) {
            Ok(PathPattern::Any) => {
                findings.advice(
                    argument.span().start,
                    "path_not_followed",
                    "the path cannot be read here, so the tool may ask for any path; write it as one \
                     template and wrap each value in encodeURIComponent",
                );
                PathPattern::Any
            }
            Ok(template) => template,
            Err(fault) => {
                findings.error(argument.span().start, fault.code, fault.message);
                PathPattern::Any
            }
        }
    }

    /// The text and holes an expression makes, left to right.
    fn parts(&self, expression: &'a Expression<'a>, constants: usize, parts: &mut Vec<Part>) {
        if parts.len() >= PARTS_MAX {
            return parts.push(Part::Open);
        }
        let expression = literal::unwrapped(expression);
        if let Some(text) = literal::text(expression) {
            return parts.push(Part::Text(text.to_owned()));
        }
        match expression {
            Expression::TemplateLiteral(template) => {
                for (index, quasi) in template.quasis.iter().enumerate() {
                    match quasi.value.cooked.filter(|_| !quasi.lone_surrogates) {
                        Some(text) => parts.push(Part::Text(text.to_string())),
                        None => parts.push(Part::Open),
                    }
                    if let Some(hole) = template.expressions.get(index) {
                        self.parts(hole, constants, parts);
                    }
                }
            }
            // Only the left spine: the right side of `+` may itself add numbers,
            // and a sum that does not begin with text may too.
            Expression::BinaryExpression(sum) if sum.operator == BinaryOperator::Addition => {
                let before = parts.len();
                self.parts(&sum.left, constants, parts);
                if parts[before..].iter().any(|part| matches!(part, Part::Text(_))) {
                    self.parts(&sum.right, constants, parts);
                } else {
                    parts.push(Part::Open);
                }
            }
            Expression::Identifier(name) if constants < CONSTANTS_MAX => {
                match self.constant(name).and_then(|(_, variable)| variable.init.as_ref()) {
                    Some(init) => self.parts(init, constants + 1, parts),
                    None => parts.push(Part::Open),
                }
            }
            other if self.stays_in_segment(other) => parts.push(Part::Segment),
            _ => parts.push(Part::Open),
        }
    }

    /// Whether what an expression prints cannot hold `/`, `?` or `#`: it is
    /// percent-encoded, a number, or one of some harmless words.
    fn stays_in_segment(&self, expression: &Expression<'a>) -> bool {
        match literal::unwrapped(expression) {
            Expression::NumericLiteral(_) | Expression::BigIntLiteral(_) => true,
            Expression::CallExpression(call) => match literal::unwrapped(&call.callee) {
                Expression::Identifier(name) => {
                    matches!(
                        name.name.as_str(),
                        "encodeURIComponent" | "Number" | "parseInt" | "parseFloat" | "BigInt"
                    ) && self.is_untouched_global(name)
                }
                Expression::StaticMemberExpression(member) => match &member.object {
                    Expression::Identifier(name) => {
                        name.name.as_str() == "Math" && self.is_untouched_global(name)
                    }
                    _ => false,
                },
                _ => false,
            },
            Expression::UnaryExpression(unary) => matches!(
                unary.operator,
                UnaryOperator::UnaryPlus | UnaryOperator::UnaryNegation | UnaryOperator::BitwiseNot
            ),
            Expression::BinaryExpression(binary) => {
                binary.operator.is_arithmetic() && binary.operator != BinaryOperator::Addition
                    || binary.operator.is_bitwise()
            }
            Expression::ConditionalExpression(choice) => {
                self.is_harmless(&choice.consequent) && self.is_harmless(&choice.alternate)
            }
            Expression::LogicalExpression(choice) => {
                self.stays_in_segment(&choice.left) && self.is_harmless(&choice.right)
            }
            _ => false,
        }
    }

    fn is_harmless(&self, expression: &Expression<'a>) -> bool {
        match literal::text(expression) {
            Some(word) => path::is_word(word),
            None => self.stays_in_segment(expression),
        }
    }

    /// The global of that name, which the module neither shadows nor replaces.
    fn is_untouched_global(&self, name: &IdentifierReference<'a>) -> bool {
        let scoping = self.semantic.scoping();
        let unresolved = name
            .reference_id
            .get()
            .is_some_and(|id| scoping.get_reference(id).symbol_id().is_none());
        unresolved
            && scoping.root_unresolved_references().iter().all(|(other, references)| {
                other.as_str() != name.name.as_str()
                    || references.iter().all(|id| !scoping.get_reference(*id).is_write())
            })
    }
}

fn unfollowed(offset: u32, findings: &mut Findings<'_>) -> MethodPattern {
    findings.advice(
        offset,
        "method_not_followed",
        "the method cannot be read here, so the call counts as a write; write \
         `{ method: \"GET\", … }` as a literal in the call",
    );
    MethodPattern::Any
}

fn exactly(text: &str, offset: u32, findings: &mut Findings<'_>) -> MethodPattern {
    let upper = text.to_ascii_uppercase();
    let token = !text.is_empty()
        && text.len() <= 32
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
    if !token || METHODS_REFUSED.contains(&upper.as_str()) {
        findings.error(
            offset,
            "method_invalid",
            format!(
                "`{}` is no method the proxy sends",
                text.escape_debug().take(40).collect::<String>()
            ),
        );
        return MethodPattern::Any;
    }
    if upper != text
        && !["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"].contains(&upper.as_str())
    {
        findings.error(
            offset,
            "method_invalid",
            format!("write `{upper}` in upper case; it is not upper-cased for you"),
        );
    }
    MethodPattern::Exactly(upper)
}
