//! The options that change the policy of one connection, for `connections add`
//! and `connections set`. A list that is named replaces the one before; what
//! is not named stays. The bounds are the proxy's.

use crate::failure::Failure;
use cambium_proxy::{Overrides, Raise};
use serde_json::{Value, json};

/// What a person may change of the policy; `none` clears a list.
#[derive(clap::Args)]
pub(crate) struct Policy {
    /// A request header tools may set besides the usual ones (may be repeated; `none` for none)
    #[arg(long, value_name = "NAME")]
    allow_header: Vec<String>,
    /// Whether %2F may stand in a path
    #[arg(long, value_name = "on|off", value_parser = switch)]
    encoded_slash: Option<bool>,
    /// Whether tools may ask for ranges; a slice of an echo is not redacted
    #[arg(long, value_name = "on|off", value_parser = switch)]
    range: Option<bool>,
    /// Follow a GET's redirect to this host, without the credential (may be repeated; `*` is any public host, `none` for none)
    #[arg(long, value_name = "HOST[:PORT]")]
    follow_downloads: Vec<String>,
    /// Requests a minute over all runs; 0 for no limit
    #[arg(long, value_name = "NUMBER")]
    rate: Option<u32>,
    /// Requests at a time over all runs; 0 for the usual 64
    #[arg(long, value_name = "NUMBER")]
    concurrent: Option<u32>,
    /// The path where GraphQL queries count as reads; `none` for none
    #[arg(long, value_name = "PATH")]
    graphql: Option<String>,
    /// Requests that count as more than their method says: `GET /send/{}=write`, `* /$batch/*=destroy`, `GET *=write` (may be repeated; `none` for none)
    #[arg(long, value_name = "METHOD PATH=write|destroy")]
    raise: Vec<String>,
    /// Whether *from now on* can cover any method and path, for tools whose calls cannot be read
    #[arg(long, value_name = "on|off", value_parser = switch)]
    standing_any: Option<bool>,
}

fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("say `on` or `off`".to_owned()),
    }
}

impl Policy {
    /// These options over what is set now.
    pub(crate) fn over(self, mut now: Overrides) -> Result<Overrides, Failure> {
        list(&mut now.headers, self.allow_header, |name| Ok(name.to_ascii_lowercase()))?;
        list(&mut now.follow_downloads, self.follow_downloads, |host| {
            Ok(host.to_ascii_lowercase())
        })?;
        list(&mut now.raise, self.raise, |text| raise(&text))?;
        now.encoded_slash = self.encoded_slash.unwrap_or(now.encoded_slash);
        now.range = self.range.unwrap_or(now.range);
        now.standing_any = self.standing_any.unwrap_or(now.standing_any);
        if let Some(rate) = self.rate {
            now.rate = (rate != 0).then_some(rate);
        }
        if let Some(concurrent) = self.concurrent {
            now.concurrent = (concurrent != 0).then_some(concurrent);
        }
        if let Some(path) = self.graphql {
            now.graphql = (path != "none").then_some(path);
        }
        Ok(now)
    }
}

fn list<T>(
    now: &mut Vec<T>,
    said: Vec<String>,
    read: impl Fn(String) -> Result<T, Failure>,
) -> Result<(), Failure> {
    match said.as_slice() {
        [] => {}
        [none] if none == "none" => now.clear(),
        _ => *now = said.into_iter().map(read).collect::<Result<_, _>>()?,
    }
    Ok(())
}

fn raise(text: &str) -> Result<Raise, Failure> {
    let wanted = "`METHOD PATH=write` or `METHOD PATH=destroy`, like `GET /send/{}=write`";
    let parts = text.rsplit_once('=').and_then(|(what, to)| Some((what.split_once(' ')?, to)));
    let raise = parts.and_then(|((method, path), to)| {
        serde_json::from_value(json!({ "method": method, "path": path.trim(), "to": to })).ok()
    });
    raise.ok_or_else(|| {
        Failure::new(
            "argument_invalid",
            format!("--raise `{text}` is not {wanted}"),
            format!("write it as {wanted}"),
        )
    })
}

/// The overrides of a connection as the server shows it.
pub(crate) fn overrides_of(connection: &Value) -> Result<Overrides, Failure> {
    serde_json::from_value(connection["overrides"].clone()).map_err(|error| {
        Failure::new(
            "server_gone",
            format!("the server's answer is not understood: {error}"),
            "use the same version of cambium on both sides",
        )
    })
}
