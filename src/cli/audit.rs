//! `cambium audit …`: what was decided and sent, and whether the chain holds.
//! Each word works without a server too: it takes the data directory's lock and
//! reads the same chain.

use super::print::{field, table, time};
use super::{Context, Said, visible};
use crate::assemble::Offline;
use crate::control::{AuditAsk, Request, ask};
use crate::data_dir::DataDir;
use crate::failure::Failure;
use crate::keeper;
use cambium_proxy::Anchor;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Words of `cambium audit`.
#[derive(clap::Subcommand)]
pub(crate) enum Args {
    /// The newest rows, oldest first
    List {
        /// Rows after this number instead
        #[arg(long, value_name = "NUMBER")]
        after: Option<u64>,
        /// How many rows, 1 to 1000
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
    },
    /// Walk every chain and name the first row that does not hold
    Verify {
        /// A file of anchors: finds a chain cut at its end, too
        #[arg(long, value_name = "FILE")]
        head: Vec<PathBuf>,
    },
    /// State, signed, how far the audit has come; keep it where the server cannot write
    Anchor {
        /// Append it to this file as well
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
    },
    /// Every row as a line of JSON, whole chains, oldest first
    Export {
        /// Into this new file instead of stdout
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
    },
    /// What a changed policy would do to the requests that are recorded
    Replay(Box<super::policy::Replay>),
}

impl Args {
    /// Asks the running server, or the directory if none runs.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        // Read first: a file that cannot be read is no reason to take a lock.
        let anchors = match self {
            Self::Replay(replay) => return replay.run(context).await,
            Self::Verify { ref head } => read(head)?,
            Self::List { .. } | Self::Anchor { .. } | Self::Export { .. } => Vec::new(),
        };
        let reach = Reach::find(context).await?;
        let said = self.say(&reach, anchors).await;
        reach.close().await;
        said
    }

    async fn say(self, reach: &Reach, anchors: Vec<Anchor>) -> Result<Said, Failure> {
        match self {
            Self::List { after, limit } => {
                let rows = reach.ask(AuditAsk::List { after, limit }).await?;
                let names = reach.names().await?;
                Ok(Said::new(listed(&rows, &names), rows))
            }
            // It asks for itself, and the server only.
            Self::Replay(_) => Ok(Said::default()),
            Self::Verify { .. } => {
                let verified = reach.ask(AuditAsk::Verify { anchors }).await?;
                let text = format!("{} rows, the chain holds", field(&verified, "rows"));
                Ok(Said::new(text, verified))
            }
            Self::Anchor { to } => {
                let value = reach.ask(AuditAsk::Anchor {}).await?;
                if let Some(file) = to {
                    let anchor: Anchor = serde_json::from_value(value.clone()).map_err(unlike)?;
                    keeper::append(&file, &anchor)?;
                }
                Ok(Said::new(value.to_string(), value))
            }
            Self::Export { to: None } => {
                let lines = export(reach, &mut std::io::stdout(), Path::new("stdout")).await?;
                tracing::debug!(lines, "exported");
                Ok(Said::default())
            }
            Self::Export { to: Some(file) } => {
                let mut options = OpenOptions::new();
                let opened = options.write(true).create_new(true).mode(0o600).open(&file);
                let opened = opened.map_err(|error| unwritten(&file, &error))?;
                let mut out = BufWriter::new(opened);
                let lines = export(reach, &mut out, &file).await?;
                let whole = out.into_inner().map_err(|error| unwritten(&file, error.error()))?;
                whole.sync_all().map_err(|error| unwritten(&file, &error))?;
                let text = format!("{lines} lines are in {}", file.display());
                Ok(Said::new(text, json!({ "lines": lines, "file": file })))
            }
        }
    }
}

/// Names by id.
type Names = BTreeMap<String, String>;

/// The running server, or the directory itself under its lock.
enum Reach {
    Server(PathBuf),
    Offline(Box<Offline>),
}

impl Reach {
    async fn find(context: &Context) -> Result<Self, Failure> {
        let config = context.config()?;
        match ask(&config.data_dir, &Request::Status {}).await {
            Ok(_) => Ok(Self::Server(config.data_dir)),
            Err(failure) if failure.code == "no_server" && config.data_dir.is_dir() => {
                let data_dir = DataDir::lock(&config.data_dir)?;
                Ok(Self::Offline(Box::new(Offline::open(data_dir).await?)))
            }
            Err(failure) => Err(failure),
        }
    }

