//! `cambium init-tool VENDOR NAME`: a folder with a module to start from, its test
//! and the types an editor needs. `cambium check` renews the generated one.

use super::Said;
use crate::failure::Failure;
use cambium_engine::{CONTEXT_TYPES, ToolName, check_module, input_types};
use serde_json::json;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The module, in a tool's folder.
const MODULE: &str = "tool.ts";
/// Its test, beside it, which `cambium dev` reads.
const TEST: &str = "tool.test.json";
/// The generated types, beside it; `cambium check` writes them anew.
pub(crate) const INPUT_TYPES: &str = "input.d.ts";

/// Arguments of `cambium init-tool`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Vendor half of the tool's name
    vendor: String,
    /// The tool's own name
    name: String,
    /// It writes: start from a POST
    #[arg(long)]
    write: bool,
    /// Where to make the folder
    #[arg(long, value_name = "DIR", default_value = ".")]
    path: PathBuf,
}

impl Args {
    /// Makes the folder; never over one that is there.
    pub(crate) fn run(self) -> Result<Said, Failure> {
        let tool = ToolName::new(&self.vendor, &self.name)?;
        let folder = self.path.join(format!("{}__{}", tool.vendor(), tool.name()));
        let failed = |error: &std::io::Error| match error.kind() {
            ErrorKind::AlreadyExists => Failure::new(
                "already_there",
                format!("{} is already there; nothing was changed", folder.display()),
                "choose another name, or edit what is there",
            ),
            _ => Failure::new(
                "file_unwritable",
                format!("{} cannot be made: {error}", folder.display()),
                "name a folder this user can write with --path",
            ),
        };
        DirBuilder::new().create(&folder).map_err(|error| failed(&error))?;
        let (module, test) = if self.write { (WRITE, WRITE_TEST) } else { (READ, READ_TEST) };
        let input = input_types(check_module(module).input_schema.as_ref());
        for (name, text) in [
            (MODULE, module),
            ("cambium.d.ts", CONTEXT_TYPES),
            (INPUT_TYPES, input.as_str()),
            ("tsconfig.json", TSCONFIG),
            (TEST, test),
        ] {
            let mut file = OpenOptions::new();
            let opened = file.write(true).create_new(true).open(folder.join(name));
            let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
            written.map_err(|error| failed(&error))?;
        }
        let module = folder.join(MODULE);
        let text = format!(
            "{} is ready to be edited\nnext: cambium dev {} --vendor {}, with an agent's token in \
             CAMBIUM_TOKEN, checks and dry-runs it at each save",
            module.display(),
            module.display(),
            tool.vendor()
        );
        Ok(Said::new(text, json!({ "folder": folder, "module": module })))
    }
}

/// Writes the generated types of a module that `init-tool` made.
pub(crate) fn renew_types(module: &Path, types: &str) {
    let path = module.with_file_name(INPUT_TYPES);
    // Only a file that is there: elsewhere nobody asked for one. An editor's
    // convenience must not fail a check.
    if module.file_name().is_some_and(|name| name == MODULE) && path.is_file() {
        let _ = std::fs::write(path, types);
    }
}

const TSCONFIG: &str = r#"{
  "compilerOptions": {
    "lib": ["esnext"],
    "module": "esnext",
    "moduleDetection": "force",
    "noEmit": true,
    "noImplicitAny": false,
    "strict": true,
    "target": "esnext",
    "types": []
  },
  "include": ["*.ts"]
}
"#;

/// What is dry-run, and what its answer must hold.
const READ_TEST: &str = r#"{
  "input": { "id": "1" },
  "expect": { "status": "dry_run", "result": { "id": "1" } }
}
"#;

const WRITE_TEST: &str = r#"{
  "input": { "name": "first" },
  "expect": {
    "status": "dry_run",
    "preview": [{ "request": { "method": "POST", "path": "/things", "body": "{\"name\":\"first\"}" } }]
  }
}
"#;

const READ: &str = r#"export const description = "Says in one sentence what it reads, for the model that will call it.";
export const inputSchema = {
  type: "object",
  properties: {
    id: { type: "string", description: "Which one." },
  },
  required: ["id"],
  additionalProperties: false,
} as const;
export const exampleInput = { id: "1" };

export default async function (ctx: Context, input: Input) {
  const res = await ctx.fetch(`/things/${encodeURIComponent(input.id)}`);
  if (!res.ok) return res;
  const { id, name } = await res.json();
  return { id, name };
}
"#;

const WRITE: &str = r#"export const description = "Says in one sentence what it changes, for the model that will call it.";
export const inputSchema = {
  type: "object",
  properties: {
    name: { type: "string", description: "What it is called." },
  },
  required: ["name"],
  additionalProperties: false,
} as const;
export const exampleInput = { name: "first" };

export default async function (ctx: Context, input: Input) {
  const res = await ctx.fetch("/things", { method: "POST", body: { name: input.name } });
  if (!res.ok) return res;
  const { id } = await res.json();
  return { id };
}
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_modules_pass_the_check_with_their_hints_and_example() {
        for (module, read_only) in [(READ, true), (WRITE, false)] {
            let report = check_module(module);
            assert!(report.ok && report.diagnostics.is_empty(), "{:?}", report.diagnostics);
            assert_eq!(report.hints.read_only, read_only);
            assert!(report.example_input.is_some());
        }
    }
}
