//! The one flat list: a fixed tool's name goes to its handler here, any other
//! name is a call of an authored tool. Both ways of calling one end at the same
//! function of the engine.

use crate::arguments::{Arguments, echo, invalid};
use crate::list;
use crate::meta_tools::MetaTool;
use crate::reply::Reply;
use cambium_engine::{
    AcquireHints, Acquired, CallRequest, Caller, CheckReport, Diagnostic, Engine, EngineError,
    Envelope, ExecuteRequest, Faults, Live, PublishRequest, Published, Publisher, Status, ToolName,
    WantedConnection,
};
use rmcp::model::JsonObject;
use serde::Serialize;
use serde_json::{Value, json};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Longest wait for a detached run, seconds; most clients give up at sixty.
const COLLECT_SECONDS: u64 = 50;

/// Most characters `read_file` answers at once.
const READ_CHARS: u64 = 64_000;
/// In front of a connection's slug: the tool that sends one request over it.
pub(crate) const EXECUTE: &str = "execute__";

/// Carries one `tools/call` out. `live` says when the caller gives up.
pub(crate) async fn dispatch(
    engine: &Engine,
    caller: &Caller,
    name: &str,
    arguments: JsonObject,
    live: Live,
) -> Reply {
    let answer = match (MetaTool::named(name), name.strip_prefix(EXECUTE)) {
        (Some(tool), _) => meta(engine, caller, tool, arguments, live).await,
        (None, Some(slug)) => execute(engine, caller, slug, arguments, live).await,
        (None, None) => first_class(engine, caller, name, arguments, live).await,
    };
    answer.unwrap_or_else(Reply::from)
}

async fn execute(
    engine: &Engine,
    caller: &Caller,
    slug: &str,
    arguments: JsonObject,
    live: Live,
) -> Result<Reply, EngineError> {
    const KNOWN: [&str; 7] = ["method", "path", "host", "query", "headers", "body", "dryRun"];
    if !engine.executes(caller).await?.iter().any(|connection| connection.slug == slug) {
        return Err(EngineError::ToolNotFound(echo(&format!("{EXECUTE}{slug}"))));
    }
    let mut arguments = Arguments::read("execute", &KNOWN, arguments)?;
    let request = ExecuteRequest {
        connection: slug.to_owned(),
        method: arguments.text("method")?,
        path: arguments.text("path")?,
        host: arguments.optional_text("host")?,
        query: arguments.texts("query")?,
        headers: arguments.texts("headers")?,
        body: arguments.any("body"),
        dry_run: arguments.flag("dryRun")?,
    };
    Ok(engine.execute(caller, request, live).await.into())
}

async fn first_class(
    engine: &Engine,
    caller: &Caller,
    name: &str,
    arguments: JsonObject,
    live: Live,
) -> Result<Reply, EngineError> {
    let tool = ToolName::parse(name).map_err(|_| EngineError::ToolNotFound(echo(name)))?;
    let request = CallRequest {
        tool,
        input: Value::Object(arguments),
        dry_run: false,
        detached: false,
        timeout_seconds: None,
    };
    Ok(engine.call(caller, request, live).await.into())
}

