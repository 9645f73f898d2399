//! Reads a JSON value off the syntax tree, without running anything. What is
//! not a literal is a fault that names itself.

use oxc_ast::ast::{
    ArrayExpression, ArrayExpressionElement, Expression, ObjectExpression, ObjectPropertyKind,
    PropertyKey, PropertyKind,
};
use oxc_span::GetSpan;
use oxc_syntax::operator::UnaryOperator;
use serde_json::{Map, Number, Value};

/// Deepest literal; schemas nest two levels a property.
const DEPTH_MAX: usize = 64;
/// Largest integer a JavaScript number holds exactly.
const EXACT_MAX: f64 = 9_007_199_254_740_991.0;

/// Why an expression is not a literal.
pub(super) struct NotLiteral {
    pub(super) offset: u32,
    pub(super) reason: &'static str,
}

/// The value an expression is.
pub(super) fn value(expression: &Expression<'_>) -> Result<Value, NotLiteral> {
    read(expression, 0)
}

/// The string an expression is, when it is a string literal or a template
/// without holes, whole in UTF-8.
pub(super) fn text<'a>(expression: &Expression<'a>) -> Option<&'a str> {
    match unwrapped(expression) {
        Expression::StringLiteral(text) if !text.lone_surrogates => Some(text.value.as_str()),
        Expression::TemplateLiteral(template) if template.expressions.is_empty() => {
            let quasi = template.quasis.first()?;
            if quasi.lone_surrogates { None } else { quasi.value.cooked.map(|text| text.as_str()) }
        }
        _ => None,
    }
}

/// Without parentheses and the TypeScript that vanishes.
pub(super) fn unwrapped<'b, 'a>(expression: &'b Expression<'a>) -> &'b Expression<'a> {
    let mut inner = expression;
    loop {
        inner = match inner {
            Expression::ParenthesizedExpression(wrapped) => &wrapped.expression,
            Expression::TSAsExpression(wrapped) => &wrapped.expression,
            Expression::TSSatisfiesExpression(wrapped) => &wrapped.expression,
            Expression::TSTypeAssertion(wrapped) => &wrapped.expression,
            Expression::TSNonNullExpression(wrapped) => &wrapped.expression,
            _ => return inner,
        };
    }
}

fn read(expression: &Expression<'_>, depth: usize) -> Result<Value, NotLiteral> {
    let offset = expression.span().start;
    let fault = |reason| Err(NotLiteral { offset, reason });
    if depth > DEPTH_MAX {
        return fault("it nests deeper than 64 levels");
    }
    match unwrapped(expression) {
        Expression::BooleanLiteral(literal) => Ok(Value::Bool(literal.value)),
        Expression::NullLiteral(_) => Ok(Value::Null),
        Expression::NumericLiteral(literal) => number(literal.value, offset),
        Expression::UnaryExpression(unary) if unary.operator == UnaryOperator::UnaryNegation => {
            match unwrapped(&unary.argument) {
                Expression::NumericLiteral(literal) => number(-literal.value, offset),
                _ => fault("only a number may carry a minus"),
            }
        }
        inner @ (Expression::StringLiteral(_) | Expression::TemplateLiteral(_)) => {
            match text(inner) {
                Some(text) => Ok(Value::String(text.to_owned())),
                None => fault("a template may hold no expression, and a string no lone surrogate"),
            }
        }
        Expression::ArrayExpression(array) => elements(array, depth),
        Expression::ObjectExpression(object) => properties(object, depth),
        _ => fault("only strings, numbers, booleans, null, arrays and objects can be read"),
    }
}

fn number(value: f64, offset: u32) -> Result<Value, NotLiteral> {
    if value.fract() == 0.0 && value.abs() <= EXACT_MAX {
        #[allow(clippy::cast_possible_truncation)] // whole and within 53 bits
        return Ok(Value::from(value as i64));
    }
    Number::from_f64(value)
        .map(Value::Number)
        .ok_or(NotLiteral { offset, reason: "the number is too large" })
}

fn elements(array: &ArrayExpression<'_>, depth: usize) -> Result<Value, NotLiteral> {
    let mut values = Vec::with_capacity(array.elements.len());
    for element in &array.elements {
        let offset = element.span().start;
        match element {
            ArrayExpressionElement::SpreadElement(_) => {
                return Err(NotLiteral { offset, reason: "a spread is not a literal" });
            }
            ArrayExpressionElement::Elision(_) => {
                return Err(NotLiteral { offset, reason: "an array may have no holes" });
            }
            element => match element.as_expression() {
                Some(expression) => values.push(read(expression, depth + 1)?),
                None => return Err(NotLiteral { offset, reason: "it is not a literal" }),
            },
        }
    }
    Ok(Value::Array(values))
}

fn properties(object: &ObjectExpression<'_>, depth: usize) -> Result<Value, NotLiteral> {
    let mut map = Map::with_capacity(object.properties.len());
    for property in &object.properties {
        let offset = property.span().start;
        let fault = |reason| Err(NotLiteral { offset, reason });
        let ObjectPropertyKind::ObjectProperty(property) = property else {
            return fault("a spread is not a literal");
        };
        if property.kind != PropertyKind::Init || property.method {
            return fault("a method or accessor is not a literal");
        }
        if property.computed || property.shorthand {
            return fault("a computed or shorthand property is not a literal");
        }
        let Some(key) = key(&property.key) else {
            return fault("a property's name must be a word, a string or a whole number");
        };
        // In a literal this name sets the prototype and makes no property.
        if key == "__proto__" {
            return fault("`__proto__` cannot be a property of a literal");
        }
        let value = read(&property.value, depth + 1)?;
        if map.insert(key, value).is_some() {
            return fault("a property is given twice");
        }
    }
    Ok(Value::Object(map))
}

/// The name of a property that is not computed.
pub(super) fn key(key: &PropertyKey<'_>) -> Option<String> {
    match key {
        PropertyKey::StaticIdentifier(name) => Some(name.name.to_string()),
        PropertyKey::StringLiteral(text) if !text.lone_surrogates => Some(text.value.to_string()),
        PropertyKey::NumericLiteral(number)
            if number.value.fract() == 0.0 && (0.0..=EXACT_MAX).contains(&number.value) =>
        {
            Some(format!("{:.0}", number.value))
        }
        _ => None,
    }
}
