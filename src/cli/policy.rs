//! `cambium policy …` and `cambium audit replay`: what the proxy would do with a
//! request, without sending one. The proxy's own judge answers; `test` with a
//! policy in its file needs no server.

use super::overrides::{Policy, overrides_of};
use super::print::{field, table, time};
use super::{Context, Said, visible};
use crate::control::Request;
use crate::failure::Failure;
use cambium_engine::{Asked, ToolName};
use cambium_proxy::{
    CallSite, Connection, ConnectionId, ConnectionStatus, Hints, Host, Limits, Overrides, PersonId,
    Review, Scheme, Supposed,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Words of `cambium policy`.
#[derive(clap::Subcommand)]
pub(crate) enum Args {
    /// What would become of one request, and the rows that lead to it
    Explain(Explain),
    /// Run a table of cases and name those that differ
    Test {
        /// JSON: {"policy" or "tool", "cases": [{"method", "path", "expect": {"verdict", …}}]}
        file: PathBuf,
    },
}

/// Arguments of `cambium policy explain`.
#[derive(clap::Args)]
pub(crate) struct Explain {
    /// The tool, as VENDOR/NAME
    #[arg(long, value_name = "VENDOR/NAME")]
    tool: String,
    /// Which version [default: the current one]
    #[arg(long, value_name = "NUMBER")]
    number: Option<u32>,
    /// The method, as the module writes it
    #[arg(long)]
    method: String,
    /// Path and query, as the module writes them
    #[arg(long)]
    path: String,
    /// Label or name of the host [default: the primary]
    #[arg(long)]
    host: Option<String>,
    /// A request header, as NAME: VALUE (may be repeated)
    #[arg(long, value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// The body, as text
    #[arg(long, default_value = "")]
    body: String,
    /// As a dry run
    #[arg(long)]
    dry_run: bool,
}

/// Arguments of `cambium audit replay`.
#[derive(clap::Args)]
pub(crate) struct Replay {
    /// Id or slug of the connection whose recorded requests are judged again
    connection: String,
    #[command(flatten)]
    policy: Policy,
}

/// A file of cases.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// `VENDOR/NAME` of a published tool, instead of `policy`.
    tool: Option<String>,
    policy: Option<Inline>,
    cases: Vec<Case>,
}

/// What a version and its connection say, written out.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Inline {
    hosts: Vec<Host>,
    sites: Vec<CallSite>,
    hints: Hints,
    #[serde(default)]
    overrides: Overrides,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: Option<String>,
    method: String,
    path: String,
    host: Option<String>,
    #[serde(default)]
    headers: Vec<(String, String)>,
    #[serde(default)]
    body: String,
    #[serde(default)]
    supposed: Supposed,
    /// Fields of an explanation that must be so.
    expect: serde_json::Map<String, Value>,
}

/// Fields of an explanation a case may expect.
const EXPECTED: &[&str] = &["verdict", "rule", "code", "host", "path", "method_effect", "effect"];

impl Args {
    /// Asks the running server, but for a table with its own policy.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        match self {
            Self::Explain(explain) => {
                let tool = tool(&explain.tool)?;
                let (version, asked) = (explain.number, explain.asked()?);
                let request = Request::PolicyExplain { tool, version, asked, overrides: None };
                let said = context.ask(&request).await?;
                Ok(Said::new(page(&said), said))
            }
            Self::Test { file } => test(&file, context).await,
        }
    }
}

impl Replay {
    /// Judges what is recorded again; differing is an answer, not a failure.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        let show = Request::ConnectionShow { connection: self.connection.clone() };
        let now = overrides_of(&context.ask(&show).await?)?;
        let overrides = self.policy.over(now)?;
        let request = Request::AuditReplay { connection: self.connection, overrides };
        let said = context.ask(&request).await?;
        let rows: Vec<_> = said["flips"].as_array().into_iter().flatten().map(flip).collect();
        let listed = table(
            &["WHEN", "TOOL", "REQUEST", "THEN", "BY", "NOW", "BY"],
            &rows,
            "no recorded request would be treated otherwise",
        );
        let text = format!(
            "{} requests judged again, {} left out\n{listed}",
            field(&said, "judged"),
            field(&said, "skipped")
        );
        Ok(Said::new(text, said))
    }
}

fn flip(flip: &Value) -> Vec<String> {
    vec![
        time(&flip["atMs"]),
        field(flip, "tool"),
        field(flip, "asked"),
        field(flip, "then"),
        field(flip, "thenRule"),
        field(flip, "now"),
        field(flip, "nowRule"),
    ]
}