async fn meta(
    engine: &Engine,
    caller: &Caller,
    tool: MetaTool,
    arguments: JsonObject,
    live: Live,
) -> Result<Reply, EngineError> {
    if !tool.is_there(engine.low_level(&caller.agent().id).await?) {
        return Err(EngineError::ToolNotFound(tool.name().to_owned()));
    }
    let (mut arguments, known) = Arguments::sort(tool.name(), tool.arguments(), arguments);
    if tool != MetaTool::RequestConnection {
        known.clone()?;
    }
    match tool {
        MetaTool::FindTool => {
            let query = arguments.text("query")?;
            Ok(Reply::value(&engine.find_tool(caller, &query).await?))
        }
        MetaTool::Promote => {
            let (size, listed) = engine.promote(caller, &known_name(&mut arguments)?).await?;
            Ok(Reply::Value(json!({
                "promoted": listed.tool.to_string(),
                "workingSetSize": size,
                "description": listed.description,
                "annotations": list::annotations(&listed),
                "inputSchema": listed.input_schema,
            })))
        }
        MetaTool::Demote => {
            let tool = known_name(&mut arguments)?;
            let size = engine.demote(caller, &tool).await?;
            Ok(Reply::Value(json!({ "demoted": tool.to_string(), "workingSetSize": size })))
        }
        MetaTool::RequestConnection => request_connection(engine, caller, arguments, known).await,
        MetaTool::RunTool => run_tool(engine, caller, arguments, live).await,
        MetaTool::RequestCredential => {
            let connection = arguments.text("connectionId")?;
            let reason = arguments.optional_text("reason")?.unwrap_or_default();
            Ok(engine.propose_credential(caller, &connection, &reason).await?.into())
        }
        MetaTool::Acquire => {
            let (connection, goal) = (arguments.text("connectionId")?, arguments.text("goal")?);
            let hints = match arguments.object("hints")? {
                None => AcquireHints::default(),
                Some(hints) => serde_json::from_value(hints)
                    .map_err(|error| invalid("hints", echo(&error.to_string())))?,
            };
            Ok(match engine.acquire(caller, &connection, &goal, hints).await? {
                Acquired::Job(job) => Reply::value(&job),
                Acquired::Asked(envelope) => (*envelope).into(),
            })
        }
        MetaTool::AcquireStatus => {
            let (job, after) = (arguments.text("jobId")?, arguments.whole("after")?);
            let status = engine.acquire_status(caller, &job, after);
            match live.cancel.run_until_cancelled(status).await {
                Some(view) => Ok(Reply::value(&view?)),
                // nobody is left to read it; the job itself goes on
                None => Ok(Envelope::of(Status::Running).into()),
            }
        }
        MetaTool::WaitForProcess => {
            let process = arguments.text("process")?;
            let seconds = arguments.whole("timeoutSeconds")?.unwrap_or(COLLECT_SECONDS);
            let wait = Duration::from_secs(seconds.min(COLLECT_SECONDS));
            let collected = engine.wait_for_process(caller, &process, wait);
            match live.cancel.run_until_cancelled(collected).await {
                Some(envelope) => Ok(envelope?.into()),
                // nobody is left to read it; the run itself goes on
                None => Ok(Envelope::of(Status::Running).into()),
            }
        }
        MetaTool::CheckTool => {
            let source = source(engine, caller, &mut arguments).await?;
            arguments.optional_text("vendor")?;
            let connection = arguments.optional_text("connectionId")?;
            let report = engine.check_tool(caller, &source, connection.as_deref()).await?;
            Ok(Reply::value(&Checked::from(report)))
        }
        MetaTool::PublishTool => publish_tool(engine, caller, arguments, live).await,
        MetaTool::ReadFile => read_file(engine, caller, arguments).await,
        MetaTool::WriteFile => {
            let (path, content) = (arguments.text("path")?, arguments.text("content")?);
            Ok(Reply::value(&engine.write_file(caller, &path, &content).await?))
        }
        MetaTool::RunCommand => {
            let (command, seconds) =
                (arguments.text("command")?, arguments.whole("timeoutSeconds")?);
            Ok(engine.run_command(caller, &command, seconds, live).await?.into())
        }
        MetaTool::ReadWebPage => {
            Ok(engine.read_web_page(caller, &arguments.text("url")?, live).await?.into())
        }
        MetaTool::ReadToolSource => {
            let tool = known_name(&mut arguments)?;
            let version = match arguments.whole("version")? {
                None => None,
                Some(number) => Some(u32::try_from(number).map_err(|_| {
                    invalid("version", format!("must be a version number, not {number}"))
                })?),
            };
            Ok(Reply::value(&engine.read_tool_source(&tool, version).await?))
        }
    }
}

/// Everything that is wrong with it at once: a connection has seven arguments, and
/// a scheme has fields of its own.
async fn request_connection(
    engine: &Engine,
    caller: &Caller,
    mut arguments: Arguments,
    known: Result<(), EngineError>,
) -> Result<Reply, EngineError> {
    let mut faults = Faults::default();
    // First: what it takes is listed there.
    faults.kept("", known);
    let wanted = WantedConnection {
        vendor: faults.kept("vendor", arguments.text("vendor")).unwrap_or_default(),
        primary_host: faults.kept("primaryHost", arguments.text("primaryHost")).unwrap_or_default(),
        hosts: faults.kept("hosts", arguments.list("hosts")).unwrap_or_default(),
        scheme: faults.kept("scheme", arguments.text("scheme")).unwrap_or_default(),
        scheme_config: match faults.kept("schemeConfig", arguments.object("schemeConfig")) {
            Some(Some(Value::Object(fields))) => fields,
            _ => serde_json::Map::new(),
        },
        display_name: faults.kept("displayName", arguments.optional_text("displayName")).flatten(),
        docs_url: faults.kept("docsUrl", arguments.optional_text("docsUrl")).flatten(),
    };
    Ok(engine.propose_as_read(caller, wanted, faults).await?.into())
}

