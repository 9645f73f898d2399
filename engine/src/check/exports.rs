//! The shape of a tool module: which names it exports, its metadata as literals,
//! and the one function it is. Whether a schema is a good one is asked of
//! `schema`; what the function calls is the business of `calls`.

use super::findings::Findings;
use super::{literal, schema};
use oxc_ast::ast::{
    ArrowFunctionExpression, Declaration, ExportDefaultDeclarationKind, Expression,
    FormalParameters, Function, Program, Statement, VariableDeclarationKind,
};
use oxc_semantic::{Scoping, SymbolId};
use oxc_span::GetSpan;
use serde_json::Value;

/// Longest description, in characters.
const DESCRIPTION_MAX: usize = 500;
/// Longest title, in characters: one line in a client's list.
const TITLE_MAX: usize = 100;

/// What the exports say.
#[derive(Default)]
pub(super) struct Metadata {
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) input_schema: Option<Value>,
    pub(super) output_schema: Option<Value>,
    pub(super) example_input: Option<Value>,
}

/// Reads every export, reporting what is wrong or missing.
pub(super) fn read(
    program: &Program<'_>,
    scoping: &Scoping,
    findings: &mut Findings<'_>,
) -> Metadata {
    let mut metadata = Metadata::default();
    let mut seen_description = false;
    let mut schema_at = None;
    let mut example_at = None;
    let mut default_seen = false;
    for statement in &program.body {
        match statement {
            Statement::ExportDeclaration(export) => match &export.declaration {
                Declaration::VariableDeclaration(variables) if !variables.declare => {
                    if variables.kind != VariableDeclarationKind::Const {
                        findings.error(
                            variables.span.start,
                            "export_not_const",
                            "metadata must be `export const`",
                        );
                    }
                    for variable in &variables.declarations {
                        let offset = variable.span.start;
                        let name = variable.id.get_identifier_name();
                        let name = name.as_ref().map_or("", |name| name.as_str());
                        match name {
                            "description" => seen_description = true,
                            "inputSchema" => schema_at = Some(offset),
                            "exampleInput" => example_at = Some(offset),
                            "title" | "outputSchema" => {}
                            _ => {
                                unknown(findings, offset);
                                continue;
                            }
                        }
                        let Some(init) = &variable.init else {
                            findings.error(
                                offset,
                                "export_not_literal",
                                format!("`{name}` has no value"),
                            );
                            continue;
                        };
                        match literal::value(init) {
                            Ok(value) => keep(&mut metadata, name, value, offset, findings),
                            Err(wrong) => findings.error(
                                wrong.offset,
                                "export_not_literal",
                                format!(
                                    "`{name}` is read without running the module, so it must be a literal: {}",
                                    wrong.reason
                                ),
                            ),
                        }
                    }
                }
                declaration if declaration.is_typescript_syntax() => {}
                declaration => unknown(findings, declaration.span().start),
            },
            Statement::ExportNamedDeclaration(export)
                if export.export_kind.is_value()
                    && export
                        .specifiers
                        .iter()
                        .any(|specifier| specifier.export_kind.is_value()) =>
            {
                unknown(findings, export.span.start);
            }
            Statement::ExportDefaultDeclaration(export) => {
                default_seen = true;
                default_export(&export.declaration, scoping, findings);
            }
            _ => {}
        }
    }
    if !seen_description {
        findings.error(
            0,
            "description_missing",
            "export a description: `export const description = \"What the tool does.\"`",
        );
    }
    if schema_at.is_none() {
        findings.error(
            0,
            "input_schema_missing",
            "export the input's schema: `export const inputSchema = { type: \"object\", … } as const`",
        );
    }
    if !default_seen {
        findings.error(
            0,
            "default_export_missing",
            "export the tool itself: `export default async function (ctx, input) { … }`",
        );
    }
    example(&metadata, schema_at, example_at, findings);
    metadata
}

/// The function a tool is, when the default export is one.
pub(super) enum Entry<'b, 'a> {
    Function(&'b Function<'a>),
    Arrow(&'b ArrowFunctionExpression<'a>),
}

impl<'b, 'a> Entry<'b, 'a> {
    /// Finds it; whether it keeps the rules has been reported already.
    pub(super) fn of(program: &'b Program<'a>) -> Option<Self> {
        program.body.iter().find_map(|statement| match statement {
            Statement::ExportDefaultDeclaration(export) => Self::in_export(&export.declaration),
            _ => None,
        })
    }

