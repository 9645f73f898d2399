//! Strips the types of a module that passed the syntax rules and prints the
//! JavaScript that runs. No lowering: the engine's V8 runs today's language.
//! Whether a module may be emitted is decided by the caller.

use oxc_allocator::Allocator;
use oxc_codegen::{Codegen, CodegenOptions, CommentOptions};
use oxc_parser::Parser;
use oxc_semantic::SemanticBuilder;
use oxc_span::SourceType;
use oxc_transformer::{TransformOptions, Transformer};
use std::path::Path;

/// The module without its types and comments; the error is a sentence.
pub(super) fn javascript(source: &str) -> Result<String, String> {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, source, SourceType::ts()).parse();
    if parsed.panicked || !parsed.diagnostics.is_empty() {
        return Err("the module does not parse".to_owned());
    }
    let mut program = parsed.program;
    let scoping = SemanticBuilder::new_compiler().build(&program).semantic.into_scoping();
    // An import runs code whether its names are used or not: only what says
    // that it is a type goes.
    let mut options = TransformOptions::default();
    options.typescript.only_remove_type_imports = true;
    let transformed = Transformer::new(&allocator, Path::new("tool.ts"), &options)
        .build_with_scoping(scoping, &mut program);
    if let Some(first) = transformed.diagnostics.first() {
        return Err(first.message.to_string());
    }
    let options = CodegenOptions { comments: CommentOptions::disabled(), ..Default::default() };
    Ok(Codegen::new().with_options(options).build(&program).code)
}