async fn run_tool(
    engine: &Engine,
    caller: &Caller,
    mut arguments: Arguments,
    live: Live,
) -> Result<Reply, EngineError> {
    let tool = known_name(&mut arguments)?;
    let input = arguments.object("input")?.unwrap_or_else(|| json!({}));
    let dry_run = arguments.flag("dryRun")?;
    let detached = arguments.flag("detached")?;
    let timeout_seconds = arguments.whole("timeoutSeconds")?;
    // a detached run outlives the request that began it; a dry run is waited
    let live = match detached && !dry_run {
        true => Live { cancel: CancellationToken::new(), held: None, ..live },
        false => live,
    };
    let request = CallRequest { tool, input, dry_run, detached, timeout_seconds };
    Ok(engine.call(caller, request, live).await.into())
}

async fn publish_tool(
    engine: &Engine,
    caller: &Caller,
    mut arguments: Arguments,
    live: Live,
) -> Result<Reply, EngineError> {
    // here a bad name is told which rule it broke, for it is about to be made
    let tool = ToolName::new(&arguments.text("vendor")?, &arguments.text("name")?)?;
    let connection = arguments.optional_text("connectionId")?;
    let source = source(engine, caller, &mut arguments).await?;
    let test_input = arguments.object("testInput")?;
    let request = PublishRequest { tool, connection, source };
    let (published, test) = match test_input {
        None => (engine.publish(&Publisher::Agent(caller.clone()), request).await?, None),
        Some(input) => {
            let (published, tried) = engine.publish_tried(caller, request, input, live).await?;
            (published, serde_json::to_value(tried).ok())
        }
    };
    Ok(Reply::value(&PublishedAndTried { published, test }))
}

async fn read_file(
    engine: &Engine,
    caller: &Caller,
    mut arguments: Arguments,
) -> Result<Reply, EngineError> {
    let path = arguments.text("path")?;
    let offset = arguments.whole("offset")?.unwrap_or(0);
    let limit = arguments.whole("limit")?.unwrap_or(READ_CHARS).clamp(1, READ_CHARS);
    let (mime_type, whole) = match path.strip_prefix("result://") {
        Some(run) => {
            let kept = engine.result(caller, run).await?;
            (kept.mime_type, kept.text)
        }
        None => ("text/plain".into(), engine.workspace_file(caller, &path).await?),
    };
    let skip = usize::try_from(offset).unwrap_or(usize::MAX);
    let take = usize::try_from(limit).unwrap_or(usize::MAX);
    let text: String = whole.chars().skip(skip).take(take).collect();
    let all = whole.chars().count();
    let next = skip.saturating_add(text.chars().count());
    Ok(Reply::Value(json!({
        "path": path,
        "mimeType": mime_type,
        "text": text,
        "offset": offset,
        "characters": all,
        "nextOffset": (next < all).then_some(next),
    })))
}

/// The name of a tool that must exist: one that cannot is simply not found.
fn known_name(arguments: &mut Arguments) -> Result<ToolName, EngineError> {
    let (vendor, name) = (arguments.text("vendor")?, arguments.text("name")?);
    ToolName::new(&vendor, &name)
        .map_err(|_| EngineError::ToolNotFound(format!("{}__{}", echo(&vendor), echo(&name))))
}

/// The module: its text, or what stands in a file of the workspace.
async fn source(
    engine: &Engine,
    caller: &Caller,
    arguments: &mut Arguments,
) -> Result<String, EngineError> {
    match arguments.optional_text("path")? {
        None => arguments.text("source"),
        Some(_) if arguments.has("source") => {
            Err(invalid("path", "stands beside `source`; give one of them"))
        }
        Some(path) => engine.workspace_file(caller, &path).await,
    }
}

#[derive(Serialize)]
struct PublishedAndTried {
    #[serde(flatten)]
    published: Published,
    #[serde(skip_serializing_if = "Option::is_none")]
    test: Option<Value>,
}

/// A check as an agent reads it: without the emitted JavaScript, which only
/// costs it tokens.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Checked {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_schema: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    example_input: Option<Value>,
    read_only_hint: bool,
    destructive_hint: bool,
    call_sites: Value,
    diagnostics: Vec<Diagnostic>,
}

impl From<CheckReport> for Checked {
    fn from(report: CheckReport) -> Self {
        Self {
            ok: report.ok,
            title: report.title,
            description: report.description,
            input_schema: report.input_schema,
            output_schema: report.output_schema,
            example_input: report.example_input,
            read_only_hint: report.hints.read_only,
            destructive_hint: report.hints.destructive,
            call_sites: serde_json::to_value(report.sites).unwrap_or_default(),
            diagnostics: report.diagnostics,
        }
    }
}