impl Explain {
    fn asked(self) -> Result<Asked, Failure> {
        let header = |text: &String| match text.split_once(':') {
            Some((name, value)) => Ok((name.to_owned(), value.trim_start().to_owned())),
            None => Err(wrong("--header", text, "NAME: VALUE")),
        };
        Ok(Asked {
            headers: self.header.iter().map(header).collect::<Result<_, _>>()?,
            method: self.method,
            path: self.path,
            host: self.host,
            body: self.body,
            supposed: if self.dry_run { Supposed::DryRun } else { Supposed::Usual },
        })
    }
}

async fn test(file: &Path, context: &Context) -> Result<Said, Failure> {
    let unreadable = |error: String| {
        let said = format!("{} cannot be read: {error}", file.display());
        Failure::new("file_unreadable", said, "examples/policy-cases.json is such a file")
    };
    let text = std::fs::read_to_string(file).map_err(|error| unreadable(error.to_string()))?;
    let table: Table =
        serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
    let mut differ = Vec::new();
    let count = table.cases.len();
    let (policy, tool) = match (table.policy, table.tool) {
        (Some(policy), None) => (Some(policy), None),
        (None, Some(name)) => (None, Some(self::tool(&name)?)),
        _ => return Err(unreadable("it needs either `policy` or `tool`".into())),
    };
    for (number, case) in table.cases.into_iter().enumerate() {
        let name = case.name.unwrap_or_else(|| format!("{} {}", case.method, case.path));
        if let Some(unknown) = case.expect.keys().find(|key| !EXPECTED.contains(&key.as_str())) {
            return Err(unreadable(format!("case `{name}` expects the unknown `{unknown}`")));
        }
        let asked = Asked {
            method: case.method,
            path: case.path,
            host: case.host,
            headers: case.headers,
            body: case.body,
            supposed: case.supposed,
        };
        let found = match (&policy, &tool) {
            (Some(policy), _) => policy.explain(&asked)?,
            (None, Some(tool)) => {
                let tool = tool.clone();
                let request =
                    Request::PolicyExplain { tool, version: None, asked, overrides: None };
                context.ask(&request).await?
            }
            (None, None) => Value::Null,
        };
        for (key, wanted) in case.expect.iter().filter(|(key, wanted)| found[*key] != **wanted) {
            differ.push(json!({
                "case": number + 1,
                "name": name,
                "field": key,
                "expected": wanted,
                "found": found[key],
            }));
        }
    }
    let lines: Vec<String> = differ
        .iter()
        .map(|one| {
            let (case, name, of) = (field(one, "case"), field(one, "name"), field(one, "field"));
            let (wanted, found) = (field(one, "expected"), field(one, "found"));
            format!("case {case} ({name}): {of} is {found}, expected {wanted}")
        })
        .collect();
    let said = json!({ "cases": count, "differ": differ });
    if lines.is_empty() {
        return Ok(Said::new(format!("{count} cases, all as expected"), said));
    }
    Ok(Said::new(lines.join("\n"), said).failing(Failure::new(
        "policy_differs",
        format!("{} of {count} cases are not as expected", lines.len()),
        "change the policy or the case, then run the table again",
    )))
}

impl Inline {
    fn explain(&self, asked: &Asked) -> Result<Value, Failure> {
        self.overrides.check().map_err(|fault| {
            Failure::new(
                "argument_invalid",
                format!("`{}`: {fault}", fault.name),
                "correct the file",
            )
        })?;
        let connection = Connection {
            id: ConnectionId::new("table"),
            person: PersonId::new("table"),
            slug: "table".into(),
            vendor: "table".into(),
            display_name: "table".into(),
            hosts: self.hosts.clone(),
            scheme: Scheme::None,
            exceptions: Vec::new(),
            ca_pem: None,
            overrides: self.overrides.clone(),
            generation: 1,
            status: ConnectionStatus::Connected,
        };
        let request = asked.request();
        let (sites, hints, supposed) = (&self.sites, self.hints, asked.supposed);
        let review = Review { connection: &connection, sites, hints, supposed, request: &request };
        serde_json::to_value(review.explain(&Limits::default())).map_err(|error| {
            Failure::new("answer_unshowable", format!("the answer has no JSON form: {error}"), "")
        })
    }
}

fn page(said: &Value) -> String {
    let mut lines = vec![field(said, "verdict")];
    let steps = said["steps"].as_array().into_iter().flatten();
    lines.extend(steps.map(|step| format!("  {}", visible(step.as_str().unwrap_or_default()))));
    if !said["next"].is_null() {
        lines.push(format!("  next: {}", field(said, "next")));
    }
    lines.join("\n")
}

fn tool(text: &str) -> Result<ToolName, Failure> {
    let (vendor, name) =
        text.split_once('/').ok_or_else(|| wrong("--tool", text, "VENDOR/NAME"))?;
    Ok(ToolName::new(vendor, name)?)
}

fn wrong(argument: &str, value: &str, wanted: &str) -> Failure {
    Failure::new(
        "argument_invalid",
        format!("{argument} `{value}` is not {wanted}"),
        format!("write it as {wanted}"),
    )
}
