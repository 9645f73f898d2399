//! `cambium run VENDOR NAME --input JSON`: one call, as an agent would make it.

use super::credential::ActorArgs;
use super::print::{field, spelt, time};
use super::{Context, Said, visible};
use crate::control::Request;
use crate::failure::{Failure, for_person};
use cambium_engine::ToolName;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;

/// Arguments of `cambium run`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Vendor half of the tool's name
    vendor: String,
    /// Name half
    name: String,
    /// The input as JSON
    #[arg(long, default_value = "{}")]
    input: String,
    /// Reads go, everything else is only previewed
    #[arg(long)]
    dry_run: bool,
    /// Ends the run, 1 to 300 seconds, the time it waits for you apart
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    #[command(flatten)]
    actor: ActorArgs,
}

impl Args {
    /// Calls the tool through the running server.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        let tool = ToolName::new(&self.vendor, &self.name)?;
        let input: Value = serde_json::from_str(&self.input).map_err(|error| {
            Failure::new(
                "input_invalid",
                format!("--input is not JSON: {error}"),
                "quote it for your shell: --input '{\"customer\": \"C-17\"}'",
            )
        })?;
        let whole_name = tool.to_string();
        let request = Request::Call {
            actor: self.actor.actor(context).await?,
            tool,
            input,
            dry_run: self.dry_run,
            timeout_seconds: self.timeout,
        };
        let json = context.json();
        let envelope = context.call(&request, |ask| waits(ask, json)).await?;
        let text = reported(context, &envelope).await;
        let mut said = Said { text, failure: failed(&envelope), json: envelope };
        said.name_slug(context, &whole_name).await;
        if let Some(failure) = &mut said.failure {
            let agent = self.actor.agent().unwrap_or("AGENT");
            let whole = format!("{agent} {} {}", self.vendor, self.name);
            failure.next = failure.next.replace("AGENT VENDOR NAME", &whole);
        }
        Ok(said)
    }
}

impl Said {
    /// Puts the slug of a tool's connection where the next step says `SLUG`. What
    /// cannot be learned stays as it is.
    async fn name_slug(&mut self, context: &Context, tool: &str) {
        let Some(failure) = self.failure.as_mut().filter(|told| told.next.contains("SLUG")) else {
            return;
        };
        let Ok(tools) = context.ask(&Request::ToolList {}).await else { return };
        let mut tools = tools.as_array().into_iter().flatten();
        let Some(found) = tools.find(|one| one["tool"] == tool) else { return };
        if let Some(slug) = slug_of(context, &field(found, "connection")).await {
            failure.next = failure.next.replace("SLUG", &slug);
        }
    }
}

/// A connection's slug, by its id.
async fn slug_of(context: &Context, id: &str) -> Option<String> {
    let list = context.ask(&Request::ConnectionList {}).await.ok()?;
    let found = list.as_array()?.iter().find(|one| one["id"] == id)?;
    Some(field(found, "slug"))
}

/// What [`report`] says, with the slug of the connection that was refused.
pub(super) async fn reported(context: &Context, envelope: &Value) -> String {
    let text = report(envelope);
    let Some(id) = refused_at(envelope) else { return text };
    match slug_of(context, &id).await {
        Some(slug) => {
            text.replace(&format!("connections set {id} "), &format!("connections set {slug} "))
        }
        None => text,
    }
}

/// Says at once what the call waits for: by the time it ends, its time is up.
fn waits(ask: &Value, json: bool) {
    let mut stderr = std::io::stderr().lock();
    // A closed pipe is the reader's choice, not an error of ours.
    let _ = match json {
        true => writeln!(stderr, "{}", spelt(&json!({ "waiting": ask }).to_string())),
        false => writeln!(stderr, "{}", waiting(ask)),
    };
}

fn waiting(ask: &Value) -> String {
    let id = field(ask, "id");
    format!(
        "waiting for you: {} https://{}{}\n  question {id}, open until {}; this call waits for a \
         while, then ends and can be made again\n  cambium approvals show {id}, then cambium \
         approvals allow {id} --once (or deny {id})\n  or in the console: {}",
        field(ask, "method"),
        field(ask, "authority"),
        field(ask, "target"),
        time(&ask["expiresMs"]),
        field(ask, "link"),
    )
}

