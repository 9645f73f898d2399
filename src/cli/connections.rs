//! `cambium connections …`: vendors, their hosts and credentials. A secret
//! comes by stdin or the terminal, never as an argument.

use super::authority::{DOUBTFUL, is_doubtful, pem};
use super::credential::{PersonArgs, secret};
use super::overrides::{Policy, overrides_of};
use super::print::{field, table};
use super::run::done;
use super::{Context, Said, proposals, visible};
use crate::control::{Change, Connection, Request};
use crate::failure::Failure;
use cambium_engine::{Preset, presets, read_host, read_scheme};
use cambium_proxy::{Exception, Host, Overrides, Scheme};
use clap::ValueEnum;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// For who adds what is there already.
const CHANGE_IT: &str = "choose another slug, or change the one there is: `cambium connections set SLUG` \
                         (--secret-stdin enters another secret)";

/// Words of `cambium connections`.
#[derive(clap::Subcommand)]
pub(crate) enum Args {
    /// A new connection; its secret is read from stdin
    Add(Box<Add>),
    /// All connections
    List,
    /// One connection and what differs from the usual policy
    Show {
        /// Id or slug
        connection: String,
    },
    /// Change the policy of one; what was allowed *from now on* is asked again
    Set(Box<Set>),
    /// Change which of your agents may use one
    Agents {
        /// Id or slug
        connection: String,
        /// This agent (may be repeated); those not named may not
        #[arg(long, value_name = "NAME", required_unless_present = "all_agents")]
        agent: Vec<String>,
        /// Every agent of yours, later ones too
        #[arg(long, conflicts_with = "agent")]
        all_agents: bool,
        #[command(flatten)]
        person: PersonArgs,
    },
    /// Packages its tools may import
    #[command(subcommand)]
    Sdk(super::sdk::Args),
    /// Take one back: its tools leave every working set
    Revoke {
        /// Id or slug
        connection: String,
        #[command(flatten)]
        person: PersonArgs,
    },
    /// Take a revoke back: its tools return, what was allowed is asked again
    Reconnect {
        /// Id or slug
        connection: String,
        /// Read another secret from stdin instead of the one that is stored
        #[arg(long)]
        secret_stdin: bool,
        #[command(flatten)]
        person: PersonArgs,
    },
    /// Vendors whose hosts and scheme are known, for `add --preset` (needs no server)
    Presets {
        /// Only this one, with all that is known
        vendor: Option<String>,
    },
    /// What agents ask you to connect
    #[command(subcommand)]
    Proposals(proposals::Args),
}

/// Arguments of `cambium connections add`.
#[derive(clap::Args)]
pub(crate) struct Add {
    /// Its slug, kebab-case
    slug: String,
    /// Vendor half of its tools' names [default: the slug]
    #[arg(long)]
    vendor: Option<String>,
    /// What you call it [default: the slug]
    #[arg(long)]
    display_name: Option<String>,
    /// A vendor of `cambium connections presets`: its hosts, scheme and policy, where you name no others
    #[arg(long, value_name = "VENDOR")]
    preset: Option<String>,
    /// HOST, HOST:PORT or LABEL=HOST:PORT; the first is primary; --preset VENDOR knows them, too
    #[arg(long, required_unless_present = "preset")]
    host: Vec<String>,
    /// How the credential is placed [default: bearer]
    #[arg(long, value_enum)]
    scheme: Option<Placed>,
    /// A field of the scheme (may be repeated); docs/credentials.md lists them
    #[arg(long, value_name = "FIELD=VALUE")]
    set: Vec<String>,
    /// Short for --set header=…
    #[arg(long)]
    header: Option<String>,
    /// Short for --set prefix=…
    #[arg(long)]
    prefix: Option<String>,
    /// Lets this connection reach a private range: CIDR:PORT, like 10.0.0.0/8:443
    #[arg(long, value_name = "CIDR:PORT")]
    allow_private: Vec<String>,
    /// PEM of the authority that signs its certificate, instead of the public roots
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    #[command(flatten)]
    policy: Policy,
    /// Only for this agent (may be repeated) [default: all]
    #[arg(long, value_name = "NAME")]
    agent: Vec<String>,
    /// Adding one needs you; with --passphrase-stdin the passphrase is stdin's first line, the secret the rest
    #[command(flatten)]
    person: PersonArgs,
}

