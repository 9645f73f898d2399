//! `cambium connections sdk …`: packages that tools of a connection may import.

use super::credential::PersonArgs;
use super::overrides::overrides_of;
use super::print::table;
use super::{Context, Said, visible};
use crate::control::Request;
use crate::failure::Failure;
use crate::sdk::{self, Named};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Words of `cambium connections sdk`.
#[derive(clap::Subcommand)]
pub(crate) enum Args {
    /// Let tools of a connection import a package; what was allowed *from now on* is asked again
    Add {
        /// Id or slug of the connection
        connection: String,
        /// PACKAGE@VERSION, exact, like stripe@23.1.0
        package: String,
        /// A folder whose node_modules holds the package and the bundler, instead of fetching them
        #[arg(long, value_name = "DIR")]
        from: Option<PathBuf>,
        #[command(flatten)]
        person: PersonArgs,
    },
    /// What tools of a connection may import
    List {
        /// Id or slug of the connection
        connection: String,
    },
    /// Take a package off the list; tools that import it are refused
    Remove {
        /// Id or slug of the connection
        connection: String,
        /// Its name, without a version
        package: String,
        #[command(flatten)]
        person: PersonArgs,
    },
}

impl Args {
    /// Asks the running server; what is fetched and bundled is so here.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        match self {
            Self::Add { connection, package, from, person } => {
                let named = Named::parse(&package)?;
                // Before anything is fetched: the connection is there and a person is.
                context.ask(&Request::ConnectionShow { connection: connection.clone() }).await?;
                let who = person.credential(context).await?;
                let sdk = sdk::make(&named, from.as_deref()).await?;
                let bytes = sdk.bundle.len();
                let request = Request::SdkAdd {
                    who,
                    connection: connection.clone(),
                    name: sdk.name,
                    version: sdk.version,
                    integrity: sdk.integrity,
                    bundle: sdk.bundle,
                };
                let after = context.ask(&request).await?;
                let text = format!(
                    "tools of {} may import {package} ({bytes} bytes)\n\
                     next: an import binds it with ctx.proxyBase and ctx.proxyKey; README.md shows how",
                    visible(&connection)
                );
                Ok(Said::new(text, listed(&after)?))
            }
            Self::List { connection } => {
                let shown = context.ask(&Request::ConnectionShow { connection }).await?;
                let list = listed(&shown)?;
                let rows: Vec<_> = overrides_of(&shown)?
                    .sdks
                    .into_iter()
                    .map(|sdk| vec![sdk.name, sdk.version, sdk.digest.to_string(), sdk.integrity])
                    .collect();
                let none = "tools of this connection import nothing\n\
                            next: cambium connections sdk add SLUG PACKAGE@VERSION";
                let heads = ["PACKAGE", "VERSION", "BUNDLE (SHA-256)", "PACKAGE (REGISTRY)"];
                Ok(Said::new(table(&heads, &rows, none), list))
            }
            Self::Remove { connection, package, person } => {
                let who = person.credential(context).await?;
                let request = Request::SdkRemove { who, connection, name: package.clone() };
                let after = context.ask(&request).await?;
                let text = format!("{} is off the list", visible(&package));
                Ok(Said::new(text, listed(&after)?))
            }
        }
    }
}

fn listed(connection: &Value) -> Result<Value, Failure> {
    let sdks = overrides_of(connection)?.sdks;
    Ok(json!({ "generation": connection["generation"], "sdks": sdks }))
}
