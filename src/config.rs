//! Configuration: one TOML file, then `CAMBIUM_…` variables, then the command
//! line, parsed once into values that are valid. A key nobody knows is refused
//! by name, so a misspelt switch never silently leaves a default in place.

use crate::cli::range;
use crate::failure::Failure;
use cambium_proxy::{PageReach, Proxy};
use figment::Figment;
use figment::error::{Actual, Kind};
use figment::providers::{Env, Format, Toml};
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the server listens unless told otherwise.
const DEFAULT_LISTEN: &str = "127.0.0.1:7171";
/// How long a call waits for a person: below the 60 s after which clients give up.
const DEFAULT_WAIT: u64 = 50;
/// Beyond this no client is still there to hear the answer.
const MAX_WAIT: u64 = 300;
/// Ready workers kept per zygote: one hides the fork, more only hold memory.
const DEFAULT_POOL: usize = 1;
/// A pool beyond this is a mistake: each ready worker holds memory.
const MAX_POOL: usize = 64;
/// A century: longer is a mistake.
const MAX_KEEP_DAYS: u64 = 36_500;
/// Rows since the last anchor can be cut unseen; an hour of them at most.
const DEFAULT_ANCHOR_MINUTES: u64 = 60;
/// A week: beyond it an anchor says little.
const MAX_ANCHOR_MINUTES: u64 = 7 * 24 * 60;
/// What a model may use for one job unless told otherwise, and how long for one answer.
const DEFAULT_AUTHOR: (u32, u64, u64) = (6, 60_000, 120);
/// A job that needs more is no small tool.
const MAX_ATTEMPTS: u64 = 50;
/// Beyond this a mistyped number would be dear.
const MAX_TOKENS: u64 = 10_000_000;
/// Beyond this nobody waits for one answer.
const MAX_ANSWER_SECONDS: u64 = 600;
/// `CAMBIUM_…` variables that are arguments of commands, not configuration.
const NOT_CONFIG: &[&str] = &["token", "token_file", "passphrase_file", "config", "cache"];

/// Everything a person can set, valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Config {
    /// Where everything the server keeps lives.
    pub(crate) data_dir: PathBuf,
    /// The one loopback listener of MCP and console.
    pub(crate) listen: SocketAddr,
    /// How long a call waits for a person.
    pub(crate) wait_budget: Duration,
    /// Folder of TypeScript's native compiler; without one types are not checked.
    pub(crate) typescript: Option<PathBuf>,
    /// The binary that runs components; unset: the one beside this, if any.
    pub(crate) components: Option<PathBuf>,
    /// Switches of the sandbox.
    pub(crate) sandbox: Sandbox,
    /// What is logged, and how.
    pub(crate) log: Log,
    /// Requests without a token act as this agent; only the command line says so.
    pub(crate) dev_agent: Option<String>,
    /// How long the audit is kept and where it is anchored.
    pub(crate) audit: Audit,
    /// The model that writes tools for acquire.
    pub(crate) author: Option<AuthorConfig>,
    /// Where a person is told that something waits.
    pub(crate) notify: Option<NotifyConfig>,
    /// Where `read_web_page` may read from beside public hosts.
    pub(crate) pages: PageReach,
}

/// Where a person is told that something waits for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotifyConfig {
    /// The address that is posted to.
    pub(crate) url: String,
    /// The file with the key of the signature, absolute.
    pub(crate) key_file: PathBuf,
}

/// What an endpoint speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AuthorKind {
    /// OpenAI's chat completions, which many speak.
    Openai,
    /// Anthropic's messages.
    Anthropic,
}

/// A model that writes tools for acquire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AuthorConfig {
    /// What its endpoint speaks.
    pub(crate) kind: AuthorKind,
    /// Where it is.
    pub(crate) url: String,
    /// Its name there.
    pub(crate) model: String,
    /// The file with the key, absolute.
    pub(crate) key_file: Option<PathBuf>,
    /// Answers for one job.
    pub(crate) attempts: u32,
    /// Tokens for one job.
    pub(crate) tokens: u64,
    /// How long one answer may take.
    pub(crate) timeout: Duration,
}

/// How long the audit is kept and where it is anchored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Audit {
    /// Days after which a row is let go; `None` keeps all.
    pub(crate) keep_days: Option<u32>,
    /// The file anchors are appended to.
    pub(crate) anchor_file: Option<PathBuf>,
    /// How often.
    pub(crate) anchor_every: Duration,
}