/// What was sent, stopped and answered, and what the tool returned.
fn report(envelope: &Value) -> String {
    let mut text = String::new();
    if let Some(status) = envelope["vendor"]["status"].as_u64() {
        let _ = writeln!(text, "vendor answered {status}");
    }
    for preview in envelope["preview"].as_array().into_iter().flatten() {
        text.push_str(&preview_text(preview));
    }
    // A module that passes on what a dry run answered it returns the preview again.
    let shown = envelope["preview"].as_array().is_some_and(|all| all.contains(&envelope["result"]));
    if !envelope["result"].is_null() && !shown {
        let _ = writeln!(text, "{}", lines(&format!("{:#}", envelope["result"])));
    }
    for note in envelope["notes"].as_array().into_iter().flatten() {
        // read_file is an agent's tool.
        let note = note.as_str().unwrap_or_default();
        let note = note.replace("kept: read_file ", "kept for an agent's read_file: ");
        let _ = writeln!(text, "note: {}", visible(&note));
    }
    if envelope["status"] != "error"
        && let Some(connection) = refused_at(envelope)
    {
        let _ = writeln!(
            text,
            "next: the vendor refused the credential; enter another one: \
             cambium connections set {connection} --secret-stdin"
        );
    }
    text
}

/// The connection whose credential the vendor refused, out of the agent's next step.
fn refused_at(envelope: &Value) -> Option<String> {
    let next = envelope["next"].as_str()?;
    let (_, rest) = next.split_once("call request_credential with connectionId `")?;
    rest.split('`').next().map(visible)
}

/// Why the call is no success, in a person's words.
pub(crate) fn failed(envelope: &Value) -> Option<Failure> {
    let previewed = envelope["preview"].as_array().is_some_and(|shown| !shown.is_empty());
    match envelope["status"].as_str() {
        // A dry run that only shows that it cannot go is no success.
        Some("dry_run") if !previewed => envelope["details"]["refused"]
            .as_array()
            .and_then(|refused| refused.last())
            .map(|last| {
                let text = |name: &str| last[name].as_str().unwrap_or_default().to_owned();
                let (code, message, next) = (text("code"), text("message"), text("next"));
                let message = format!("{} {} was refused: {message}", text("method"), text("path"));
                let next = for_person(&code, next);
                Failure::new(&code, message, next)
            }),
        Some("error") => {
            let mut failure = Failure::new(
                envelope["code"].as_str().unwrap_or("run_failed"),
                envelope["message"].as_str().unwrap_or_default(),
                for_person(
                    envelope["code"].as_str().unwrap_or_default(),
                    envelope["next"].as_str().unwrap_or_default().to_owned(),
                ),
            );
            failure.retryable = envelope["retryable"] == true;
            failure.details = envelope.get("details").cloned().map(Box::new);
            Some(failure)
        }
        Some("awaiting_approval") if envelope["ask"].is_null() => Some(Failure::new(
            "awaiting_approval",
            field(envelope, "message"),
            format!(
                "cambium approvals show {}, answer it, then call again",
                field(&envelope["behind"], "id")
            ),
        )),
        Some("awaiting_approval") => Some(Failure::new(
            "awaiting_approval",
            format!(
                "a person was asked ({}) and has not answered; the question stays until {}",
                field(&envelope["ask"], "id"),
                time(&envelope["ask"]["expiresMs"]),
            ),
            {
                let id = field(&envelope["ask"], "id");
                format!(
                    "cambium approvals show {id}, then cambium approvals allow {id} --once (or \
                     deny {id}), then call again"
                )
            },
        )),
        _ => None,
    }
}

/// A stopped request, as a person reads it.
pub(crate) fn preview_text(preview: &Value) -> String {
    let request = &preview["request"];
    let query = match &request["query"] {
        Value::String(query) => format!("?{}", visible(query)),
        _ => String::new(),
    };
    let mut text = format!(
        "would send {} https://{}{}{query}\n  credential  {}\n  headers     {}\n",
        field(request, "method"),
        field(request, "host"),
        field(request, "path"),
        field(request, "credential"),
        request["headerNames"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(visible)
            .collect::<Vec<_>>()
            .join(", "),
    );
    if let Some(body) = request["body"].as_str() {
        let _ = writeln!(text, "  body        {} ({} bytes)", visible(body), request["bodyBytes"]);
    }
    let _ = writeln!(text, "  digest      {}", field(request, "digest"));
    text
}

/// Several lines, each made visible by itself.
fn lines(text: &str) -> String {
    text.lines().map(visible).collect::<Vec<_>>().join("\n")
}

/// Nothing to show but that it was done.
pub(crate) fn done(text: String) -> Said {
    Said::new(text, json!({ "done": true }))
}