/// Arguments of `cambium connections set`.
#[derive(clap::Args)]
pub(crate) struct Set {
    /// Id or slug
    connection: String,
    /// The private ranges it may reach, instead of those it has; `none` for none
    #[arg(long, value_name = "CIDR:PORT")]
    allow_private: Vec<String>,
    /// PEM of the authority that signs its certificate; `none` for the public roots
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Read another secret from stdin (behind the passphrase's line with --passphrase-stdin)
    #[arg(long)]
    secret_stdin: bool,
    /// The secret is of the same account: what was allowed stays
    #[arg(long, requires = "secret_stdin")]
    same_account: bool,
    #[command(flatten)]
    policy: Policy,
    #[command(flatten)]
    person: PersonArgs,
}

/// Schemes a person can choose.
#[derive(Clone, Copy, ValueEnum)]
enum Placed {
    /// Nothing is added
    None,
    /// Authorization: Bearer
    Bearer,
    /// A header of the vendor's own: header, prefix
    #[value(alias = "api_key_header")]
    ApiKeyHeader,
    /// A query parameter: parameter
    #[value(alias = "api_key_query")]
    ApiKeyQuery,
    /// Authorization: Basic: username, or none when the key is the user name
    Basic,
    /// One cookie: name
    Cookie,
    /// Part of the path: template, like /bot{token}
    #[value(alias = "url_path")]
    UrlPath,
    /// A signature over a message you fix: message, headers.NAME, key_id
    Hmac,
    /// AWS Signature Version 4: access_key_id, region, service
    #[value(alias = "aws_sigv4")]
    AwsSigv4,
    /// A token signed with your key: issuer, subject, audience, token_url
    #[value(alias = "jwt_assertion")]
    JwtAssertion,
    /// A client certificate; the secret is its PEM and its key's
    Mtls,
    /// Tokens for the client itself: token_url, client_id, scope
    #[value(alias = "oauth2_client_credentials")]
    Oauth2ClientCredentials,
    /// Tokens for you, after you sign in: authorization_url, token_url, client_id, scope
    #[value(alias = "oauth2_authorization_code")]
    Oauth2AuthorizationCode,
}

impl Args {
    /// Asks the running server.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        match self {
            Self::Add(add) => {
                let scheme = add.scheme()?;
                // Before the secret: with --passphrase-stdin it is the first line.
                let who = add.person.credential(context).await?;
                let (connection, secret) = add.parts(scheme)?;
                let doubtful = connection.ca_pem.as_deref().is_some_and(is_doubtful);
                let connection = Box::new(connection);
                let request = Request::ConnectionAdd { who, connection, secret };
                let made = context.ask(&request).await.map_err(as_owner);
                let mut made = made.map_err(|failure| match failure.code.as_str() {
                    "taken" => Failure { next: CHANGE_IT.to_owned(), ..failure },
                    _ => failure,
                })?;
                if let (true, Some(warnings)) = (doubtful, made["warnings"].as_array_mut()) {
                    warnings.push(DOUBTFUL.into());
                }
                let slug = field(&made, "slug");
                let mut text = match made["authorize"].as_str() {
                    Some(link) => {
                        format!("connection {slug} waits for you\nnext: sign in at {link}")
                    }
                    None => super::proposals::stored(&slug),
                };
                for warning in made["warnings"].as_array().into_iter().flatten() {
                    text.push_str("\nwarning: ");
                    text.push_str(&visible(warning.as_str().unwrap_or_default()));
                }
                Ok(Said::new(text, made))
            }
            Self::Sdk(sdk) => sdk.run(context).await,
            Self::Agents { connection, agent, all_agents: _, person } => {
                let who = person.credential(context).await?;
                let request = Request::ConnectionAgents { who, connection, agents: agent };
                let after = context.ask(&request).await.map_err(as_owner)?;
                Ok(Said::new(page(&after)?, after))
            }
            Self::Show { connection } => {
                let shown = context.ask(&Request::ConnectionShow { connection }).await?;
                Ok(Said::new(page(&shown)?, shown))
            }
            Self::Set(set) => {
                let who = set.person.credential(context).await?;
                let connection = set.connection.clone();
                let show = Request::ConnectionShow { connection: connection.clone() };
                let now = overrides_of(&context.ask(&show).await?)?;
                let exceptions = match set.allow_private.as_slice() {
                    [] => None,
                    [none] if none == "none" => Some(Vec::new()),
                    ranges => {
                        Some(ranges.iter().map(|text| range(text)).collect::<Result<_, _>>()?)
                    }
                };
                let ca_pem = match set.ca {
                    None => None,
                    Some(path) if path.as_os_str() == "none" => Some(String::new()),
                    Some(path) => Some(pem(&path)?),
                };
                let doubtful = ca_pem.as_deref().is_some_and(is_doubtful);
                let overrides = Some(set.policy.over(now)?);
                let change = Change { exceptions, overrides, ca_pem };
                let secret = set.secret_stdin.then(|| secret("Secret: ")).transpose()?;
                let same_account = set.same_account;
                let request =
                    Request::ConnectionSet { who, connection, change, secret, same_account };
                let mut after = context.ask(&request).await.map_err(as_owner)?;
                let mut text = page(&after)?;
                if doubtful {
                    text.push_str(&format!("\nwarning: {DOUBTFUL}"));
                    after["warnings"] = json!([DOUBTFUL]);
                }
                Ok(Said::new(text, after))
            }
            Self::Reconnect { connection, secret_stdin, person } => {
                let who = person.credential(context).await?;
                let secret = secret_stdin.then(|| secret("Secret: ")).transpose()?;
                let request = Request::ConnectionReconnect { who, connection, secret };
                Ok(proposals::made(context.ask(&request).await?))
            }
            Self::Presets { vendor } => known(vendor.as_deref()),
            Self::Proposals(args) => args.run(context).await,
            Self::List => {
                let list = context.ask(&Request::ConnectionList {}).await?;
                Ok(Said::new(listed(&list), list))
            }
            Self::Revoke { connection, person } => {
                let who = person.credential(context).await?;
                let text = format!("connection {} is revoked", visible(&connection));
                context.ask(&Request::ConnectionRevoke { who, connection }).await?;
                Ok(done(text))
            }
        }
    }
}