/// Switches of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sandbox {
    /// Ready workers per zygote, 0..=64.
    pub(crate) pool: usize,
    /// False starts each worker by exec: slower, for kernels that refuse a layer.
    pub(crate) zygote: bool,
    /// Start although a layer is missing; the console says so on every page.
    pub(crate) allow_weak: bool,
    /// Where sandboxes outside come in; `None` keeps that door shut.
    pub(crate) listen: Option<SandboxListen>,
}

/// Where sandboxes outside come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SandboxListen {
    /// A loopback address.
    Loopback(SocketAddr),
    /// A socket in the data directory.
    Socket,
}

/// What is logged to stderr.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Log {
    /// A `tracing` filter such as `info` or `cambium_proxy=debug`.
    pub(crate) filter: String,
    /// JSON lines instead of text.
    pub(crate) json: bool,
}

/// What the command line says over file and environment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Overrides {
    /// `--config`; else the default path, if it is there.
    pub(crate) config: Option<PathBuf>,
    /// `--data-dir`.
    pub(crate) data_dir: Option<PathBuf>,
    /// `--listen`.
    pub(crate) listen: Option<String>,
    /// `--dev-agent`.
    pub(crate) dev_agent: Option<String>,
    /// `--no-zygote`.
    pub(crate) no_zygote: bool,
    /// `--allow-weak-sandbox`.
    pub(crate) allow_weak: bool,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Raw {
    data_dir: Option<PathBuf>,
    listen: Option<String>,
    wait_budget_seconds: Option<u64>,
    typescript: Option<PathBuf>,
    components: Option<PathBuf>,
    sandbox: RawSandbox,
    log: RawLog,
    audit: RawAudit,
    author: Option<RawAuthor>,
    pages: RawPages,
    notify: Option<RawNotify>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawNotify {
    url: String,
    key_file: PathBuf,
}

impl RawNotify {
    fn valid(self) -> Result<NotifyConfig, Failure> {
        Ok(NotifyConfig { url: self.url, key_file: absolute(self.key_file)? })
    }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct RawPages {
    allow_private: Vec<String>,
    ca_file: Option<PathBuf>,
}

impl RawPages {
    fn valid(self) -> Result<PageReach, Failure> {
        let exceptions = self.allow_private.iter().map(|text| range(text));
        let ca_pem = self.ca_file.map(|path| {
            std::fs::read_to_string(&path).map_err(|error| {
                Failure::new(
                    "config_invalid",
                    format!("`pages.ca_file` {} cannot be read: {error}", path.display()),
                    "name a file of PEM certificates",
                )
            })
        });
        let reach = PageReach {
            exceptions: exceptions.collect::<Result<_, _>>()?,
            ca_pem: ca_pem.transpose()?,
        };
        Proxy::check_reach(&reach).map_err(|refusal| {
            Failure::new("config_invalid", format!("`pages`: {refusal}"), "correct it")
        })?;
        Ok(reach)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAuthor {
    kind: AuthorKind,
    url: String,
    model: String,
    key_file: Option<PathBuf>,
    attempts: Option<u32>,
    tokens: Option<u64>,
    timeout_seconds: Option<u64>,
}

impl RawAuthor {
    fn valid(self) -> Result<AuthorConfig, Failure> {
        let (attempts, tokens, seconds) = DEFAULT_AUTHOR;
        let attempts = self.attempts.unwrap_or(attempts);
        in_range("author.attempts", u64::from(attempts), 1, MAX_ATTEMPTS)?;
        let tokens = self.tokens.unwrap_or(tokens);
        in_range("author.tokens", tokens, 1, MAX_TOKENS)?;
        let seconds = self.timeout_seconds.unwrap_or(seconds);
        in_range("author.timeout_seconds", seconds, 1, MAX_ANSWER_SECONDS)?;
        Ok(AuthorConfig {
            kind: self.kind,
            url: self.url,
            model: self.model,
            key_file: self.key_file.map(absolute).transpose()?,
            attempts,
            tokens,
            timeout: Duration::from_secs(seconds),
        })
    }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct RawAudit {
    keep_days: Option<u32>,
    anchor_file: Option<PathBuf>,
    anchor_minutes: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct RawSandbox {
    pool: Option<usize>,
    zygote: Option<bool>,
    allow_weak: Option<bool>,
    listen: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct RawLog {
    filter: Option<String>,
    json: Option<bool>,
}

impl Config {
    /// Reads file, environment and command line, in rising order.
    pub(crate) fn load(overrides: &Overrides) -> Result<Self, Failure> {
        let mut figment = Figment::new();
        if let Some(path) = Self::file(overrides.config.clone())? {
            figment = figment.merge(Toml::file_exact(path));
        }
        figment = figment.merge(Env::prefixed("CAMBIUM_").ignore(NOT_CONFIG).split("__"));
        let raw: Raw = figment.extract().map_err(said)?;
        Self::valid(raw, overrides)
    }

    /// What holds where no file, variable or flag says anything.
    pub(crate) fn defaults() -> Result<Self, Failure> {
        Self::valid(Raw::default(), &Overrides::default())
    }

    fn valid(raw: Raw, overrides: &Overrides) -> Result<Self, Failure> {
        let wait = raw.wait_budget_seconds.unwrap_or(DEFAULT_WAIT);
        in_range("wait_budget_seconds", wait, 1, MAX_WAIT)?;
        let pool = raw.sandbox.pool.unwrap_or(DEFAULT_POOL);
        in_range("sandbox.pool", pool as u64, 0, MAX_POOL as u64)?;
        let listen = overrides.listen.clone().or(raw.listen);
        if let Some(days) = raw.audit.keep_days {
            in_range("audit.keep_days", u64::from(days), 1, MAX_KEEP_DAYS)?;
        }
        let minutes = raw.audit.anchor_minutes.unwrap_or(DEFAULT_ANCHOR_MINUTES);
        in_range("audit.anchor_minutes", minutes, 1, MAX_ANCHOR_MINUTES)?;
        Ok(Self {
            data_dir: match overrides.data_dir.clone().or(raw.data_dir) {
                Some(path) => absolute(path)?,
                None => default_data_dir()?,
            },
            listen: loopback("listen", listen.as_deref().unwrap_or(DEFAULT_LISTEN))?,
            wait_budget: Duration::from_secs(wait),
            typescript: raw.typescript,
            components: raw.components.map(absolute).transpose()?,
            sandbox: Sandbox {
                pool,
                zygote: !overrides.no_zygote && raw.sandbox.zygote.unwrap_or(true),
                allow_weak: overrides.allow_weak || raw.sandbox.allow_weak.unwrap_or(false),
                listen: match raw.sandbox.listen.as_deref() {
                    None => None,
                    Some("socket") => Some(SandboxListen::Socket),
                    Some(text) => Some(SandboxListen::Loopback(loopback("sandbox.listen", text)?)),
                },
            },
            log: Log {
                filter: raw.log.filter.unwrap_or_else(|| "warn,cambium=info".into()),
                json: raw.log.json.unwrap_or(false),
            },
            dev_agent: overrides.dev_agent.clone(),
            audit: Audit {
                keep_days: raw.audit.keep_days,
                anchor_file: raw.audit.anchor_file.map(absolute).transpose()?,
                anchor_every: Duration::from_secs(60 * minutes),
            },
            author: raw.author.map(RawAuthor::valid).transpose()?,
            pages: raw.pages.valid()?,
            notify: raw.notify.map(RawNotify::valid).transpose()?,
        })
    }

    /// Where `cambium setup` writes the file. Absolute.
    pub(crate) fn default_file() -> Option<PathBuf> {
        let base = base("XDG_CONFIG_HOME", ".config")?;
        std::path::absolute(base.join("cambium").join("config.toml")).ok()
    }

    /// The file in force: the one named, else `CAMBIUM_CONFIG`, else the default
    /// path's, if it is there. Absolute.
    pub(crate) fn file(named: Option<PathBuf>) -> Result<Option<PathBuf>, Failure> {
        let named = named.or_else(|| std::env::var_os("CAMBIUM_CONFIG").map(Into::into));
        let Some(path) = named else {
            return Ok(Self::default_file().filter(|path| path.exists()));
        };
        match std::fs::metadata(&path).and_then(|_| std::path::absolute(&path)) {
            Ok(path) => Ok(Some(path)),
            Err(error) => Err(Failure::new(
                "config_unreadable",
                format!("the configuration file {} cannot be read: {error}", path.display()),
                "name a file that exists, or leave --config and CAMBIUM_CONFIG out",
            )),
        }
    }
}

fn said(error: figment::Error) -> Failure {
    let variables = error.metadata.as_ref().is_some_and(|metadata| metadata.source.is_none());
    let mut path = error.path.clone();
    let from = match &error.metadata {
        Some(metadata) => match &metadata.source {
            Some(source) => format!(" in {source}"),
            // A value of the environment is known by its variable's name.
            None if path.is_empty() => " in the variables CAMBIUM_…".to_owned(),
            None => format!(" (CAMBIUM_{})", path.join("__").to_uppercase()),
        },
        None => String::new(),
    };
    match &error.kind {
        Kind::UnknownField(name, known) => {
            if path.last() != Some(name) {
                path.push(name.clone());
            }
            let from = match variables {
                true => format!(" (CAMBIUM_{})", path.join("__").to_uppercase()),
                false => from,
            };
            Failure::new(
                "config_unknown_key",
                format!("no setting is called `{}`{from}", path.join(".")),
                format!("remove it, or use one of: {}", known.join(", ")),
            )
        }
        kind => Failure::new(
            "config_invalid",
            match (path.is_empty(), kind) {
                (false, Kind::InvalidType(actual, wanted)) => {
                    format!("`{}`{from} must be {wanted}, not {}", path.join("."), plain(actual))
                }
                (false, _) => {
                    format!("`{}`{from}: {}", path.join("."), one_line(&kind.to_string()))
                }
                // What the parser says spans lines and draws; its last line is the reason.
                (true, _) => format!(
                    "the configuration{from} cannot be read: {}",
                    one_line(&kind.to_string())
                ),
            },
            "correct it; examples/config.toml has every setting",
        ),
    }
}

/// What was found, in the words of somebody who writes TOML.
fn plain(actual: &Actual) -> String {
    match actual {
        Actual::Bool(value) => format!("{value}"),
        Actual::Unsigned(value) => format!("{value}"),
        Actual::Signed(value) => format!("{value}"),
        Actual::Float(value) => format!("{value}"),
        Actual::Str(value) => format!("the text \"{value}\""),
        Actual::Seq => "a list".to_owned(),
        Actual::Map => "a table".to_owned(),
        other => other.to_string(),
    }
}

/// The place a parser names and the reason it ends with, without its drawing.
fn one_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default().to_owned();
    let drawn = |line: &&str| line.contains('|') || line.starts_with('^');
    match lines.rfind(|line| !drawn(line)) {
        Some(last) => format!("{}: {last}", first.trim_end_matches(':')),
        None => first,
    }
}

fn in_range(name: &str, value: u64, least: u64, most: u64) -> Result<(), Failure> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Failure::new(
        "config_invalid",
        format!("`{name}` must be {least} to {most}, not {value}"),
        "choose a value in the range",
    ))
}

/// Only loopback: the console and agent tokens travel without TLS here.
fn loopback(key: &str, text: &str) -> Result<SocketAddr, Failure> {
    let address: SocketAddr = text.parse().map_err(|_| {
        Failure::new(
            "config_invalid",
            format!("`{key}` must be an address and a port, not `{text}`"),
            format!("write it like {DEFAULT_LISTEN}"),
        )
    })?;
    if address.ip().is_loopback() {
        return Ok(address);
    }
    Err(Failure::new(
        "listen_refused",
        format!("{address} is not a loopback address"),
        "listen on 127.0.0.1 or [::1]; reach it from elsewhere through a tunnel or a TLS proxy",
    ))
}

fn default_data_dir() -> Result<PathBuf, Failure> {
    base("XDG_DATA_HOME", ".local/share").map(|base| base.join("cambium")).ok_or_else(|| {
        Failure::new(
            "config_invalid",
            "neither XDG_DATA_HOME nor HOME is set, so there is no default data directory",
            "pass --data-dir",
        )
    })
}

/// An XDG base directory; a relative value is ignored, as that standard says.
fn base(variable: &str, below_home: &str) -> Option<PathBuf> {
    let set = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    set.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(below_home)))
}

fn absolute(path: PathBuf) -> Result<PathBuf, Failure> {
    std::path::absolute(&path).map_err(|error| {
        Failure::new(
            "config_invalid",
            format!("`data_dir` {} is not a path: {error}", path.display()),
            "name a directory",
        )
    })
}