    async fn ask(&self, question: AuditAsk) -> Result<Value, Failure> {
        match self {
            Self::Server(data_dir) => ask(data_dir, &Request::Audit { ask: question }).await,
            Self::Offline(offline) => offline.audit().answer(question).await,
        }
    }

    /// What a person calls agents and connections; without a server their ids stand.
    async fn names(&self) -> Result<Names, Failure> {
        let Self::Server(data_dir) = self else { return Ok(Names::new()) };
        let mut names = Names::new();
        for (request, name) in
            [(Request::AgentList {}, "name"), (Request::ConnectionList {}, "slug")]
        {
            let list = ask(data_dir, &request).await?;
            let list = list.as_array().into_iter().flatten();
            let pair = |one: &Value| {
                Some((one["id"].as_str()?.to_owned(), one[name].as_str()?.to_owned()))
            };
            names.extend(list.filter_map(pair));
        }
        Ok(names)
    }

    async fn close(self) {
        if let Self::Offline(offline) = self {
            offline.close().await;
        }
    }
}

/// Page by page, so that no chain is too long for it.
async fn export(reach: &Reach, out: &mut dyn Write, to: &Path) -> Result<u64, Failure> {
    let nodes = reach.ask(AuditAsk::Nodes {}).await?;
    let nodes: Vec<String> = serde_json::from_value(nodes).map_err(unlike)?;
    let mut written = 0;
    for node in nodes {
        let mut after = 0;
        loop {
            let page = reach.ask(AuditAsk::Export { node: node.clone(), after }).await?;
            for line in page["lines"].as_array().into_iter().flatten() {
                let line = line.as_str().unwrap_or_default();
                writeln!(out, "{line}").map_err(|error| unwritten(to, &error))?;
                written += 1;
            }
            if page["done"] == true {
                break;
            }
            after = page["last"].as_u64().unwrap_or(u64::MAX);
        }
    }
    out.flush().map_err(|error| unwritten(to, &error))?;
    Ok(written)
}

/// The anchors of all files, a line each.
fn read(files: &[PathBuf]) -> Result<Vec<Anchor>, Failure> {
    let mut anchors = Vec::new();
    for file in files {
        let text = File::open(file).and_then(std::io::read_to_string).map_err(|error| {
            let reason = format!("{} cannot be read: {error}", file.display());
            Failure::new("file_unreadable", reason, "name a file of anchors")
        })?;
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let anchor = serde_json::from_str(line).map_err(|error| {
                let (file, number) = (file.display(), number + 1);
                let reason = format!("line {number} of {file} is no anchor: {error}");
                Failure::new("anchor_invalid", reason, "name a file `cambium audit anchor` wrote")
            })?;
            anchors.push(anchor);
        }
    }
    Ok(anchors)
}

fn unlike(error: serde_json::Error) -> Failure {
    Failure::new(
        "server_gone",
        format!("the server's answer is not understood: {error}"),
        "use the same version of cambium on both sides",
    )
}

fn unwritten(file: &Path, error: &std::io::Error) -> Failure {
    let reason = format!("{} cannot be written: {error}", file.display());
    Failure::new("export_unwritten", reason, "name a file that is not there yet, or free the disk")
}

const HEAD: [&str; 12] = [
    "ROW",
    "WHEN",
    "KIND",
    "AGENT",
    "CONNECTION",
    "TOOL",
    "REQUEST",
    "STATUS",
    "DECIDED BY",
    "ASK",
    "VENDOR",
    "PROXY",
];

fn listed(rows: &Value, names: &Names) -> String {
    let rows = rows.as_array().into_iter().flatten();
    let rows: Vec<_> = rows.map(|row| line(row, names).to_vec()).collect();
    table(&HEAD, &rows, "nothing was asked for yet")
}

fn line(row: &Value, names: &Names) -> [String; HEAD.len()] {
    let event = &row["event"];
    let named = |name: &str| {
        let id = event[name].as_str().unwrap_or_default();
        names.get(id).map_or_else(|| field(event, name), |name| visible(name))
    };
    let spent = |name: &str| match event[name].as_u64() {
        Some(us) => format!("{}.{:02} ms", us / 1000, us % 1000 / 10),
        None => String::new(),
    };
    [
        field(row, "sequence"),
        time(&event["at_ms"]),
        field(event, "kind"),
        named("agent"),
        named("connection"),
        field(event, "tool"),
        format!("{} {}{}", field(event, "method"), field(event, "host"), field(event, "path")),
        field(event, "status"),
        field(event, "rule"),
        field(event, "approval"),
        spent("vendor_us"),
        spent("proxy_us"),
    ]
}