impl Add {
    fn scheme(&self) -> Result<Scheme, Failure> {
        let chosen = self.scheme.unwrap_or(Placed::Bearer).to_possible_value();
        let mut name = chosen.map(|value| value.get_name().replace('-', "_"));
        let mut fields = Map::new();
        if let (Some(preset), None) = (self.known()?, self.scheme) {
            fields.clone_from(&preset.scheme);
            name = fields.remove("scheme").and_then(|name| name.as_str().map(str::to_owned));
        }
        for (field, value) in [("header", &self.header), ("prefix", &self.prefix)] {
            if let Some(value) = value {
                fields.insert(field.into(), value.as_str().into());
            }
        }
        for text in &self.set {
            let (field, value) =
                text.split_once('=').ok_or_else(|| wrong("--set", text, "FIELD=VALUE"))?;
            match field.split_once('.') {
                // `headers.x-sign=…`: one entry of a field that has names.
                Some((field, name)) => {
                    let entries = fields.entry(field).or_insert_with(|| json!({}));
                    entries[name] = value.into();
                }
                None => drop(fields.insert(field.into(), read(field, value))),
            }
        }
        if let Some(header) = fields.get("header").and_then(Value::as_str) {
            fields.insert("header".into(), header.to_ascii_lowercase().into());
        }
        if let (Some(preset), None) = (self.known()?, self.scheme)
            && let Some(missing) =
                preset.ask.iter().find(|asked| !fields.contains_key(&asked.field))
        {
            return Err(Failure::new(
                "argument_invalid",
                format!("{} needs --set {}=…: {}", preset.name, missing.field, missing.what),
                format!("`cambium connections presets {}` tells all of it", preset.vendor),
            ));
        }
        let exceptions: Vec<Exception> =
            self.allow_private.iter().map(|text| range(text)).collect::<Result<_, _>>()?;
        scheme(&name.unwrap_or_default(), fields, &exceptions)
    }

