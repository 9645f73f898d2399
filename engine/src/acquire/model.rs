//! The second author: a model a person configured. It is asked for a module,
//! told what the check or the dry run said, and asked again, until one holds or
//! its budget of tries and tokens is used up. The budget is stored before each
//! question, so that a restart gives none back.

use super::trial::{Failing, shape};
use super::{Author, OWN_PEN, Short, Turn, Work, failed};
use crate::{CONTEXT_TYPES, Published, ToolName};
use std::fmt::Write as _;
use std::time::Duration;

/// How long one answer may take: a client of its own may give up sooner.
const ASK_DEADLINE: Duration = Duration::from_secs(10 * 60);
/// Longest answer that is read, bytes.
const ANSWER_BYTES: usize = 256 * 1024;
/// Findings of the check that are told.
const TOLD_MAX: usize = 20;
/// Pause after a question nobody answered, times the tries so far.
const PAUSE: Duration = Duration::from_millis(500);

/// What a model is told before anything else.
const RULES: &str = "\
You write one tool: a TypeScript module that makes one call to one vendor. Answer with one fenced code \
block and nothing else. Its first line is `// name: <kebab-case name>`, such as `// name: list-open-orders`.

The module exports literals `description` (one sentence, at most 500 characters), `inputSchema` (JSON Schema \
with root type object, additionalProperties false, only what the goal needs) and `exampleInput` (an input \
that fits), and a default async function (ctx: Context, input: Input). It imports nothing and names no host \
and no credential: `ctx.fetch(path, init)` takes a path that starts with one `/` and adds both. Write the \
method as a literal and the path as one template literal with each value in encodeURIComponent(...). Return \
`res` when `!res.ok`, else the few fields the goal asks for. No pagination, no loop of requests.

The types the module sees:

";