    fn in_export(declaration: &'b ExportDefaultDeclarationKind<'a>) -> Option<Self> {
        match declaration {
            ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
                Some(Self::Function(function))
            }
            declaration => match literal::unwrapped(declaration.as_expression()?) {
                Expression::FunctionExpression(function) => Some(Self::Function(function)),
                Expression::ArrowFunctionExpression(arrow) => Some(Self::Arrow(arrow)),
                _ => None,
            },
        }
    }

    pub(super) fn parameters(&self) -> &'b FormalParameters<'a> {
        match self {
            Self::Function(function) => &function.params,
            Self::Arrow(arrow) => &arrow.params,
        }
    }

    fn is_plain_async(&self) -> bool {
        match self {
            Self::Function(function) => {
                function.r#async && !function.generator && function.body.is_some()
            }
            Self::Arrow(arrow) => arrow.r#async,
        }
    }

    /// The name other code of the module can assign to.
    fn symbol(&self) -> Option<SymbolId> {
        match self {
            Self::Function(function) => function.id.as_ref()?.symbol_id.get(),
            Self::Arrow(_) => None,
        }
    }
}

fn default_export(
    declaration: &ExportDefaultDeclarationKind<'_>,
    scoping: &Scoping,
    findings: &mut Findings<'_>,
) {
    if let ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) = declaration {
        return findings.error(
            declaration.span().start,
            "default_export_shape",
            "the default export must be the tool: `async function (ctx, input)`",
        );
    }
    let offset = declaration.span().start;
    let Some(entry) = Entry::in_export(declaration).filter(Entry::is_plain_async) else {
        return findings.error(
            offset,
            "default_export_shape",
            "the default export must be one async function or arrow, written out and not wrapped",
        );
    };
    let parameters = entry.parameters();
    if parameters.rest.is_some() || parameters.items.len() > 2 {
        findings.error(
            offset,
            "default_export_parameters",
            "the function takes two parameters: `(ctx, input)`",
        );
    }
    if let Some(context) = parameters.items.first()
        && (context.initializer.is_some()
            || context.pattern.get_binding_identifier().is_none()
                && !context.pattern.is_destructuring_pattern())
    {
        findings.error(
            context.span.start,
            "default_export_parameters",
            "the context takes no default: it is always given",
        );
    }
    // A declaration's default export is a live binding: assigning to its name
    // would hand the context to a function nobody has read.
    if let Some(symbol) = entry.symbol()
        && scoping.symbol_is_mutated(symbol)
    {
        findings.error(
            offset,
            "default_export_reassigned",
            "the tool's function must not be assigned to",
        );
    }
}

fn keep(
    metadata: &mut Metadata,
    name: &str,
    value: Value,
    offset: u32,
    findings: &mut Findings<'_>,
) {
    match name {
        "description" => {
            metadata.description =
                text(name, value, DESCRIPTION_MAX, "description_invalid", offset, findings);
        }
        "title" => metadata.title = text(name, value, TITLE_MAX, "title_invalid", offset, findings),
        "inputSchema" => {
            if let Err(wrong) =
                schema::normalise_schema(&value).and_then(|plain| schema::schema_validator(&plain))
            {
                findings.error(offset, wrong.code, format!("inputSchema: {}", wrong.message));
            }
            metadata.input_schema = Some(value);
        }
        "outputSchema" => {
            if let Err(wrong) =
                schema::inlined(&value).and_then(|plain| schema::schema_validator(&plain))
            {
                findings.error(offset, wrong.code, format!("outputSchema: {}", wrong.message));
            }
            metadata.output_schema = Some(value);
        }
        _ => metadata.example_input = Some(value),
    }
}

fn text(
    name: &str,
    value: Value,
    most: usize,
    code: &'static str,
    offset: u32,
    findings: &mut Findings<'_>,
) -> Option<String> {
    let length = match &value {
        Value::String(text) if !text.trim().is_empty() => text.chars().count(),
        _ => {
            findings.error(offset, code, format!("`{name}` must be a string that is not blank"));
            return None;
        }
    };
    if length > most {
        findings.error(
            offset,
            code,
            format!("`{name}` is {length} characters, at most {most} are shown"),
        );
        return None;
    }
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

fn example(
    metadata: &Metadata,
    schema_at: Option<u32>,
    example_at: Option<u32>,
    findings: &mut Findings<'_>,
) {
    let (Some(schema), Some(example)) = (&metadata.input_schema, &metadata.example_input) else {
        return;
    };
    let Some(validator) =
        schema::normalise_schema(schema).and_then(|plain| schema::schema_validator(&plain)).ok()
    else {
        return;
    };
    let offset = example_at.or(schema_at).unwrap_or(0);
    for wrong in validator.iter_errors(example).take(10) {
        let path = wrong.instance_path().to_string();
        findings.error(
            offset,
            "example_input_misfit",
            format!("exampleInput does not fit inputSchema at `{path}`: {wrong}"),
        );
    }
}

fn unknown(findings: &mut Findings<'_>, offset: u32) {
    findings.error(
        offset,
        "export_unknown",
        "a tool exports description, inputSchema, outputSchema, exampleInput, title and its \
         default function, each by `export const` or `export default`; do not export this",
    );
}