    fn known(&self) -> Result<Option<&'static Preset>, Failure> {
        self.preset.as_deref().map(preset).transpose()
    }

    fn parts(self, scheme: Scheme) -> Result<(Connection, Option<String>), Failure> {
        let known = self.known()?;
        let name = |of: fn(&Preset) -> &String| known.map_or(&self.slug, of).clone();
        let hosts = match (self.host.as_slice(), known) {
            ([], Some(preset)) => &preset.hosts,
            (named, _) => &named.to_vec(),
        };
        let connection = Connection {
            vendor: self.vendor.unwrap_or_else(|| name(|preset| &preset.vendor)),
            display_name: self.display_name.unwrap_or_else(|| name(|preset| &preset.name)),
            hosts: hosts.iter().map(|text| host(text)).collect::<Result<_, _>>()?,
            slug: self.slug,
            exceptions: self
                .allow_private
                .iter()
                .map(|text| range(text))
                .collect::<Result<_, _>>()?,
            ca_pem: self.ca.as_deref().map(pem).transpose()?,
            overrides: self
                .policy
                .over(known.map_or_else(Overrides::default, |preset| preset.policy.clone()))?,
            agents: self.agent,
            scheme,
        };
        let secret = connection.scheme.takes_secret().then(|| secret("Secret: ")).transpose()?;
        Ok((connection, secret))
    }
}

/// A scheme from its name and fields; what is wrong is said before a secret is
/// asked for.
fn scheme(
    name: &str,
    fields: Map<String, Value>,
    exceptions: &[Exception],
) -> Result<Scheme, Failure> {
    read_scheme(name, fields, exceptions).map_err(|why| {
        Failure::new(
            "argument_invalid",
            format!("--scheme {name}: {why}"),
            "docs/credentials.md lists the fields of each scheme",
        )
    })
}

/// A field's value: the one that counts something is a number.
fn read(field: &str, value: &str) -> Value {
    match value.parse::<u32>() {
        Ok(number) if field.ends_with("_seconds") => number.into(),
        _ => value.into(),
    }
}

fn preset(vendor: &str) -> Result<&'static Preset, Failure> {
    Preset::named(vendor).ok_or_else(|| {
        Failure::new(
            "argument_invalid",
            format!("nothing is known of a vendor `{vendor}`"),
            "`cambium connections presets` lists those that are known; others take --host",
        )
    })
}

/// All presets, or all of one.
fn known(vendor: Option<&str>) -> Result<Said, Failure> {
    let Some(vendor) = vendor else {
        let row = |preset: &Preset| {
            let scheme = preset.scheme["scheme"].as_str().unwrap_or_default().to_owned();
            vec![preset.vendor.clone(), preset.name.clone(), scheme, preset.hosts.join(", ")]
        };
        let rows: Vec<_> = presets().iter().map(row).collect();
        let text = table(&["PRESET", "NAME", "SCHEME", "HOSTS"], &rows, "none");
        return Ok(Said::new(text, json!(presets())));
    };
    let preset = preset(vendor)?;
    let mut lines = vec![
        format!("preset      {} ({})", preset.vendor, preset.name),
        format!("hosts       {}", preset.hosts.join(", ")),
        format!("scheme      {}", preset.scheme["scheme"].as_str().unwrap_or_default()),
        format!("credential  {}", preset.credential),
        format!("docs        {}", preset.docs),
    ];
    let asked = preset.ask.iter();
    lines.extend(asked.map(|one| format!("you fill    --set {}=…: {}", one.field, one.what)));
    lines.extend(preset.policy.lines().iter().map(|line| format!("policy      {line}")));
    lines.extend(preset.notes.iter().map(|note| format!("note        {note}")));
    Ok(Said::new(lines.join("\n"), json!(preset)))
}