impl Work<'_> {
    /// Asks until a module holds.
    pub(super) async fn by_model(&mut self, model: &dyn Author) -> Result<Published, Short> {
        let budget = self.engine.parts.authors.budget;
        let system = format!("{RULES}{CONTEXT_TYPES}");
        let mut turns = vec![Turn { by_model: false, text: self.question() }];
        let mut last = None;
        loop {
            if self.row.attempts >= budget.attempts {
                let said = format!("the model had {} tries and none held", budget.attempts);
                return Err(self.gave_up("author_gave_up", said, last));
            }
            if self.row.tokens >= budget.tokens {
                let said =
                    format!("the model used {} tokens of {}", self.row.tokens, budget.tokens);
                return Err(self.gave_up("author_over_budget", said, last));
            }
            self.engine.may_author(&self.row).await?;
            self.row.attempts += 1;
            self.engine.parts.store.update_author_job(&self.row).await?;
            self.line(&format!("try {} of {}", self.row.attempts, budget.attempts)).await;
            let asked = tokio::time::timeout(ASK_DEADLINE, model.ask(&system, &turns)).await;
            let said = match asked {
                Ok(Ok(said)) => said,
                Ok(Err(reason)) => {
                    self.line(&format!("the model did not answer: {reason}")).await;
                    tokio::time::sleep(PAUSE * self.row.attempts.min(10)).await;
                    continue;
                }
                Err(_) => continue,
            };
            self.row.tokens = self.row.tokens.saturating_add(said.tokens);
            self.engine.parts.store.update_author_job(&self.row).await?;
            let told = match self.held(&said.text).await? {
                Ok(published) => return Ok(published),
                Err((told, source)) => {
                    last = source.or(last);
                    told
                }
            };
            // Only the last answer is shown again: a conversation of all would
            // spend the budget on what did not work.
            turns.truncate(1);
            turns.push(Turn { by_model: true, text: said.text });
            turns.push(Turn { by_model: false, text: told });
        }
    }

    /// Publishes what an answer holds; else what to tell the model, with the module.
    #[allow(clippy::type_complexity)]
    async fn held(
        &self,
        answer: &str,
    ) -> Result<Result<Published, (String, Option<String>)>, Short> {
        let (name, source) = match module_of(answer) {
            Ok(found) => found,
            Err(told) => {
                self.line("its answer holds no module").await;
                return Ok(Err((told.to_owned(), None)));
            }
        };
        let tool = match ToolName::new(&self.connection.vendor, &name) {
            Ok(tool) => self.free(tool, &source).await?,
            Err(error) => {
                self.line("its name is none").await;
                return Ok(Err((format!("{error}. Choose another name."), Some(source))));
            }
        };
        let input = self.hints.example_input.clone();
        let told = match self.try_module(&tool, &source, input).await {
            Ok(published) => return Ok(Ok(published)),
            Err(Failing::Check(found)) => {
                let mut told = String::from("The module does not pass the check:\n");
                for found in found.iter().take(TOLD_MAX) {
                    let _ = writeln!(told, "- {}\n  {}", found.summary(), found.text);
                }
                self.line(&format!("{} findings of the check", found.len())).await;
                told
            }
            Err(Failing::Trial(reason)) => {
                self.line(&format!("its dry run failed: {reason}")).await;
                format!("The module passes the check, but {reason}.")
            }
            Err(Failing::Over(short)) => return Err(short),
        };
        Ok(Err((format!("{told}\nAnswer with the whole corrected module."), Some(source))))
    }

    fn question(&self) -> String {
        let connection = &self.connection;
        let mut text = format!(
            "Vendor: {} ({}).\nGoal: {}\n",
            connection.vendor, connection.display_name, self.row.goal
        );
        if connection.hosts.len() > 1 {
            let labels: Vec<&str> =
                connection.hosts.iter().skip(1).map(|host| host.label.as_str()).collect();
            let _ = writeln!(text, "Other hosts, by `init.host`: {}.", labels.join(", "));
        }
        if let Some(hint) = &self.hints.text {
            let _ = writeln!(text, "Hints: {hint}");
        }
        if let Some(input) = &self.hints.example_input {
            // The agent's own values stay with the agent.
            let _ = writeln!(text, "The input will look like: {}", shape(input, 4));
        }
        for reference in &self.references {
            let _ = writeln!(text, "\nAn operation that may be near it:\n```ts\n{reference}```");
        }
        text
    }

    fn gave_up(&self, code: &str, said: String, source: Option<String>) -> Short {
        let mut error = failed(code, said, OWN_PEN);
        error.source = source;
        Short::Failed(error)
    }
}

/// The name and the text of the module in an answer; else what to tell the model.
fn module_of(answer: &str) -> Result<(String, String), &'static str> {
    if answer.len() > ANSWER_BYTES {
        return Err("The answer is too long. Answer with one small module.");
    }
    let source = match answer.split_once("```") {
        Some((_, fenced)) => {
            let (_, code) = fenced.split_once('\n').unwrap_or_default();
            code.split_once("```").map_or(code, |(code, _)| code)
        }
        None => answer,
    };
    if !source.contains("export default") {
        return Err("The answer holds no module. Answer with one fenced code block.");
    }
    let named = source.lines().find_map(|line| line.trim().strip_prefix("// name:"));
    match named.map(str::trim).filter(|name| !name.is_empty()) {
        Some(name) => Ok((name.to_owned(), source.to_owned())),
        None => Err("The first line must be `// name: <kebab-case name>`."),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_found_in_its_fence_with_its_name() {
        let module = "// name: list-orders\nexport default async function () {}\n";
        let fenced = format!("Here:\n```typescript\n{module}```\nDone.");
        for answer in [module, &fenced, &format!("```\n{module}")] {
            assert_eq!(module_of(answer).unwrap(), ("list-orders".into(), module.into()));
        }
        for answer in ["", "no", "```ts\nx\n```", "export default 1", "// name: \nexport default 1"]
        {
            assert!(module_of(answer).is_err(), "{answer}");
        }
    }
}