/// A refused address is the person's own to allow here.
fn as_owner(mut failure: Failure) -> Failure {
    if failure.code == "address_denied" {
        failure.next = "write --host as HOST or HOST:PORT; for a private or loopback address add \
                        --allow-private CIDR:PORT, like 127.0.0.1/32:8443"
            .into();
    }
    failure
}

fn host(text: &str) -> Result<Host, Failure> {
    if text.contains('/') {
        return Err(wrong("--host", text, "HOST or HOST:PORT, without a scheme or a path"));
    }
    let read = read_host(text);
    read.ok_or_else(|| wrong("--host", text, "HOST, HOST:PORT or LABEL=HOST:PORT"))
}

/// Reads `CIDR:PORT`.
pub(crate) fn range(text: &str) -> Result<Exception, Failure> {
    let wrong = || wrong("--allow-private", text, "CIDR:PORT, like 127.0.0.1/32:8443");
    let (cidr, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let port: u16 = port.parse().map_err(|_| wrong())?;
    serde_json::from_value(json!({ "cidr": cidr, "port": port })).map_err(|_| wrong())
}

fn wrong(argument: &str, value: &str, wanted: &str) -> Failure {
    Failure::new(
        "argument_invalid",
        format!("{argument} `{value}` is not {wanted}"),
        format!("write it as {wanted}"),
    )
}

/// One connection, a line a fact.
fn page(connection: &Value) -> Result<String, Failure> {
    let hosts = connection["hosts"].as_array().into_iter().flatten();
    let hosts = hosts.map(|host| {
        format!("{}={}:{}", field(host, "label"), field(host, "name"), field(host, "port"))
    });
    let mut lines = vec![
        format!("connection  {} ({})", field(connection, "slug"), field(connection, "status")),
        format!("vendor      {}", field(connection, "vendor")),
        format!("hosts       {}", hosts.collect::<Vec<_>>().join(", ")),
        format!("scheme      {}", field(&connection["scheme"], "scheme")),
        format!("generation  {}", field(connection, "generation")),
        format!(
            "authority   {}",
            if connection["ca_pem"].is_null() { "the public roots" } else { "its own" }
        ),
    ];
    if let Some(agents) = connection["agents"].as_array() {
        let names: Vec<_> = agents.iter().filter_map(|name| name.as_str().map(visible)).collect();
        lines.push(match names.is_empty() {
            true => "agents      all of yours".into(),
            false => format!("agents      {}", names.join(", ")),
        });
    }
    for exception in connection["exceptions"].as_array().into_iter().flatten() {
        let (cidr, port) = (field(exception, "cidr"), field(exception, "port"));
        lines.push(format!("policy      {cidr} port {port} may be dialled"));
    }
    let own = overrides_of(connection)?.lines();
    lines.extend(own.iter().map(|line| format!("policy      {}", visible(line))));
    if !lines.iter().any(|line| line.starts_with("policy")) {
        lines.push("policy      as usual".into());
    }
    Ok(lines.join("\n"))
}

fn listed(list: &Value) -> String {
    let rows: Vec<_> = list
        .as_array()
        .into_iter()
        .flatten()
        .map(|connection| {
            let hosts = connection["hosts"].as_array().into_iter().flatten();
            let hosts =
                hosts.map(|host| format!("{}:{}", field(host, "name"), field(host, "port")));
            vec![
                field(connection, "slug"),
                field(connection, "vendor"),
                hosts.collect::<Vec<_>>().join(", "),
                field(&connection["scheme"], "scheme"),
                field(connection, "status"),
                field(connection, "id"),
            ]
        })
        .collect();
    table(
        &["CONNECTION", "VENDOR", "HOSTS", "SCHEME", "STATUS", "ID"],
        &rows,
        "no connections yet\nnext: cambium connections add SLUG --host HOST, or with --preset VENDOR",
    )
}
